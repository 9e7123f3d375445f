import {
  type AerCounters,
  type AerSeverity,
  attainableGeneration,
  attainableWidth,
  doesPciFunctionAnswer,
  type PcieLink,
  readAer,
  readPcieLink,
} from '../host/pcie.ts';
import type { Tree } from '../host/tree.ts';
import { hours, minutes, seconds } from '../model/duration.ts';
import type { ConditionSpec, Finding } from '../model/health.ts';
import type { MetricSpec, Reading } from '../model/metric.ts';
import { measured, shared } from '../model/shared-metrics.ts';

/** What every family of PCIe devices reads and judges alike. */

const PCI = '/sys/bus/pci/devices/<address>';

/** The PCIe side of a function that has a link of its own. */
export interface PcieSample {
  readonly link: PcieLink;
  readonly aer: AerCounters;
  /** False for a card that fell off the bus; absent when unknown. */
  readonly answers?: boolean;
}

/** Questions to the configuration space: what they tell changes seldom, so twice a minute is enough. */
export const PCIE_EVERY_MS = seconds(30);

export function readPcie(sys: Tree, address: string): PcieSample {
  return { link: readPcieLink(sys, address), ...readPcieErrors(sys, address) };
}

/** A sample that may lack its link, for cards whose driver tells of it. */
export type PcieErrors = Omit<PcieSample, 'link'> & Partial<Pick<PcieSample, 'link'>>;

function readPcieErrors(sys: Tree, address: string): PcieErrors {
  const answers = doesPciFunctionAnswer(sys, address);
  return { aer: readAer(sys, address), ...(answers === undefined ? {} : { answers }) };
}

export const pcieLinkMetrics = {
  width: measured(shared.pcieWidth, `${PCI}/current_link_width, not of virtual functions`),
  widthMax: measured(shared.pcieWidthMax, `${PCI}/max_link_width of device and upstream port, the smaller`),
  generation: measured(shared.pcieGeneration, `${PCI}/current_link_speed, not of virtual functions`),
  generationMax: measured(shared.pcieGenerationMax, `${PCI}/max_link_speed of device and upstream port, the smaller`),
} as const satisfies Readonly<Record<string, MetricSpec>>;

export const pcieErrorMetric: MetricSpec = measured(
  shared.pcieErrors,
  `${PCI}/aer_dev_correctable, aer_dev_nonfatal, aer_dev_fatal: one line per kind`,
);

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

/** Presence on the bus, and Advanced Error Reporting (kernel ABI sysfs-bus-pci-devices-aer_stats). */
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
  aerRate('AerFatal', 'fatal', 'Uncorrectable fatal PCIe errors were reported.', 'TOTAL_ERR_FATAL', 0, hours(24)),
  aerRate(
    'AerNonfatal',
    'degraded',
    'Uncorrectable PCIe errors were reported, beyond the harmless ones of probing.',
    'aer_dev_nonfatal without UnsupReq',
    10,
    hours(1),
  ),
  aerRate(
    'AerCorrectable',
    'info',
    'The PCIe link corrects many errors: a worn contact or a marginal riser.',
    'aer_dev_correctable without NonFatalErr',
    100,
    hours(1),
  ),
];

function aerRate(
  type: string,
  severity: ConditionSpec['severity'],
  meaning: string,
  file: string,
  growth: number,
  windowMs: number,
): ConditionSpec {
  return {
    type,
    class: 'rate',
    severity,
    reasons: ['CounterGrows'],
    meaning,
    remedy: 'reseat',
    source: `${PCI}: ${file}; kernel ABI sysfs-bus-pci-devices-aer_stats`,
    threshold: { growth, windowMs },
    recoveryMs: minutes(10),
  };
}

/** All metrics and conditions of a device whose link the kernel tells. */
export const pcieMetrics: readonly MetricSpec[] = [...Object.values(pcieLinkMetrics), pcieErrorMetric];
export const pcieConditions: readonly ConditionSpec[] = [...pcieErrorConditions, pcieLinkCondition];

/** PCIe errors that grow from harmless probing (driver scans, lspci) and say nothing of the link. */
const HARMLESS: ReadonlySet<string> = new Set(['UnsupReq', 'NonFatalErr']);

function pcieLinkReadings({ link }: PcieSample): Reading[] {
  const levels: readonly (readonly [MetricSpec, number | undefined])[] = [
    [pcieLinkMetrics.width, link.width],
    [pcieLinkMetrics.widthMax, attainableWidth(link)],
    [pcieLinkMetrics.generation, link.generation],
    [pcieLinkMetrics.generationMax, attainableGeneration(link)],
  ];
  return levels.flatMap(([{ name }, value]) => (value === undefined ? [] : [{ metric: name, value }]));
}

export function pcieErrorReadings({ aer }: PcieErrors): Reading[] {
  return aer.errors.map(({ severity, kind, count }) => ({
    metric: pcieErrorMetric.name,
    labels: { severity, kind },
    value: count <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(count) : count,
  }));
}

/** Readings of a device whose link the kernel tells. */
export function pcieReadings(sample: PcieSample): Reading[] {
  return [...pcieLinkReadings(sample), ...pcieErrorReadings(sample)];
}

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
