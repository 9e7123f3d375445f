import type { Host } from '../../host/host.ts';
import type { Collection, DeviceReport, Problem } from '../../model/collection.ts';
import { memoizedBy } from '../../model/readings.ts';
import { sameListWhenEqual } from '../../model/step-cache.ts';
import type { Probe } from '../family.ts';
import { unlisted } from '../kit/device-files.ts';
import { RowLog } from '../kit/log-rows.ts';
import { nicLogRows } from '../kit/network-drivers.ts';
import { isDue, type Pace, Pacer } from '../kit/pace.ts';
import { Bus } from '../kit/pcie/bus.ts';
import { pcieLogConditions, pcieLogRows } from '../kit/pcie/log.ts';
import { conditions } from './conditions.ts';
import { type InfinibandOptions, isExpectedPort, type NameFilter, nameFilter, type ProblemCode } from './declaration.ts';
import { bus, CLASS, isInOtherNamespace, type Location, locate, type VirtualFunctions } from './discover.ts';
import { findCharDevices, Hca, type HcaSample, NO_CHAR_DEVICES } from './hca.ts';
import type { PortLevel, PortMemory } from './port.ts';
import { type ReportSettings, reportsOf } from './report.ts';

/** Limit of devices whose port memories are kept. No node has so many functions. */
const MAX_MEMORIES = 4_096;

/** Keeps the list of devices between two reads of the class directory. */
class HcaRegistry {
  readonly #host: Host;
  readonly #options: InfinibandOptions;
  #present: ReadonlyMap<string, Hca> = new Map();
  /** Devices in the network namespace of a container. They exist, but cannot be read. */
  readonly #inOtherNamespace = new Map<string, Hca>();
  /** Keyed by location, because the name of a device may change. The newest device is last. */
  readonly #memories = new Map<string, Map<string, PortMemory>>();
  #sweptAtMs: number | undefined;

  constructor(host: Host, options: InfinibandOptions) {
    this.#host = host;
    this.#options = options;
  }

  /** Devices that can be read, in the order of the names in the last update. */
  get present(): readonly Hca[] {
    return [...this.#present.values()];
  }

  /** Devices in the network namespace of a container. */
  get inOtherNamespace(): readonly Hca[] {
    return [...this.#inOtherNamespace.values()];
  }

  /** Updates the devices from the names in the class directory. Returns the names that have no device. */
  update(names: readonly string[], pace: Pace): readonly string[] {
    const identities = new Map(names.map((name) => [name, this.#host.sys.identity(`${CLASS}/${name}`)]));
    for (const hca of this.present) if (identities.get(hca.name) !== hca.identity) this.remove(hca);
    for (const [name, { location }] of this.#inOtherNamespace) {
      if (identities.get(name) !== undefined || !isInOtherNamespace(this.#host.sys, location)) this.#inOtherNamespace.delete(name);
    }
    const added = names.filter((name) => identities.get(name) !== undefined && !this.#present.has(name));
    if (added.length > 0 || isDue(this.#sweptAtMs, this.#options['facts-interval'], pace)) {
      this.#sweptAtMs = pace.nowMs;
      this.#sweep(identities);
    }
    return names.filter((name) => identities.get(name) === undefined);
  }

  /** Says whether the name still belongs to this device. */
  isSameDevice(hca: Hca): boolean {
    return this.#host.sys.identity(hca.directory) === hca.identity;
  }

  /** Removes a device whose name now belongs to another device or to none. Returns false when a container has the device. */
  remove(hca: Hca): boolean {
    this.#host.sys.forget(hca.directory);
    this.#present = new Map([...this.#present].filter(([name]) => name !== hca.name));
    if (!isInOtherNamespace(this.#host.sys, hca.location)) return true;
    this.#inOtherNamespace.set(hca.name, hca);
    return false;
  }

  /** Removes all devices from the list. The next update finds the existing devices again. */
  clear(): void {
    for (const hca of this.#present.values()) this.#host.sys.forget(hca.directory);
    this.#present = new Map();
  }

  /** Creates new devices, and reads the facts of known devices again. */
  #sweep(identities: ReadonlyMap<string, string | undefined>): void {
    const { sys } = this.#host;
    const charDevices = findCharDevices(sys);
    const virtualFunctions: VirtualFunctions = new Map();
    const present = new Map<string, Hca>();
    for (const [name, identity] of identities) {
      if (identity === undefined) continue;
      const known = this.#present.get(name);
      const own = charDevices.get(name) ?? NO_CHAR_DEVICES;
      known?.readFacts(own);
      present.set(name, known ?? this.#make(name, identity, locate(sys, `${CLASS}/${name}`, virtualFunctions), own));
    }
    this.#present = present;
  }

  #make(name: string, identity: string, location: Location, charDevices: typeof NO_CHAR_DEVICES): Hca {
    const memories = this.#memoriesOf([location.pciAddress ?? name, location.auxiliary].join(' '));
    return new Hca(this.#host.sys, { name, identity, location, options: this.#options, memories }, charDevices);
  }

  #memoriesOf(key: string): Map<string, PortMemory> {
    const memories = this.#memories.get(key) ?? new Map<string, PortMemory>();
    this.#memories.delete(key);
    this.#memories.set(key, memories);
    const [oldest] = this.#memories.keys();
    if (this.#memories.size > MAX_MEMORIES && oldest !== undefined) this.#memories.delete(oldest);
    return memories;
  }
}

export function createInfinibandProbe(host: Host, options: InfinibandOptions): Probe {
  return new InfinibandProbe(host, options);
}

class InfinibandProbe implements Probe {
  readonly #host: Host;
  readonly #options: InfinibandOptions;
  readonly #filter: NameFilter;
  readonly #registry: HcaRegistry;
  readonly #pacer = new Pacer();
  readonly #log: RowLog;
  /** Names below `/dev/infiniband`. */
  #nodes: readonly string[] | undefined;
  readonly #bus: Bus;
  /** Of the last collection. */
  #reported: ReportSettings | undefined;

  constructor(host: Host, options: InfinibandOptions) {
    this.#host = host;
    this.#options = options;
    this.#filter = nameFilter(options);
    this.#bus = new Bus(host, { family: 'infiniband', hardware: bus, hasOwnNodes: true, pcie: 'link' });
    this.#log = new RowLog(host, [...nicLogRows, ...pcieLogRows], [...Object.values(conditions), ...pcieLogConditions]);
    this.#registry = new HcaRegistry(host, options);
  }

  forget(): void {
    this.#registry.clear();
  }

  close(): void {
    this.forget();
    this.#log.close();
  }

  watch(wake: () => void): () => void {
    return this.#log.watch(wake);
  }

  collect(): Collection {
    return this.#log.withLogs(this.#bus.added(this.#collect(), this.#log));
  }

  readAgain(ids: ReadonlySet<string>): readonly DeviceReport[] | undefined {
    const { present } = this.#registry;
    // The port of a virtual function is that of its physical function.
    const above = new Set(present.flatMap(({ name, location }) => (ids.has(name) ? (location.physicalFunction ?? []) : [])));
    const hcas = present.filter(({ name, location }) => ids.has(name) || above.has(location.pciAddress ?? ''));
    const pace = { nowMs: this.#host.clock.monotonic(), graceMs: 0 };
    const samples = hcas.map((hca) => hca.read(pace));
    const areSame = hcas.every((hca) => this.#registry.isSameDevice(hca));
    if (this.#reported === undefined || !areSame || samples.some((one) => isHanging(one) || problemsOf(one).length > 0)) return undefined;
    const reports = reportsOf([...samples, ...this.#unreadable()], this.#reported).filter(({ device }) => ids.has(device.id));
    return reports.length === ids.size ? reports : undefined;
  }

  /** Samples of devices that containers have in their network namespaces. */
  #unreadable(): readonly HcaSample[] {
    return this.#registry.inOtherNamespace.map((hca) => hca.sampleInOtherNamespace());
  }

  #collect(): Collection {
    this.#reported = undefined;
    const { sys, dev, clock } = this.#host;
    const { names, error } = sys.listing(CLASS);
    if (names === undefined) {
      this.forget();
      return unlisted(CLASS, error);
    }
    const pace = this.#pacer.next(clock.monotonic());
    const vanishedNames = this.#registry.update(names.filter(this.#filter), pace);
    const { samples, problems } = this.#readAll(pace);
    const all = [...samples, ...this.#unreadable()];
    if (this.#options['hw-counters']) {
      if (areCountersHidden(all)) {
        problems.push(problem('counters-hidden', 'ports have a state, and neither counters nor hw_counters, on every device'));
      } else problems.push(...samples.filter(hasNoCounters).map(withoutCounters));
    }
    const nodes = dev.listing('infiniband');
    if (nodes.error !== undefined && all.some(({ facts }) => facts.charDevices.uverbs.length > 0)) {
      problems.push(problem('nodes-hidden', `listing ${dev.path('infiniband')} fails with ${nodes.error}`));
    }
    const isExpected = (device: string, port: string): boolean => isExpectedPort(this.#options, device, port);
    this.#nodes = nodes.names && sameListWhenEqual(this.#nodes, nodes.names);
    this.#reported = { charNodes: this.#nodes && setOf(this.#nodes), isExpected };
    return {
      reports: reportsOf(all, this.#reported),
      problems: [...vanishedNames.map(vanished), ...problems, ...all.flatMap(problemsOf)],
      listing: 'complete',
    };
  }

  #readAll(pace: Pace) {
    const { sys } = this.#host;
    const samples: HcaSample[] = [];
    const problems: Problem[] = [];
    for (const hca of this.#registry.present) {
      const { name } = hca;
      const sample = hca.read(pace);
      if (!this.#registry.isSameDevice(hca)) {
        // The device vanished during the read, so its sample is incomplete. A device that is no longer listed was removed: no problem.
        if (this.#registry.remove(hca) && sys.link(`${CLASS}/${name}`) !== undefined) problems.push(vanished(name));
        continue;
      }
      if (isHanging(sample)) {
        problems.push({ ...problem('device-hangs', `an earlier read of /sys/${CLASS}/${name} still hangs`), device: name });
      }
      samples.push(sample);
    }
    return { samples, problems };
  }
}

const setOf = memoizedBy((names: readonly string[]): ReadonlySet<string> => new Set(names));
const isHanging = ({ ports }: HcaSample): boolean => ports.some(({ level }) => level.error === 'EHUNG');
const problemsOf = (sample: HcaSample): readonly Problem[] => [...invalidStates(sample), ...brokenCounters(sample)];

/** Reports a state text that no known driver prints. Without this problem, the port would silently have no state. */
function invalidStates({ facts: { name }, ports }: HcaSample): Problem[] {
  return ports
    .filter(({ level }) => level.error === 'EBADMSG')
    .map(({ port }) => ({ ...problem('state-unreadable', `the state of port ${port} of ${name} is no state of a port`), device: name }));
}

/** Reports counters that hold what a failed read gives. */
function brokenCounters({ facts: { name }, ports, device }: HcaSample): Problem[] {
  const places = [...ports.map(({ port, counters }) => [`port ${port} of ${name}`, counters] as const), [name, device] as const];
  return places
    .filter(([, { allOnes }]) => allOnes.length > 0)
    .map(([place, { allOnes }]) => ({ ...problem('counter-all-ones', `${allOnes.join(', ')} of ${place}: all ones`), device: name }));
}

const answers = ({ state, isUntold }: PortLevel): boolean => state !== undefined || isUntold === true;

/** Software devices without counters are as they should be. */
const hasNoCounters = ({ facts: { location }, ports, device }: HcaSample): boolean =>
  location.pciAddress !== undefined &&
  device.files === 0 &&
  ports.some(({ level }) => answers(level)) &&
  ports.every(({ counters }) => counters.files === 0);

const withoutCounters = ({ facts: { name } }: HcaSample): Problem => ({
  ...problem('no-counters', `no port of ${name} has a counter that the agent knows`),
  device: name,
});

/** PCI vendors whose drivers have counters on every kernel. Other drivers (siw, qedr, mana_ib of some kernels, …) may have none at all. */
const WITH_COUNTERS: ReadonlySet<string | undefined> = new Set(['0x15b3', '0x8086', '0x14e4', '0x1d0f', '0x434e']);

/** The kernel shows the counters of a device only in the network namespace that owns the device. */
function areCountersHidden(samples: readonly HcaSample[]): boolean {
  const ports = samples.flatMap(({ facts, ports }) => ports.map((port) => ({ ...port, location: facts.location })));
  if (ports.some(({ counters }) => counters.files > 0)) return false;
  return ports.some(({ level, facts, location: { pciVendor, pciAddress } }) => {
    // Soft RoCE also has counters on every kernel. It is the only device that has an interface and is not a PCI function.
    const hasCounters = WITH_COUNTERS.has(pciVendor) || (pciAddress === undefined && facts.netdev !== undefined);
    return hasCounters && answers(level);
  });
}

function problem(code: ProblemCode, message: string): Problem {
  return { code, message };
}

function vanished(name: string): Problem {
  return { ...problem('device-vanished', `/sys/${CLASS}/${name} was listed and then gone`), device: name };
}
