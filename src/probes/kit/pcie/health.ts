import { type AerCounters, type AerSeverity, attainableGeneration, attainableWidth } from '../../../host/pci/pcie.ts';
import { hours, seconds } from '../../../model/duration.ts';
import type { ConditionSpec, Finding } from '../../../model/health.ts';
import { memoizedBy } from '../../../model/readings.ts';
import { declaredFinding, growthCondition, raiseGrowth } from '../finding.ts';
import { asOf } from '../pace.ts';
import { pcieLogConditions } from './log.ts';
import type { PcieErrors, PcieSample } from './pcie.ts';

/** PCIe conditions and findings that all families share. */

const PCI = '/sys/bus/pci/devices/<address>';
const AER = 'kernel ABI sysfs-bus-pci-devices-aer_stats';

export const pcieLinkCondition = {
  type: 'PcieLinkDegraded',
  class: 'self-clearing',
  severity: 'degraded',
  reasons: ['WidthBelowMaximum', 'SpeedBelowMaximum', 'AtMaximum'],
  meaning: 'The PCIe link is narrower or slower than card and slot support. A low speed alone may only mean that the card is idle.',
  remedy: 'reseat',
  source: `${PCI}: current_link_width and current_link_speed against the smaller maximum of device and upstream port`,
  forMs: seconds(60),
  recoveryMs: seconds(60),
} as const satisfies ConditionSpec;

const errors = {
  PciFunctionGone: {
    type: 'PciFunctionGone',
    class: 'latched',
    severity: 'fatal',
    reasons: ['ConfigurationAllOnes', 'Answers'],
    meaning: 'Every read of the PCI function returns all ones: the card is no longer on the bus.',
    remedy: 'reboot',
    source: `${PCI}: config, first 64 bytes; not for virtual functions`,
  },
  AerFatal: growthCondition({
    type: 'AerFatal',
    severity: 'fatal',
    meaning: 'Uncorrectable fatal PCIe errors were reported.',
    remedy: 'reseat',
    source: `${PCI}: TOTAL_ERR_FATAL; aer_rootport_total_err_fatal of the root port directly above; ${AER}`,
    growth: 0,
    windowMs: hours(24),
  }),
  AerNonfatal: growthCondition({
    type: 'AerNonfatal',
    severity: 'degraded',
    meaning: 'Uncorrectable PCIe errors were reported. Harmless errors that probing causes do not count.',
    remedy: 'reseat',
    source: `${PCI}: aer_dev_nonfatal without UnsupReq; ${AER}`,
    growth: 10,
    windowMs: hours(1),
  }),
  AerCorrectable: growthCondition({
    type: 'AerCorrectable',
    severity: 'info',
    meaning: 'The PCIe link corrects many errors: a worn contact or a marginal riser.',
    remedy: 'reseat',
    source: `${PCI}: aer_dev_correctable without NonFatalErr; ${AER}`,
    growth: 100,
    windowMs: hours(1),
  }),
} as const satisfies Readonly<Record<string, ConditionSpec>>;

/** Conditions for presence on the bus and for Advanced Error Reporting (AER). */
export const pcieErrorConditions: readonly ConditionSpec[] = [...Object.values(errors), ...pcieLogConditions];

/** All conditions of a device whose link the kernel reports. */
export const pcieConditions: readonly ConditionSpec[] = [...pcieErrorConditions, pcieLinkCondition];

/** PCIe errors that harmless accesses (driver scans, lspci) cause. They do not show a link fault. */
const HARMLESS: ReadonlySet<string> = new Set(['UnsupReq', 'NonFatalErr']);

/** Returns all findings of a device whose link the kernel reports; the same objects for the same sample. */
export const pcieFindings = memoizedBy((sample: PcieSample): readonly Finding[] => [
  ...pcieErrorFindings(sample),
  ...asOf(pcieLinkFindings(sample), sample.readMs),
]);

export function pcieErrorFindings(sample: PcieErrors): Finding[] {
  return [...asOf([...presenceFinding(sample), ...aerFindings(sample.aer)], sample.readMs)];
}

/**
 * A fatal fault of a card affects all its functions. A function with an error count of its own gets both counts, under different instances:
 * that of the card has the name `parent`.
 */
export function cardFaults(card: PcieErrors | undefined, parent: string, own: readonly Finding[]): Finding[] {
  if (card === undefined) return [];
  const fatal = pcieErrorFindings(card).filter(({ type }) => type === errors.AerFatal.type || type === errors.PciFunctionGone.type);
  return fatal.map((finding) =>
    own.some(({ type }) => type === finding.type) ? { ...finding, instance: finding.instance ?? parent } : finding,
  );
}

function presenceFinding({ answers }: PcieErrors): Finding[] {
  if (answers === undefined) return [];
  const message = answers ? 'the configuration header can be read' : 'all 64 bytes of the configuration header are ones';
  return [declaredFinding(errors.PciFunctionGone, answers ? 'Answers' : 'ConfigurationAllOnes', { status: !answers, message })];
}

/** Judges width and speed. A low speed has severity `info`, because idle cards lower their generation by themselves. */
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
  reason: 'WidthBelowMaximum' | 'SpeedBelowMaximum',
  now: number | undefined,
  most: number | undefined,
  message: (now: number, most: number) => string,
): Finding[] {
  if (now === undefined || most === undefined) return [];
  const status = now < most;
  return [declaredFinding(pcieLinkCondition, status ? reason : 'AtMaximum', { instance, status, message: message(now, most) })];
}

function aerFindings({ errors: kinds, totals, rootPort }: AerCounters): Finding[] {
  const sumOf = (severity: AerSeverity): bigint | undefined => {
    const counts = kinds.filter((error) => error.severity === severity && !HARMLESS.has(error.kind)).map(({ count }) => count);
    return counts.length === 0 ? undefined : counts.reduce((a, b) => a + b, 0n);
  };
  const [nonfatal, correctable] = [sumOf('nonfatal'), sumOf('correctable')];
  const below = `fatal errors below root port ${rootPort?.address}: ${rootPort?.fatal}`;
  return [
    ...raiseGrowth(errors.AerFatal, totals.fatal, `TOTAL_ERR_FATAL: ${totals.fatal}`),
    ...raiseGrowth(errors.AerFatal, rootPort?.fatal, below, rootPort?.address),
    ...raiseGrowth(errors.AerNonfatal, nonfatal, `nonfatal PCIe errors: ${nonfatal}`),
    ...raiseGrowth(errors.AerCorrectable, correctable, `correctable PCIe errors: ${correctable}`),
  ];
}
