import { type AerCounters, type AerSeverity, attainableGeneration, attainableWidth } from '../../host/pcie.ts';
import type { Finding } from '../../model/health.ts';
import type { Reading } from '../../model/metric.ts';
import { conditions } from './conditions.ts';
import type { PcieSample } from './hca.ts';
import { metrics } from './metrics.ts';

/** PCIe errors that grow from harmless probing (driver scans, lspci) and say nothing of the link. */
const HARMLESS: ReadonlySet<string> = new Set(['UnsupReq', 'NonFatalErr']);

export function pcieReadings(sample: PcieSample | undefined): Reading[] {
  if (sample === undefined) return [];
  const { link, aer } = sample;
  const levels: readonly (readonly [string, number | undefined])[] = [
    [metrics.pcieWidth.name, link.width],
    [metrics.pcieWidthMax.name, attainableWidth(link)],
    [metrics.pcieGeneration.name, link.generation],
    [metrics.pcieGenerationMax.name, attainableGeneration(link)],
  ];
  return [
    ...levels.flatMap(([metric, value]) => (value === undefined ? [] : [{ metric, value }])),
    ...aer.errors.map(({ severity, kind, count }) => ({
      metric: metrics.pcieErrors.name,
      labels: { severity, kind },
      value: count <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(count) : count,
    })),
  ];
}

export function pcieFindings(sample: PcieSample | undefined): Finding[] {
  if (sample === undefined) return [];
  return [...gone(sample), ...width(sample), ...speed(sample), ...aerFindings(sample.aer)];
}

function gone({ answers }: PcieSample): Finding[] {
  if (answers === undefined) return [];
  const message = answers ? 'the configuration header can be read' : 'all 64 bytes of the configuration header are ones';
  return [{ type: conditions.PciFunctionGone.type, status: !answers, reason: answers ? 'Answers' : 'ConfigurationAllOnes', message }];
}

function width({ link }: PcieSample): Finding[] {
  const most = attainableWidth(link);
  if (link.width === undefined || most === undefined) return [];
  const status = link.width < most;
  return [
    {
      type: conditions.PcieLinkDegraded.type,
      instance: 'width',
      status,
      reason: status ? 'WidthBelowMaximum' : 'AtMaximum',
      message: `PCIe link x${link.width}, x${most} is possible`,
    },
  ];
}

/** For the record only: idle cards drop to the lowest generation by themselves. */
function speed({ link }: PcieSample): Finding[] {
  const most = attainableGeneration(link);
  if (link.generation === undefined || most === undefined) return [];
  const status = link.generation < most;
  return [
    {
      type: conditions.PcieLinkDegraded.type,
      instance: 'speed',
      severity: 'info',
      status,
      reason: status ? 'SpeedBelowMaximum' : 'AtMaximum',
      message: `PCIe link of generation ${link.generation}, ${most} is possible`,
    },
  ];
}

function aerFindings(aer: AerCounters): Finding[] {
  const fatal = aer.totals.fatal;
  return [
    ...(fatal === undefined ? [] : [aerFinding(conditions.AerFatal.type, 'TOTAL_ERR_FATAL', fatal)]),
    ...summed(aer, 'nonfatal', conditions.AerNonfatal.type),
    ...summed(aer, 'correctable', conditions.AerCorrectable.type),
  ];
}

function summed(aer: AerCounters, severity: AerSeverity, type: string): Finding[] {
  const counts = aer.errors.filter((error) => error.severity === severity && !HARMLESS.has(error.kind)).map(({ count }) => count);
  if (counts.length === 0) return [];
  return [
    aerFinding(
      type,
      `${severity} PCIe errors`,
      counts.reduce((a, b) => a + b, 0n),
    ),
  ];
}

function aerFinding(type: string, what: string, count: bigint): Finding {
  return { type, reason: 'CounterGrows', message: `${what}: ${count}`, count: Number(count) };
}
