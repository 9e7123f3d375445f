import type { DeviceReport } from '../../model/collection.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { type PcieSample, pcieReadings } from '../pcie.ts';
import { deviceOf, infoReading } from './facts.ts';
import { findingsOf } from './findings.ts';
import type { HcaSample, PortSample } from './hca.ts';
import { metrics } from './metrics.ts';
import { portReadings } from './port.ts';

/** What a report was made from. */
interface Made {
  readonly sample: HcaSample;
  readonly parent: HcaSample | undefined;
  readonly charNodes: ReadonlySet<string> | undefined;
  readonly report: DeviceReport;
}

/**
 * Makes reports of samples. Whatever a report is made of and has not changed is taken from the one before, the whole report
 * included: who compares by identity then sees at once that there is nothing new.
 */
export class Reporter {
  readonly #isExpected: (device: string, port: string) => boolean;
  #made = new Map<string, Made>();
  /** Readings of what rarely changes, by what they are made of. */
  readonly #ofLevels = new WeakMap<PortSample['level'], { readonly facts: PortSample['facts']; readonly readings: Reading[] }>();
  readonly #ofFacts = new WeakMap<HcaSample['facts'], Reading>();
  readonly #ofLinks = new WeakMap<PcieSample, Reading[]>();
  readonly #ofMarks = new WeakMap<readonly string[], Reading[]>();

  constructor(isExpected: (device: string, port: string) => boolean) {
    this.#isExpected = isExpected;
  }

  reports(samples: readonly HcaSample[], charNodes: ReadonlySet<string> | undefined): DeviceReport[] {
    const physical = new Map<string, HcaSample>();
    for (const sample of samples) {
      const { kind, pciAddress } = sample.facts.place;
      if (kind === 'pf' && pciAddress !== undefined) physical.set(pciAddress, sample);
    }
    const made = new Map<string, Made>();
    for (const sample of samples) {
      const { name, place } = sample.facts;
      const parent = place.physicalFunction === undefined ? undefined : physical.get(place.physicalFunction);
      made.set(name, this.#make(this.#made.get(name), sample, parent, charNodes));
    }
    this.#made = made;
    return Array.from(made.values(), ({ report }) => report);
  }

  #make(before: Made | undefined, sample: HcaSample, parent: HcaSample | undefined, charNodes: ReadonlySet<string> | undefined): Made {
    const isAsHealthy =
      before !== undefined && before.charNodes === charNodes && isAlike(before.sample, sample) && isAlike(before.parent, parent);
    if (isAsHealthy && before.sample === sample) return before.parent === parent ? before : { ...before, parent };
    const device = isAsHealthy ? before.report.device : deviceOf(sample.facts, parent?.facts.name, charNodes?.has('rdma_cm') === true);
    const findings = isAsHealthy ? before.report.findings : this.#findings(sample, parent, charNodes);
    return { sample, parent, charNodes, report: { device, readings: this.#readings(sample), findings } };
  }

  #findings(sample: HcaSample, parent: HcaSample | undefined, charNodes: ReadonlySet<string> | undefined): readonly Finding[] {
    const device = parent?.facts.name ?? sample.facts.name;
    return findingsOf(sample, {
      ...(parent && { parent }),
      ...(charNodes && { charNodes }),
      isExpected: (port) => this.#isExpected(device, port),
    });
  }

  #readings(sample: HcaSample): Reading[] {
    const { facts, ports, device, pcie, isElsewhere } = sample;
    const info = kept(this.#ofFacts, facts, () => infoReading(facts));
    if (isElsewhere === true) return [info];
    const readings = [info];
    let { unreadable } = device;
    for (const port of ports) {
      const { counters } = port;
      append(readings, this.#ofPort(port));
      append(readings, counters.readings);
      append(
        readings,
        kept(this.#ofMarks, counters.saturated, () => marks(port)),
      );
      unreadable += counters.unreadable;
    }
    append(readings, device.readings);
    readings.push({ metric: metrics.unreadableFiles.name, value: unreadable });
    if (pcie !== undefined) readings.push(...kept(this.#ofLinks, pcie, () => pcieReadings(pcie)));
    return readings;
  }

  #ofPort({ port, level, facts }: PortSample): Reading[] {
    const known = this.#ofLevels.get(level);
    if (known?.facts === facts) return known.readings;
    const readings = portReadings(port, level, facts);
    this.#ofLevels.set(level, { facts, readings });
    return readings;
  }
}

function marks({ port, counters }: PortSample): Reading[] {
  return counters.saturated.map((counter) => ({ metric: metrics.counterSaturated.name, labels: { port, counter }, value: 1 }));
}

function append<T>(list: T[], more: readonly T[]): void {
  for (let at = 0; at < more.length; at += 1) list.push(more[at] as T);
}

function kept<K extends object, V>(known: WeakMap<K, V>, key: K, make: () => V): V {
  let value = known.get(key);
  if (value === undefined) {
    value = make();
    known.set(key, value);
  }
  return value;
}

/** Whether two samples give the same findings: alike in all but the counters that are not judged. */
function isAlike(a: HcaSample | undefined, b: HcaSample | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  if (a.facts !== b.facts || a.pcie !== b.pcie || a.isElsewhere !== b.isElsewhere || a.ports.length !== b.ports.length) return false;
  return a.ports.every((port, index) => isAlikePort(port, b.ports[index] as PortSample));
}

function isAlikePort(a: PortSample, b: PortSample): boolean {
  if (a === b) return true;
  if (a.level !== b.level || a.facts !== b.facts || a.memory !== b.memory) return false;
  const [before, now] = [a.counters, b.counters];
  return (
    before.raw === now.raw &&
    before.saturated === now.saturated &&
    before.classicFiles === now.classicFiles &&
    before.classicUnreadable === now.classicUnreadable
  );
}
