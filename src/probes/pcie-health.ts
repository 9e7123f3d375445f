import { type AerCounters, type AerSeverity, attainableGeneration, attainableWidth } from '../host/pci/pcie.ts';
import { hours, seconds } from '../model/duration.ts';
import type { ConditionSpec, Finding } from '../model/health.ts';
import { growthCondition } from './growth-condition.ts';
import type { PcieErrors, PcieSample } from './pcie.ts';

/** What every family of PCIe devices judges alike. */

const PCI = '/sys/bus/pci/devices/<address>';
const AER = 'kernel ABI sysfs-bus-pci-devices-aer_stats';

export const pcieLinkCondition: ConditionSpec = {
  type: 'PcieLinkDegraded',
  class: 'self-clearing',
  severity: 'degraded',
  reasons: ['WidthBelowMaximum', 'SpeedBelowMaximum', 'AtMaximum'],
  meaning: 'The PCIe link is narrower than card and slot can do, or slower, which by itself may only mean that the card idles.',
  remedy: 'reseat',
  source: `${PCI}: current_link_width and current_link_speed against the smaller maximum of device and upstream port`,
  forMs: seconds(60),
  recoveryMs: seconds(60),
};

/** Presence on the bus, and Advanced Error Reporting. */
export const pcieErrorConditions: readonly ConditionSpec[] = [
  {
    type: 'PciFunctionGone',
    class: 'latched',
    severity: 'fatal',
    reasons: ['ConfigurationAllOnes', 'Answers'],
    meaning: 'The PCI function answers every read with ones: the card fell off the bus.',
    remedy: 'reboot',
    source: `${PCI}: config, first 64 bytes, not of virtual functions`,
  },
  growthCondition({
    type: 'AerFatal',
    severity: 'fatal',
    meaning: 'Uncorrectable fatal PCIe errors were reported.',
    remedy: 'reseat',
    source: `${PCI}: TOTAL_ERR_FATAL; ${AER}`,
    growth: 0,
    windowMs: hours(24),
  }),
  growthCondition({
    type: 'AerNonfatal',
    severity: 'degraded',
    meaning: 'Uncorrectable PCIe errors were reported, beyond the harmless ones of probing.',
    remedy: 'reseat',
    source: `${PCI}: aer_dev_nonfatal without UnsupReq; ${AER}`,
    growth: 10,
    windowMs: hours(1),
  }),
  growthCondition({
    type: 'AerCorrectable',
    severity: 'info',
    meaning: 'The PCIe link corrects many errors: a worn contact or a marginal riser.',
    remedy: 'reseat',
    source: `${PCI}: aer_dev_correctable without NonFatalErr; ${AER}`,
    growth: 100,
    windowMs: hours(1),
  }),
];

/** All conditions of a device whose link the kernel tells. */
export const pcieConditions: readonly ConditionSpec[] = [...pcieErrorConditions, pcieLinkCondition];

/** PCIe errors that grow from harmless probing (driver scans, lspci) and say nothing of the link. */
const HARMLESS: ReadonlySet<string> = new Set(['UnsupReq', 'NonFatalErr']);

/** Findings of a device whose link the kernel tells. */
export function pcieFindings(sample: PcieSample): Finding[] {
  return [...pcieErrorFindings(sample), ...pcieLinkFindings(sample)];
}

export function pcieErrorFindings(sample: PcieErrors): Finding[] {
  return [...goneFinding(sample), ...aerFindings(sample.aer)];
}

function goneFinding({ answers }: PcieErrors): Finding[] {
  if (answers === undefined) return [];
  const message = answers ? 'the configuration header can be read' : 'all 64 bytes of the configuration header are ones';
  return [{ type: 'PciFunctionGone', status: !answers, reason: answers ? 'Answers' : 'ConfigurationAllOnes', message }];
}

/** Width, and speed for the record only: idle cards drop to the lowest generation by themselves. */
function pcieLinkFindings({ link }: PcieSample): Finding[] {
  return [
    ...levelFinding(
      'width',
      'WidthBelowMaximum',
      link.width,
      attainableWidth(link),
      (now, most) => `PCIe link x${now}, x${most} is possible`,
    ),
    ...levelFinding(
      'speed',
      'SpeedBelowMaximum',
      link.generation,
      attainableGeneration(link),
      (now, most) => `PCIe link of generation ${now}, ${most} is possible`,
    ).map((finding): Finding => ({ ...finding, severity: 'info' })),
  ];
}

function levelFinding(
  instance: string,
  reason: string,
  now: number | undefined,
  most: number | undefined,
  message: (now: number, most: number) => string,
): Finding[] {
  if (now === undefined || most === undefined) return [];
  const status = now < most;
  return [{ type: pcieLinkCondition.type, instance, status, reason: status ? reason : 'AtMaximum', message: message(now, most) }];
}

function aerFindings(aer: AerCounters): Finding[] {
  const { fatal } = aer.totals;
  return [
    ...(fatal === undefined ? [] : [aerFinding('AerFatal', 'TOTAL_ERR_FATAL', fatal)]),
    ...summed(aer, 'nonfatal', 'AerNonfatal'),
    ...summed(aer, 'correctable', 'AerCorrectable'),
  ];
}

function summed(aer: AerCounters, severity: AerSeverity, type: string): Finding[] {
  const counts = aer.errors.filter((error) => error.severity === severity && !HARMLESS.has(error.kind)).map(({ count }) => count);
  if (counts.length === 0) return [];
  const sum = counts.reduce((a, b) => a + b, 0n);
  return [aerFinding(type, `${severity} PCIe errors`, sum)];
}

function aerFinding(type: string, what: string, count: bigint): Finding {
  return { type, reason: 'CounterGrows', message: `${what}: ${count}`, count: Number(count) };
}
