import type { Host } from '../../host/host.ts';
import type { Collection, DeviceReport, Problem } from '../../model/collection.ts';
import { type Millis, seconds } from '../../model/duration.ts';
import type { Reading } from '../../model/metric.ts';
import type { Probe } from '../family.ts';
import { pcieReadings } from '../pcie.ts';
import { type CharDevices, CLASS, findCharDevices, isInOtherNamespace, locate, NO_CHAR_DEVICES } from './discover.ts';
import { deviceOf, infoReading } from './facts.ts';
import { findingsOf } from './findings.ts';
import { Hca, type HcaSample } from './hca.ts';
import { metrics } from './metrics.ts';
import { type InfinibandOptions, isExpectedPort, type NameFilter, nameFilter } from './options.ts';
import { portReadings } from './port.ts';
import type { PortMemory } from './port-memory.ts';
import type { ProblemCode } from './problems.ts';

/** Firmware version, GUIDs, character devices, interfaces and the lists of files are looked up anew at this pace. */
const SWEEP_EVERY_MS: Millis = seconds(60);

export function createInfinibandProbe(host: Host, options: InfinibandOptions): Probe {
  const filter = nameFilter(options);
  if (typeof filter === 'function') return new InfinibandProbe(host, options, filter);
  const invalid = problem('filter-invalid', `"${filter.invalid}" is no regular expression`);
  return { collect: () => ({ reports: [], problems: [invalid], complete: false }) };
}

class InfinibandProbe implements Probe {
  readonly #host: Host;
  readonly #options: InfinibandOptions;
  readonly #filter: NameFilter;
  readonly #hcas = new Map<string, Hca>();
  /** Devices that a container has taken into its network namespace: not gone, and not to be read. */
  readonly #elsewhere = new Map<string, Hca>();
  /** Device name to port memories. Kept when a device goes, since a reset brings it back; as many as there ever were names. */
  readonly #memories = new Map<string, Map<string, PortMemory>>();
  #charDevices: ReadonlyMap<string, CharDevices> = new Map();
  #sweptAtMs = Number.NEGATIVE_INFINITY;

  constructor(host: Host, options: InfinibandOptions, filter: NameFilter) {
    this.#host = host;
    this.#options = options;
    this.#filter = filter;
  }

  collect(): Collection {
    const listing = this.#host.sys.listing(CLASS);
    if (listing.error !== undefined) {
      this.#hcas.clear();
      if (listing.error === 'ENOENT') return { reports: [], problems: [] };
      const unreadable = problem('class-unreadable', `listing /sys/${CLASS} fails with ${listing.error}`);
      return { reports: [], problems: [unreadable], complete: false };
    }
    const nowMs = this.#host.clock.monotonic();
    const problems: Problem[] = [];
    this.#discover(listing.names.filter(this.#filter), nowMs, problems);
    const samples = [...this.#readAll(nowMs, problems), ...[...this.#elsewhere.values()].map((hca) => hca.elsewhere())];
    if (this.#options['hw-counters'] && areCountersHidden(samples)) {
      problems.push(problem('counters-hidden', 'ports have a state, and neither counters nor hw_counters, on every device'));
    }
    return { reports: this.#report(samples), problems };
  }

  /** Brings the known devices in line with the class directory. */
  #discover(names: readonly string[], nowMs: number, problems: Problem[]): void {
    const present = new Map<string, string>();
    for (const name of names) {
      const identity = this.#host.sys.identity(`${CLASS}/${name}`);
      if (identity === undefined) problems.push(vanished(name));
      else present.set(name, identity);
    }
    for (const [name, hca] of this.#hcas) if (present.get(name) !== hca.identity) this.#dismiss(name, hca);
    for (const [name, hca] of this.#elsewhere) {
      if (present.has(name) || !isInOtherNamespace(this.#host.sys, hca.place)) this.#elsewhere.delete(name);
    }
    const added = [...present.keys()].filter((name) => !this.#hcas.has(name));
    if (added.length > 0 || nowMs - this.#sweptAtMs >= SWEEP_EVERY_MS) this.#sweep(nowMs);
    const virtualFunctions = new Map();
    for (const name of added) {
      const memories = this.#memories.get(name) ?? new Map<string, PortMemory>();
      this.#memories.set(name, memories);
      const found = {
        place: locate(this.#host.sys, `${CLASS}/${name}`, virtualFunctions),
        charDevices: this.#charDevices.get(name) ?? NO_CHAR_DEVICES,
        withHardware: this.#options['hw-counters'],
        memories,
      };
      this.#hcas.set(name, new Hca(this.#host.sys, name, present.get(name) as string, found));
    }
  }

  #dismiss(name: string, hca: Hca): void {
    this.#hcas.delete(name);
    if (isInOtherNamespace(this.#host.sys, hca.place)) this.#elsewhere.set(name, hca);
  }

  #sweep(nowMs: number): void {
    this.#sweptAtMs = nowMs;
    this.#charDevices = findCharDevices(this.#host.sys);
    for (const [name, hca] of this.#hcas) hca.refreshFacts(this.#charDevices.get(name) ?? NO_CHAR_DEVICES);
  }

  #readAll(nowMs: number, problems: Problem[]): HcaSample[] {
    const samples: HcaSample[] = [];
    for (const [name, hca] of [...this.#hcas].sort(([a], [b]) => (a < b ? -1 : 1))) {
      const sample = hca.read(nowMs);
      if (this.#host.sys.identity(`${CLASS}/${name}`) !== hca.identity) {
        // Gone while it was read: half a truth is none.
        this.#dismiss(name, hca);
        if (!this.#elsewhere.has(name)) problems.push(vanished(name));
        continue;
      }
      if (sample.ports.some(({ level }) => level.error === 'EHUNG')) {
        problems.push({ ...problem('device-hangs', `an earlier read of /sys/${CLASS}/${name} still hangs`), device: name });
      }
      samples.push(sample);
    }
    return samples;
  }

  #report(samples: readonly HcaSample[]): DeviceReport[] {
    const charNodes = this.#charNodes();
    const physical = new Map(
      samples.flatMap((sample) => (sample.facts.place.kind === 'pf' ? [[sample.facts.place.pciAddress, sample]] : [])),
    );
    return samples.map((sample) => {
      const { name, place } = sample.facts;
      const parent = place.physicalFunction === undefined ? undefined : physical.get(place.physicalFunction);
      return {
        device: deviceOf(sample.facts, parent?.facts.name, charNodes?.has('rdma_cm') === true),
        readings: readingsOf(sample),
        findings: findingsOf(sample, {
          ...(parent && { parent }),
          ...(charNodes && { charNodes }),
          isExpected: (port) => isExpectedPort(this.#options, parent?.facts.name ?? name, port),
        }),
      };
    });
  }

  #charNodes(): ReadonlySet<string> | undefined {
    const { names } = this.#host.dev.listing('infiniband');
    return names && new Set(names);
  }
}

function readingsOf(sample: HcaSample): Reading[] {
  if (sample.isElsewhere === true) return [infoReading(sample.facts)];
  const passes = [...sample.ports.map(({ counters }) => counters), sample.device];
  const unreadable = passes.reduce((sum, pass) => sum + pass.unreadable, 0);
  return [
    infoReading(sample.facts),
    ...sample.ports.flatMap(({ port, level, facts, counters }) => [
      ...portReadings(port, level, facts),
      ...counters.readings,
      ...counters.saturated.map((counter) => ({ metric: metrics.counterSaturated.name, labels: { port, counter }, value: 1 })),
    ]),
    ...sample.device.readings,
    { metric: metrics.unreadableFiles.name, value: unreadable },
    ...(sample.pcie === undefined ? [] : pcieReadings(sample.pcie)),
  ];
}

/** PCI vendor whose driver (mana_ib) has no counters on many kernels: nothing is hidden there. */
const WITHOUT_COUNTERS = '0x1414';

/** The kernel gives a device's counters only to the network namespace that owns the device. */
function areCountersHidden(samples: readonly HcaSample[]): boolean {
  const ports = samples.filter(({ facts }) => facts.place.pciVendor !== WITHOUT_COUNTERS).flatMap((sample) => sample.ports);
  return ports.some(({ level }) => level.state !== undefined) && ports.every(({ counters }) => counters.files === 0);
}

function problem(code: ProblemCode, message: string): Problem {
  return { code, message };
}

function vanished(name: string): Problem {
  return { ...problem('device-vanished', `/sys/${CLASS}/${name} was listed and then gone`), device: name };
}
