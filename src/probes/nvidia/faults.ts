import type { DeviceReport, Problem } from '../../model/collection.ts';
import type { Finding } from '../../model/health.ts';
import type { SurplusFault } from './smi.ts';

/** Reports with what the lines around the document say of their GPUs; of each GPU that could not be opened also a problem. */
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
  if (faults.length === 0) return reports;
  return reports.map((report) => {
    const own = faults.filter(({ pciAddress, fault }) => pciAddress === report.device.pciAddress && fault !== 'closed');
    if (own.length === 0) return report;
    const types = own.map(({ fault }) => (fault === 'lost' ? 'GpuLost' : 'InforomCorrupted'));
    const kept = report.findings.filter(({ type }) => !types.includes(type as 'GpuLost'));
    const found = own.map(
      ({ fault, line }): Finding => ({
        type: fault === 'lost' ? 'GpuLost' : 'InforomCorrupted',
        status: true,
        reason: fault === 'lost' ? 'GpuIsLost' : 'InforomCorrupted',
        message: line,
      }),
    );
    return { ...report, findings: [...kept, ...found] };
  });
}
