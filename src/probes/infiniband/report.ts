import type { DeviceReport } from '../../model/collection.ts';
import type { Finding } from '../../model/health.ts';
import { type JoinedReadings, joinReadings } from '../../model/joined-readings.ts';
import { Readings } from '../../model/readings.ts';
import { pcieReadings } from '../pcie.ts';
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
  readonly slow: SlowReadings;
  readonly readings: JoinedReadings;
  readonly report: DeviceReport;
}

/** Readings of what hardly ever changes. */
interface SlowReadings {
  readonly info: Readings;
  readonly ports: readonly { readonly level: Readings; readonly marks: Readings }[];
  readonly link: Readings | undefined;
}

/**
 * Makes reports of samples. Whatever a report is made of and has not changed is taken from the one before, the whole report
 * included: who compares by identity then sees at once that there is nothing new.
 */
export class Reporter {
  readonly #isExpected: (device: string, port: string) => boolean;
  /** In the order of the samples. */
  #made: readonly Made[] = [];
  /** By the number of unreadable files, which is hardly ever more than one. */
  readonly #ofUnreadable: Readings[] = [];

  constructor(isExpected: (device: string, port: string) => boolean) {
    this.#isExpected = isExpected;
  }

  reports(samples: readonly HcaSample[], charNodes: ReadonlySet<string> | undefined): DeviceReport[] {
    const before = this.#made;
    const physical = samples.some(isVirtual) ? physicalFunctions(samples) : undefined;
    const isSameOrder =
      samples.length === before.length && samples.every((sample, at) => before[at]?.sample.facts.name === sample.facts.name);
    const known = isSameOrder ? undefined : new Map(before.map((made) => [made.sample.facts.name, made]));
    this.#made = samples.map((sample, at) => {
      const { name, place } = sample.facts;
      const parent = place.physicalFunction === undefined ? undefined : physical?.get(place.physicalFunction);
      return this.#make(known === undefined ? before[at] : known.get(name), sample, parent, charNodes);
    });
    return this.#made.map(({ report }) => report);
  }

  #make(before: Made | undefined, sample: HcaSample, parent: HcaSample | undefined, charNodes: ReadonlySet<string> | undefined): Made {
    const isAsHealthy =
      before !== undefined && before.charNodes === charNodes && isAlike(before.sample, sample) && isAlike(before.parent, parent);
    if (isAsHealthy && before.sample === sample) return before.parent === parent ? before : { ...before, parent };
    const device = isAsHealthy ? before.report.device : deviceOf(sample.facts, parent?.facts.name, charNodes?.has('rdma_cm') === true);
    const findings = isAsHealthy ? (before.report.read?.findings ?? []) : this.#findings(sample, parent, charNodes);
    const isSlowSame = isAsHealthy || (before !== undefined && isSlowAlike(before.sample, sample));
    const slow = isSlowSame ? before.slow : slowReadings(sample);
    const readings = joinReadings(this.#parts(sample, slow), before?.readings);
    return { sample, parent, charNodes, slow, readings, report: { device, read: { readings: readings.whole, findings } } };
  }

  #findings(sample: HcaSample, parent: HcaSample | undefined, charNodes: ReadonlySet<string> | undefined): readonly Finding[] {
    const device = parent?.facts.name ?? sample.facts.name;
    return findingsOf(sample, {
      ...(parent && { parent }),
      ...(charNodes && { charNodes }),
      isExpected: (port) => this.#isExpected(device, port),
    });
  }

  #parts({ ports, device, isElsewhere }: HcaSample, { info, ports: slow, link }: SlowReadings): readonly Readings[] {
    const parts = [info];
    if (isElsewhere) return parts;
    let { unreadable } = device;
    for (let at = 0; at < ports.length; at += 1) {
      const { counters } = ports[at] as PortSample;
      const { level, marks } = slow[at] as SlowReadings['ports'][number];
      parts.push(level, counters.readings, marks);
      unreadable += counters.unreadable;
    }
    parts.push(device.readings, this.#unreadable(unreadable));
    if (link !== undefined) parts.push(link);
    return parts;
  }

  #unreadable(files: number): Readings {
    const known = this.#ofUnreadable[files] ?? Readings.of([{ metric: metrics.unreadableFiles.name, value: files }]);
    this.#ofUnreadable[files] = known;
    return known;
  }
}

const isVirtual = ({ facts }: HcaSample): boolean => facts.place.physicalFunction !== undefined;

/** By PCI address. */
function physicalFunctions(samples: readonly HcaSample[]): ReadonlyMap<string, HcaSample> {
  const physical = new Map<string, HcaSample>();
  for (const sample of samples) {
    const { kind, pciAddress } = sample.facts.place;
    if (kind === 'pf' && pciAddress !== undefined) physical.set(pciAddress, sample);
  }
  return physical;
}

function slowReadings({ facts, ports, pcie }: HcaSample): SlowReadings {
  return {
    info: Readings.of([infoReading(facts)]),
    ports: ports.map((sample) => ({ level: Readings.of(portReadings(sample.port, sample.level, sample.facts)), marks: marks(sample) })),
    link: pcie && Readings.of(pcieReadings(pcie)),
  };
}

function marks({ port, counters }: PortSample): Readings {
  return Readings.of(counters.saturated.map((counter) => ({ metric: metrics.counterSaturated.name, labels: { port, counter }, value: 1 })));
}

function isSlowAlike(a: HcaSample, b: HcaSample): boolean {
  if (a.facts !== b.facts || a.pcie !== b.pcie || a.ports.length !== b.ports.length) return false;
  for (let at = 0; at < a.ports.length; at += 1) {
    const [before, now] = [a.ports[at] as PortSample, b.ports[at] as PortSample];
    if (before.level !== now.level || before.facts !== now.facts || before.counters.saturated !== now.counters.saturated) return false;
  }
  return true;
}

/** Whether two samples give the same findings: alike in all but the counters that are not judged. */
function isAlike(a: HcaSample | undefined, b: HcaSample | undefined): boolean {
  if (a === b) return true;
  if (a === undefined || b === undefined) return false;
  if (a.facts !== b.facts || a.pcie !== b.pcie || a.isElsewhere !== b.isElsewhere || a.ports.length !== b.ports.length) return false;
  for (let at = 0; at < a.ports.length; at += 1) if (!isAlikePort(a.ports[at] as PortSample, b.ports[at] as PortSample)) return false;
  return true;
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
