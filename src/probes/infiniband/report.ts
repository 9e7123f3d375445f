import type { DeviceReport } from '../../model/collection.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
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
  readonly report: DeviceReport;
}

/**
 * Makes reports of samples. Whatever a report is made of and has not changed is taken from the one before, the whole report
 * included: who compares by identity then sees at once that there is nothing new.
 */
export class Reporter {
  readonly #isExpected: (device: string, port: string) => boolean;
  #made = new Map<string, Made>();
  readonly #portReadings = new WeakMap<PortSample['level'], { readonly facts: PortSample['facts']; readonly readings: Reading[] }>();

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
    if (sample.isElsewhere === true) return [infoReading(sample.facts)];
    const passes = [...sample.ports.map(({ counters }) => counters), sample.device];
    const unreadable = passes.reduce((sum, pass) => sum + pass.unreadable, 0);
    const readings = [infoReading(sample.facts)];
    for (const port of sample.ports) {
      readings.push(...this.#ofPort(port), ...port.counters.readings);
      for (const counter of port.counters.saturated) {
        readings.push({ metric: metrics.counterSaturated.name, labels: { port: port.port, counter }, value: 1 });
      }
    }
    readings.push(...sample.device.readings, { metric: metrics.unreadableFiles.name, value: unreadable });
    if (sample.pcie !== undefined) readings.push(...pcieReadings(sample.pcie));
    return readings;
  }

  #ofPort({ port, level, facts }: PortSample): Reading[] {
    const known = this.#portReadings.get(level);
    if (known?.facts === facts) return known.readings;
    const readings = portReadings(port, level, facts);
    this.#portReadings.set(level, { facts, readings });
    return readings;
  }
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
