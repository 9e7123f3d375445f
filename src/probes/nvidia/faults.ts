import type { DeviceReport, Problem } from '../../model/collection.ts';
import type { Finding } from '../../model/health.ts';
import type { SurplusFault } from './smi.ts';

const LOST = { type: 'GpuLost', reason: 'GpuIsLost' } as const;
const INFOROM = { type: 'InforomCorrupted', reason: 'InforomCorrupted' } as const;

/**
 * Reports with what the lines around the document say of their GPUs; of each GPU that could not be opened also a problem. A document
 * without a line on the infoROM of a GPU says that it is sound, unless a line is missing that tells of which GPU it is.
 */
export function withFaults(
  reports: readonly DeviceReport[],
  faults: readonly SurplusFault[],
  problems: Problem[],
): readonly DeviceReport[] {
  for (const { pciAddress, fault, line, problem = 'gpu-unreadable' } of faults) {
    if (fault === 'closed') problems.push({ code: 'no-permission', message: line });
    if (fault !== 'lost') continue;
    const gpu = reports.find(({ device }) => device.kind === 'gpu' && device.pciAddress === pciAddress);
    problems.push({ code: problem, message: line, ...(gpu === undefined ? {} : { device: gpu.device.id }) });
  }
  const isInforomKnown = !problems.some(({ code }) => code === 'inforom-corrupted');
  return reports.map((report) => {
    const own = faults.filter(({ pciAddress, fault }) => pciAddress === report.device.pciAddress && fault !== 'closed');
    const found = own.map(({ fault, line }): Finding => ({ ...(fault === 'lost' ? LOST : INFOROM), status: true, message: line }));
    const before = report.read ?? { readings: [], findings: [] };
    const isLost = [...found, ...before.findings].some(({ type, status }) => type === LOST.type && status !== false);
    const isAsked = isInforomKnown && report.device.kind === 'gpu' && report.read !== undefined && !isLost;
    const isSound = isAsked && !found.some(isOf(INFOROM.type));
    if (isSound)
      found.push({ type: INFOROM.type, status: false, reason: 'Sound', message: 'the driver does not say that the infoROM is damaged' });
    if (found.length === 0) return report;
    const kept = before.findings.filter(({ type }) => !found.some(isOf(type)));
    return { ...report, read: { ...before, findings: [...kept, ...found] } };
  });
}

const isOf =
  (wanted: string) =>
  ({ type }: Finding): boolean =>
    type === wanted;
