import type { Labels, MetricSpec, Reading, Value } from '../../model/metric.ts';
import { asOf } from '../kit/pace.ts';
import { pcieReadings } from '../kit/pcie/pcie.ts';
import { plainValue } from '../kit/text.ts';
import { COMPOSITE, type ControllerFacts, type ControllerSample } from './controller.ts';
import { metrics } from './metrics.ts';
import { type DiskStat, type NamespaceFacts, type NamespaceSample, type OperationCounts, SECTOR_BYTES } from './namespace.ts';
import { hasWarning, type LogFieldName, type SmartLog, WARNING_BITS } from './smart-log.ts';

function reading({ name }: MetricSpec, value: Value | undefined, labels?: Labels): Reading[] {
  if (value === undefined) return [];
  return [labels === undefined ? { metric: name, value } : { metric: name, labels, value }];
}

/** Readings of a controller. What was not read has none. */
export function controllerReadings(sample: ControllerSample, facts: ControllerFacts): readonly Reading[] {
  const { state, isAsleep, pcie, smart, smartMs } = sample;
  return [
    ...(state === undefined ? [] : reading(metrics.state, 1, { state })),
    ...(facts.transport === undefined ? [] : reading(metrics.info, 1, { transport: facts.transport })),
    ...reading(metrics.asleep, isAsleep ? 1 : 0),
    ...reading(metrics.queues, facts.queues),
    ...temperatureReadings(sample),
    ...(smart?.log === undefined ? [] : asOf(smartReadings(smart.log), smartMs)),
    ...(pcie === undefined ? [] : pcieReadings(pcie)),
  ];
}

/** The kernel's monitor comes first. The log serves where the kernel has none, and has the same values. */
function temperatureReadings({ temperatures, temperaturesMs, smart, smartMs }: ControllerSample): readonly Reading[] {
  if (temperatures === undefined) return smart?.log === undefined ? [] : asOf(smartTemperatures(smart.log), smartMs);
  return asOf(temperatures.readings, temperaturesMs);
}

/** The kernel's monitor subtracts the same. Millikelvin, so that the result has no rounding error. */
const celsius = (kelvin: bigint): number => (Number(kelvin) * 1_000 - 273_150) / 1_000;

function smartTemperatures(log: SmartLog): Reading[] {
  return (Object.keys(log) as LogFieldName[]).flatMap((field) => {
    if (!field.startsWith('temperature')) return [];
    const sensor = field === 'temperature' ? COMPOSITE : field.slice('temperature_'.length);
    return reading(metrics.temperature, celsius(log[field] as bigint), { sensor });
  });
}

/** Series of one field of the log: its raw value times a factor, or a share of 100. */
const SERIES: readonly {
  readonly field: LogFieldName;
  readonly metric: MetricSpec;
  readonly labels?: Labels;
  readonly times?: bigint;
  readonly isPercent?: true;
}[] = [
  { field: 'avail_spare', metric: metrics.spare, isPercent: true },
  { field: 'spare_thresh', metric: metrics.spareThreshold, isPercent: true },
  { field: 'percent_used', metric: metrics.used, isPercent: true },
  { field: 'data_units_read', metric: metrics.lifetimeRead, times: 512_000n },
  { field: 'data_units_written', metric: metrics.lifetimeWritten, times: 512_000n },
  { field: 'host_read_commands', metric: metrics.lifetimeCommands, labels: { command: 'read' } },
  { field: 'host_write_commands', metric: metrics.lifetimeCommands, labels: { command: 'write' } },
  { field: 'controller_busy_time', metric: metrics.lifetimeBusy, times: 60n },
  { field: 'power_cycles', metric: metrics.powerCycles },
  { field: 'power_on_hours', metric: metrics.powered, times: 3_600n },
  { field: 'unsafe_shutdowns', metric: metrics.unsafeShutdowns },
  { field: 'media_errors', metric: metrics.errors, labels: { kind: 'media' } },
  { field: 'num_err_log_entries', metric: metrics.errors, labels: { kind: 'error_log' } },
  { field: 'warning_temp_time', metric: metrics.overTemperatureTime, labels: { limit: 'warning' }, times: 60n },
  { field: 'critical_comp_time', metric: metrics.overTemperatureTime, labels: { limit: 'critical' }, times: 60n },
  { field: 'thm_temp1_trans_count', metric: metrics.throttles, labels: { reason: 'thermal_1' } },
  { field: 'thm_temp2_trans_count', metric: metrics.throttles, labels: { reason: 'thermal_2' } },
  { field: 'thm_temp1_total_time', metric: metrics.throttledTime, labels: { reason: 'thermal_1' } },
  { field: 'thm_temp2_total_time', metric: metrics.throttledTime, labels: { reason: 'thermal_2' } },
];

export function smartReadings(log: SmartLog): Reading[] {
  const warnings = log.critical_warning;
  return [
    ...SERIES.flatMap(({ field, metric, labels, times = 1n, isPercent }) => {
      const raw = log[field];
      if (raw === undefined) return [];
      return reading(metric, isPercent === true ? Number(raw) / 100 : plainValue(raw * times), labels);
    }),
    ...(warnings === undefined
      ? []
      : Object.entries(WARNING_BITS).flatMap(([warning, bit]) =>
          reading(metrics.criticalWarning, hasWarning(warnings, bit) ? 1 : 0, { warning }),
        )),
  ];
}

/** Number of paths, and of those that can be used; absent when the state of one of them is unknown. */
export interface PathCounts {
  readonly paths: number;
  readonly usable?: number;
}

/** Readings of a namespace. `counts` is absent without multipath. */
export function namespaceReadings(sample: NamespaceSample, facts: NamespaceFacts, counts?: PathCounts): readonly Reading[] {
  const { stat, isReadOnly } = sample;
  return [
    ...reading(metrics.size, facts.sectors === undefined ? undefined : plainValue(BigInt(facts.sectors) * SECTOR_BYTES)),
    ...reading(metrics.readOnly, isReadOnly === undefined ? undefined : Number(isReadOnly)),
    ...reading(metrics.paths, counts?.paths),
    ...reading(metrics.usablePaths, counts?.usable),
    ...(stat === undefined ? [] : statReadings(stat)),
  ];
}

const seconds = (milliseconds: bigint): number => Number(milliseconds) / 1_000;

export function statReadings(stat: DiskStat): Reading[] {
  const bytes = (counts: OperationCounts | undefined): Value | undefined =>
    counts?.sectors === undefined ? undefined : plainValue(counts.sectors * SECTOR_BYTES);
  const operations = (['read', 'write', 'discard', 'flush'] as const).flatMap((operation) => {
    const counts = stat[operation];
    if (counts === undefined) return [];
    return [
      ...reading(metrics.operations, plainValue(counts.completed), { operation }),
      ...reading(metrics.operationTime, seconds(counts.milliseconds), { operation }),
    ];
  });
  return [
    ...reading(metrics.readBytes, bytes(stat.read)),
    ...reading(metrics.writtenBytes, bytes(stat.write)),
    ...reading(metrics.discardedBytes, bytes(stat.discard)),
    ...operations,
    ...reading(metrics.busyTime, seconds(stat.busyMilliseconds)),
    ...reading(metrics.inFlight, plainValue(stat.inFlight)),
  ];
}
