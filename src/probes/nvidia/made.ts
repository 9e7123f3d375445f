import type { DeviceProcess, DeviceReport } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import type { PcieTold } from './pcie-memory.ts';
import type { Told } from './readings.ts';

/** What an element told, as it is reported. */
export type Reported = Told;

/** What was made of the values of a device. */
export interface Parts {
  readonly told: Reported;
  readonly processes: readonly DeviceProcess[];
  readonly findings: readonly Finding[];
}

/** A report and what it was made of. */
export interface Made {
  readonly device: Device;
  readonly parts: Parts;
  readonly pcie: PcieTold | undefined;
  readonly report: DeviceReport;
}

const NO_FINDINGS: readonly Finding[] = [];

/** `before` itself when nothing changed, and its findings when those did not. */
export function madeOf(device: Device, parts: Parts, pcie: PcieTold | undefined, before: Made | undefined): Made {
  if (before === undefined) return { device, parts, pcie, report: reportOf(device, parts, findingsOf(device, parts, pcie)) };
  const { told, processes, findings } = before.parts;
  const isJudged = findings === parts.findings && before.pcie === pcie;
  if (isJudged && before.device === device && told === parts.told && processes === parts.processes) return before;
  const judged = isJudged ? findingsIn(before.report) : findingsOf(device, parts, pcie);
  return { device, parts, pcie, report: reportOf(device, parts, judged) };
}

/** The same with other numbers; itself where they are the same. */
export function withReadings(made: Made, told: Reported): Made {
  const { device, parts, pcie, report } = made;
  if (told === parts.told) return made;
  const { processes, findings } = parts;
  return { device, parts: { told, processes, findings }, pcie, report: reportOf(device, { told, processes }, findingsIn(report)) };
}

function reportOf(
  device: Device,
  { told: { readings }, processes }: Pick<Parts, 'told' | 'processes'>,
  findings: readonly Finding[],
): DeviceReport {
  return { device, read: processes.length === 0 ? { readings, findings } : { readings, findings, processes } };
}

const findingsIn = ({ read }: DeviceReport): readonly Finding[] => read?.findings ?? NO_FINDINGS;

function findingsOf({ kind }: Device, { findings }: Parts, pcie: PcieTold | undefined): readonly Finding[] {
  const onBus = kind === 'gpu' ? (pcie?.findings ?? NO_FINDINGS) : concerningInstances(pcie?.findings ?? NO_FINDINGS);
  return [...findings, ...onBus];
}

/** What is wrong with a GPU as a whole is wrong with its instances; what concerns one memory or counter may not be. */
const CONCERNS_INSTANCES: ReadonlySet<string> = new Set(['GpuLost', 'RecoveryAction', 'FabricNotReady', 'PciFunctionGone', 'AerFatal']);
export const concerningInstances = (findings: readonly Finding[]): readonly Finding[] =>
  findings.filter(({ type }) => CONCERNS_INSTANCES.has(type));
