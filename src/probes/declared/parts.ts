import type { DeviceReport } from '../../model/collection.ts';
import type { ConditionSpec, Finding } from '../../model/health.ts';

/** Gives parts the fatal findings of the devices that they are parts of, but those of conditions that they have themselves. */
export class Inheritance {
  readonly #fatal: ReadonlySet<string>;

  constructor(conditions: readonly ConditionSpec[]) {
    this.#fatal = new Set(conditions.filter(({ severity }) => severity === 'fatal').map(({ type }) => type));
  }

  of(reports: readonly DeviceReport[]): readonly DeviceReport[] {
    const byId = new Map(reports.map((report) => [report.device.id, report]));
    const made = new Map<DeviceReport, DeviceReport>();
    const extended = (report: DeviceReport): DeviceReport => {
      const known = made.get(report);
      if (known !== undefined) return known;
      const whole = byId.get(report.device.parent ?? '');
      const result = whole === undefined || whole === report ? report : this.#extend(report, extended(whole));
      made.set(report, result);
      return result;
    };
    return reports.map(extended);
  }

  #extend(part: DeviceReport, whole: DeviceReport): DeviceReport {
    const { read, outOfBand } = part;
    const own = new Set([...(read?.findings ?? []), ...(outOfBand?.findings ?? [])].map(({ type }) => type));
    const taken = (findings: readonly Finding[] = []): Finding[] =>
      findings
        .filter(({ type }) => this.#fatal.has(type) && !own.has(type))
        .map((one) =>
          one.causedBy === undefined ? { ...one, causedBy: whole.device.id, message: `${whole.device.id}: ${one.message}` } : one,
        );
    const ofLog = taken(whole.outOfBand?.findings);
    return {
      ...part,
      ...(read !== undefined && { read: { ...read, findings: [...read.findings, ...taken(whole.read?.findings)] } }),
      ...(ofLog.length > 0 && { outOfBand: { readings: [], ...outOfBand, findings: [...(outOfBand?.findings ?? []), ...ofLog] } }),
    };
  }
}

/** Devices that are parts of each other, as files can say, are parts of nothing. `tell` gets the ids of such a device and its parent. */
export function withoutCircles(reports: readonly DeviceReport[], tell: (id: string, parent: string) => void): readonly DeviceReport[] {
  const parents = new Map(reports.map(({ device: { id, parent } }) => [id, parent]));
  return reports.map((report) => {
    const { parent, ...device } = report.device;
    let above = parent;
    for (let steps = 0; steps < parents.size && above !== undefined && above !== device.id; steps += 1) above = parents.get(above);
    if (parent === undefined || above !== device.id) return report;
    tell(device.id, parent);
    return { ...report, device };
  });
}
