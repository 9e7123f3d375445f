import type { KmsgRecord } from '../../../host/kernel-log/record.ts';
import { hours } from '../../../model/duration.ts';
import type { ConditionSpec } from '../../../model/health.ts';
import { type LogRow, logGrowth } from '../log-row.ts';

/** What the kernel log tells of PCIe: errors that the firmware took and reported, and errors of the ports above a function. */

const CPER = 'Linux drivers/firmware/efi/cper.c, cper_print_pcie';
const WAIT = 'Linux drivers/pci/pci.c, pci_dev_wait';
const AER = 'Linux drivers/pci/pcie/aer.c, dpc.c and err.c';

const conditions = {
  FirmwarePcieErrors: logGrowth({
    type: 'FirmwarePcieErrors',
    severity: 'degraded',
    meaning:
      'The firmware of the machine reported an uncorrectable PCIe error of the function. Where it takes these errors, most kernels count none.',
    remedy: 'reseat',
    source: `kernel log: ${CPER}`,
    growth: 0,
    windowMs: hours(1),
  }),
  PciePortErrors: logGrowth({
    type: 'PciePortErrors',
    severity: 'degraded',
    meaning:
      'A PCIe port above the device reported an uncorrectable error, cut its link off, or could not be recovered. All devices below it are affected, and the cause may be another one of them.',
    remedy: 'inspect',
    source: `kernel log: ${AER}; ${CPER}`,
    growth: 0,
    windowMs: hours(1),
  }),
  FunctionResetFailed: logGrowth({
    type: 'FunctionResetFailed',
    severity: 'fatal',
    meaning: 'The PCI function did not come back after a reset, such as the one between two holders of a device.',
    remedy: 'reboot',
    source: `kernel log: ${WAIT}`,
    growth: 0,
    windowMs: hours(1),
  }),
  PcieCorrectedErrors: logGrowth({
    type: 'PcieCorrectedErrors',
    severity: 'info',
    meaning: 'The firmware reported many corrected PCIe errors of the function, or the kernel many of a port above it.',
    remedy: 'reseat',
    source: `kernel log: ${CPER}; ${AER}`,
    growth: 100,
    windowMs: hours(1),
  }),
};

export const pcieLogConditions: readonly ConditionSpec[] = Object.values(conditions);

const ADDRESS = '(?<at>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7])';
const begin = '\\{\\d{1,10}\\}\\[Hardware Error\\]: +';
const ofFirmware = (text: string) =>
  ({ drivers: [], text: new RegExp(`^${begin}${text}`), withoutDevice: { class: 'pci', name: '{at}' }, source: CPER }) as const;
const ofPort = { drivers: ['pcieport'], pci: 'below', source: AER } as const;
/** {@link CperSections} adds the words in brackets. A record of a port has the kind of the port. */
const named = (severity: string, port: string): string => `device_id: ${ADDRESS} \\((?:${severity}), ${port}`;
const PORT = '(?:root port|(?:upstream|downstream) switch port)\\)';
const OTHER = `(?!${PORT})`;

/**
 * Errors of a function itself that the kernel took are not here: the kernel counts them, see `health.ts`. A row with `pci: 'below'` is about a
 * port.
 */
export const pcieLogRows: readonly LogRow[] = [
  {
    ...ofFirmware(named('recoverable|fatal', OTHER)),
    name: 'firmware-pcie-error',
    pci: 'function',
    means: 'the firmware reported an uncorrectable PCIe error of {at}',
    repeats: conditions.FirmwarePcieErrors,
    fault: { type: 'PcieError', severity: 'degraded', remedy: 'restart-workload' },
  },
  {
    ...ofFirmware(named('corrected', OTHER)),
    name: 'firmware-pcie-corrected',
    pci: 'function',
    means: 'the firmware reported a corrected PCIe error of {at}',
    repeats: conditions.PcieCorrectedErrors,
  },
  {
    ...ofFirmware(named('recoverable|fatal', PORT)),
    name: 'firmware-port-error',
    pci: 'below',
    means: 'the firmware reported an uncorrectable error of PCIe port {at}',
    repeats: conditions.PciePortErrors,
  },
  {
    ...ofFirmware(named('corrected', PORT)),
    name: 'firmware-port-corrected',
    pci: 'below',
    means: 'the firmware reported a corrected error of PCIe port {at}',
    repeats: conditions.PcieCorrectedErrors,
  },
  {
    drivers: [],
    name: 'function-reset-failed',
    pci: 'function',
    text: /^not ready \d+ms after (?<what>[\w >-]{1,40}); giving up/,
    means: 'the function did not answer after {what}',
    source: WAIT,
    repeats: conditions.FunctionResetFailed,
    fault: { type: 'FunctionResetFailed', severity: 'fatal', remedy: 'reboot' },
  },
  {
    ...ofPort,
    name: 'pcie-port-error',
    text: /^(?:AER: )?PCIe Bus Error: severity=Uncorrect|^DPC: containment event|^AER: (?:subordinate )?device (?:recovery|reset) failed/,
    means: 'a PCIe port above the device reported an uncorrectable error, or could not be recovered',
    repeats: conditions.PciePortErrors,
  },
  {
    ...ofPort,
    name: 'pcie-port-corrected',
    text: /^(?:AER: )?PCIe Bus Error: severity=Correct/,
    means: 'a PCIe port above the device corrected an error',
    repeats: conditions.PcieCorrectedErrors,
  },
  // The other lines of a report of the firmware. They name no function, or not what happened to it.
  {
    drivers: [],
    name: 'firmware-report',
    text: new RegExp(`^${begin}(?:Error \\d+, type: |section_type: PCIe error|port_type: \\d+, |device_id: )`),
    withoutDevice: { class: 'pci', name: 'none' },
    means: 'a line of a report of the firmware',
    source: CPER,
  },
];

/** Reports whose lines are between those of others: each CPU prints its own. */
const MOST_OPEN = 16;
const LINE =
  /^\{(\d{1,10})\}\[Hardware Error\]: +(?:Error \d+, type: (\w{1,20})|(section_type): |port_type: \d+, ([\w /-]{1,40})|(device_id): )/;

interface Section {
  readonly severity: string;
  readonly port?: string;
}

/**
 * The firmware reports an error in sections, and the kernel prints a record for each field: severity, kind of the port, function. This adds the
 * first two to the record that names the function. Pure but for what it remembers.
 */
export class CperSections {
  /** Keyed by the number that begins each line of a report. */
  readonly #open = new Map<string, Section>();

  /** `record`: of the kernel alone. */
  joined<R extends Pick<KmsgRecord, 'origin' | 'text' | 'device'>>(record: R): R {
    if (record.origin !== 'kernel' || record.device !== undefined || !record.text.startsWith('{')) return record;
    const [line, report = '', severity, type, port, names] = LINE.exec(record.text) ?? [];
    if (line === undefined) return record;
    const section = this.#open.get(report);
    this.#open.delete(report);
    if (severity !== undefined) this.#open.set(report, { severity });
    else if (section !== undefined && (type !== undefined || port !== undefined)) {
      this.#open.set(report, { severity: section.severity, ...(port !== undefined && { port }) });
    }
    const [oldest] = this.#open.keys();
    if (this.#open.size > MOST_OPEN && oldest !== undefined) this.#open.delete(oldest);
    if (names === undefined || section === undefined) return record;
    return { ...record, text: `${record.text.trimEnd()} (${section.severity}, ${section.port ?? 'unknown'})` };
  }
}
