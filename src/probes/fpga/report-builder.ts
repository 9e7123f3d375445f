import { basename } from 'node:path';
import { doesPciFunctionAnswer, isAsleepState } from '../../host/pci/pcie.ts';
import type { DeviceProcess, DeviceReport } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Finding, StatusFinding } from '../../model/health.ts';
import type { Labels, MetricSpec, Reading } from '../../model/metric.ts';
import { type ReasonOf, raise } from '../kit/finding.ts';
import { asOf } from '../kit/pace.ts';
import { pcieErrorFindings, pcieFindings } from '../kit/pcie/health.ts';
import { PCIE_EVERY_MS, type PcieSample, pcieReadings, readPcie } from '../kit/pcie/pcie.ts';
import { allConditions, type ConditionName, conditions } from './conditions.ts';
import { metrics } from './metrics.ts';
import { filesOf, type Survey } from './survey.ts';

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

/** Only a `readable` function allows reads of the driver's files. A read would wake an `asleep` function, and is invalid on a `gone` one. */
export type PciPresence = 'readable' | 'asleep' | 'gone';

/** Adds all PCIe facts of one physical function. Says whether its driver's files may be read. */
export function addPcie(builder: ReportBuilder, { host: { sys }, memory }: Survey, address: string): PciPresence {
  const answers = doesPciFunctionAnswer(sys, address);
  const driver = sys.link(`bus/pci/devices/${address}/driver`);
  if (driver !== undefined) addDriver(builder, basename(driver));
  if (answers === false) {
    builder.findings.push(...pcieErrorFindings({ link: { isAsleep: false }, aer: { errors: [], totals: {} }, answers }));
    return 'gone';
  }
  const isAsleep = isAsleepState(sys.text(`bus/pci/devices/${address}/power_state`));
  const read = (): PcieSample => readPcie(sys, address);
  const key = `${address}/pcie`;
  const { link, aer } = isAsleep ? read() : memory.atMostEvery(key, () => PCIE_EVERY_MS, read);
  const sample = { link, aer, ...(answers !== undefined && { answers }), readMs: isAsleep ? undefined : memory.readMs(key) };
  builder.readings.push(...pcieReadings(sample));
  builder.findings.push(...pcieFindings(sample));
  return isAsleep ? 'asleep' : 'readable';
}

/** Adds the finding whether a driver is bound. A board that is bound to another driver on purpose, such as vfio-pci, has no fault. */
export function addDriver(builder: ReportBuilder, driver: string | undefined): void {
  const isUnbound = driver === undefined;
  const message = isUnbound ? 'no driver is bound' : `bound to ${driver}`;
  builder.find('DriverUnbound', isUnbound, isUnbound ? 'NoDriver' : 'Bound', message);
}

/** Source: Linux Documentation/ABI/testing/sysfs-class-firmware. */
const UPLOAD_STATES: ReadonlySet<string> = new Set(['receiving', 'preparing', 'transferring', 'programming']);

/** Adds the state of firmware uploads. */
export function addUpdates(builder: ReportBuilder, survey: Survey, address: string): void {
  const uploads = survey.uploads.filter((upload) => upload.address === address);
  const states = uploads.flatMap(({ path }) => filesOf(survey, path, address).text('status') ?? []);
  const running = states.find((state) => UPLOAD_STATES.has(state));
  if (states.length > 0) {
    builder.add(metrics.updateRunning, running !== undefined);
    const message = `firmware upload: ${running ?? 'idle'}`;
    builder.find('UpdateRunning', running !== undefined, running === undefined ? 'Idle' : 'Uploading', message, { instance: 'upload' });
  }
}
