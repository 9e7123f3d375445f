import type { DeviceProcess, DeviceReport } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Finding, StatusFinding } from '../../model/health.ts';
import type { Labels, MetricSpec, Reading } from '../../model/metric.ts';
import { type ReasonOf, raise } from '../kit/finding.ts';
import { asOf } from '../kit/pace.ts';
import { allConditions, type ConditionName, conditions } from './conditions.ts';

/** Collects the readings and findings of one device. */
export class ReportBuilder {
  readonly readings: Reading[] = [];
  readonly findings: Finding[] = [];

  /** Gives all that `add` adds the time of its read, when an earlier collection made it; undefined: the present one. */
  asOf(readMs: number | undefined, add: () => void): void {
    const [readings, findings] = [this.readings.length, this.findings.length];
    add();
    this.readings.push(...asOf(this.readings.splice(readings), readMs));
    this.findings.push(...asOf(this.findings.splice(findings), readMs));
  }

  /** Adds a reading. An undefined value adds none. */
  add(metric: MetricSpec, value: number | bigint | boolean | undefined, labels?: Labels): void {
    if (value === undefined) return;
    const plain = typeof value === 'boolean' ? Number(value) : value;
    this.readings.push(labels === undefined ? { metric: metric.name, value: plain } : { metric: metric.name, labels, value: plain });
  }

  /** Adds the present state as one series with the value 1. A state outside the closed set adds none. */
  addState(metric: MetricSpec, states: readonly string[], present: string): void {
    if (states.includes(present)) this.add(metric, 1, { state: present });
  }

  find<T extends ConditionName>(
    type: T,
    status: StatusFinding['status'],
    reason: ReasonOf<(typeof conditions)[T]>,
    message: string,
    more: Pick<StatusFinding, 'instance' | 'severity' | 'remedy'> = {},
  ): void {
    this.findings.push(raise(conditions[type], reason, { status, message, ...more }));
  }

  /** Returns the types of the fatal conditions with this status, without those of the classes `in-progress` and `no-data`. */
  fatalConditions(wanted: true | 'unknown'): readonly string[] {
    const found = this.findings.filter(({ type, status, severity }) => {
      const spec = allConditions.find((each) => each.type === type);
      return status === wanted && (severity ?? spec?.severity) === 'fatal' && spec?.class !== 'in-progress' && spec?.class !== 'no-data';
    });
    return [...new Set(found.map(({ type }) => type))];
  }

  report(device: Device, processes?: readonly DeviceProcess[]): DeviceReport {
    const { readings, findings } = this;
    return { device, read: processes === undefined ? { readings, findings } : { readings, findings, processes } };
  }
}
