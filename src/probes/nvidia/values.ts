import type { Labels, MetricSpec, Reading, Value } from '../../model/metric.ts';
import { shared } from '../../model/shared-metrics.ts';
import type { Quantity } from './cell.ts';

/** One value of a GPU or instance: its metric, and its paths in `nvidia-smi -q -x`. */
interface ValueSpec {
  readonly kind: 'number' | 'flag';
  readonly metric: string;
  readonly labels: Labels | undefined;
  /** Paths, newest first, because drivers rename elements. Empty when only the driver's library provides the value. */
  readonly paths: readonly string[];
}

const number = (metric: Named, labels?: Labels, ...paths: readonly string[]) =>
  ({ kind: 'number', metric: nameOf(metric), labels, paths }) as const;
/** Value that is yes or no, enabled or disabled, active or not. */
const flag = (metric: Named, labels?: Labels, ...paths: readonly string[]) =>
  ({ kind: 'flag', metric: nameOf(metric), labels, paths }) as const;

/** A shared metric, or the end of the name of a metric of this family. */
type Named = Pick<MetricSpec, 'name'> | string;
const nameOf = (metric: Named): string => (typeof metric === 'string' ? `device_nvidia_${metric}` : metric.name);

const DEGREES = 'temperature/gpu_temp';
/** Drivers of the 610 branch nest the limits in another element. */
const powerLimit = (limit: string, name: string, oldName = name) =>
  number(
    shared.powerLimit,
    { limit },
    `gpu_power_readings/${name}`,
    `gpu_power_readings/gpu_ceiling_power_limit/${name}`,
    `power_readings/${oldName}`,
  );
const throttled = (reason: string) =>
  flag(
    shared.throttled,
    { reason },
    `clocks_event_reasons/clocks_event_reason_${reason}`,
    `clocks_throttle_reasons/clocks_throttle_reason_${reason}`,
  );
const throttledTime = (reason: string, name: string) =>
  number(shared.throttledTime, { reason }, `clocks_event_reasons_counters/clocks_event_reasons_counters_${name}`);
const LINK = 'pci/pci_gpu_link_info';
const lifetimeErrors = (unit: string) =>
  number('ecc_sram_uncorrectable_errors_total', { unit }, `ecc_errors/aggregate_uncorrectable_sram_sources/sram_${unit}`);
const spareRows = (availability: string) =>
  number('row_remap_banks', { availability }, `remapped_rows/row_remapper_histogram/row_remapper_histogram_${availability}`);

const activity = (unit: string) => number('activity_ratio', { unit });

/** All values that are a single number or flag. */
export const VALUES = {
  memoryTotalBytes: number(shared.memoryTotal, undefined, 'fb_memory_usage/total'),
  memoryUsedBytes: number(shared.memoryUsed, undefined, 'fb_memory_usage/used'),
  memoryReservedBytes: number(shared.memoryReserved, undefined, 'fb_memory_usage/reserved'),
  bar1TotalBytes: number('bar1_memory_total_bytes', undefined, 'bar1_memory_usage/total'),
  bar1UsedBytes: number('bar1_memory_used_bytes', undefined, 'bar1_memory_usage/used'),
  protectedTotalBytes: number('protected_memory_total_bytes', undefined, 'cc_protected_memory_usage/total'),
  protectedUsedBytes: number('protected_memory_used_bytes', undefined, 'cc_protected_memory_usage/used'),
  busyRatio: number(shared.utilization, { engine: 'gpu' }, 'utilization/gpu_util'),
  memoryBusyRatio: number(shared.utilization, { engine: 'memory' }, 'utilization/memory_util'),
  encoderBusyRatio: number(shared.utilization, { engine: 'encoder' }, 'utilization/encoder_util'),
  decoderBusyRatio: number(shared.utilization, { engine: 'decoder' }, 'utilization/decoder_util'),
  jpegBusyRatio: number(shared.utilization, { engine: 'jpeg' }, 'utilization/jpeg_util'),
  ofaBusyRatio: number(shared.utilization, { engine: 'ofa' }, 'utilization/ofa_util'),
  temperatureCelsius: number(shared.temperature, { sensor: 'gpu' }, DEGREES),
  memoryTemperatureCelsius: number(shared.temperature, { sensor: 'memory' }, 'temperature/memory_temp'),
  shutdownCelsius: number(shared.temperatureLimit, { sensor: 'gpu', limit: 'shutdown' }, `${DEGREES}_max_threshold`),
  slowdownCelsius: number(shared.temperatureLimit, { sensor: 'gpu', limit: 'slowdown' }, `${DEGREES}_slow_threshold`),
  maximumCelsius: number(shared.temperatureLimit, { sensor: 'gpu', limit: 'maximum' }, `${DEGREES}_max_gpu_threshold`),
  targetCelsius: number(shared.temperatureLimit, { sensor: 'gpu', limit: 'target' }, 'temperature/gpu_target_temperature'),
  memoryMaximumCelsius: number(shared.temperatureLimit, { sensor: 'memory', limit: 'maximum' }, `${DEGREES}_max_mem_threshold`),
  // Degrees left before the GPU slows down. Margins and temperatures must not share a metric.
  marginCelsius: number('temperature_margin_celsius', undefined, `${DEGREES}_tlimit`),
  shutdownMarginCelsius: number('temperature_limit_margin_celsius', { limit: 'shutdown' }, `${DEGREES}_max_tlimit_threshold`),
  slowdownMarginCelsius: number('temperature_limit_margin_celsius', { limit: 'slowdown' }, `${DEGREES}_slow_tlimit_threshold`),
  maximumMarginCelsius: number('temperature_limit_margin_celsius', { limit: 'maximum' }, `${DEGREES}_max_gpu_tlimit_threshold`),
  memoryMaximumMarginCelsius: number(
    'temperature_limit_margin_celsius',
    { limit: 'memory_maximum' },
    `${DEGREES}_max_mem_tlimit_threshold`,
  ),
  powerWatts: number(
    shared.power,
    { sensor: 'gpu' },
    'gpu_power_readings/instant_power_draw',
    'gpu_power_readings/power_draw',
    'power_readings/instant_power_draw',
    'power_readings/power_draw',
  ),
  averagePowerWatts: number(shared.power, { sensor: 'gpu_average' }, 'gpu_power_readings/average_power_draw'),
  memoryPowerWatts: number(
    shared.power,
    { sensor: 'memory' },
    'gpu_memory_power_readings/instant_power_draw',
    'gpu_memory_power_readings/power_draw',
  ),
  /** H100 to GB300 give no other power of their memory. */
  averageMemoryPowerWatts: number(shared.power, { sensor: 'memory_average' }, 'gpu_memory_power_readings/average_power_draw'),
  modulePowerWatts: number(
    shared.power,
    { sensor: 'module' },
    'module_power_readings/instant_power_draw',
    'module_power_readings/power_draw',
  ),
  averageModulePowerWatts: number(shared.power, { sensor: 'module_average' }, 'module_power_readings/average_power_draw'),
  energyJoules: number(shared.energy),
  enforcedLimitWatts: powerLimit('enforced', 'current_power_limit', 'enforced_power_limit'),
  requestedLimitWatts: powerLimit('requested', 'requested_power_limit', 'power_limit'),
  defaultLimitWatts: powerLimit('default', 'default_power_limit'),
  minimumLimitWatts: powerLimit('minimum', 'min_power_limit'),
  maximumLimitWatts: powerLimit('maximum', 'max_power_limit'),
  graphicsVolts: number(shared.voltage, { sensor: 'graphics' }, 'voltage/graphics_volt'),
  graphicsHertz: number(shared.clock, { clock: 'graphics' }, 'clocks/graphics_clock'),
  smHertz: number(shared.clock, { clock: 'sm' }, 'clocks/sm_clock'),
  memoryHertz: number(shared.clock, { clock: 'memory' }, 'clocks/mem_clock'),
  videoHertz: number(shared.clock, { clock: 'video' }, 'clocks/video_clock'),
  graphicsMaxHertz: number(shared.clockMax, { clock: 'graphics' }, 'max_clocks/graphics_clock'),
  smMaxHertz: number(shared.clockMax, { clock: 'sm' }, 'max_clocks/sm_clock'),
  memoryMaxHertz: number(shared.clockMax, { clock: 'memory' }, 'max_clocks/mem_clock'),
  videoMaxHertz: number(shared.clockMax, { clock: 'video' }, 'max_clocks/video_clock'),
  fanRatio: number(shared.fanRatio, { fan: '0' }, 'fan_speed'),
  isIdle: throttled('gpu_idle'),
  isThrottledBySettings: throttled('applications_clocks_setting'),
  isThrottledByPowerCap: throttled('sw_power_cap'),
  isThrottledByHardware: throttled('hw_slowdown'),
  isThrottledByHeat: throttled('hw_thermal_slowdown'),
  isThrottledByPowerBrake: throttled('hw_power_brake_slowdown'),
  isThrottledBySync: throttled('sync_boost'),
  isThrottledBySoftwareForHeat: throttled('sw_thermal_slowdown'),
  isThrottledByDisplay: throttled('display_clocks_setting'),
  isThrottledByBoardLimit: throttled('board_limit'),
  isThrottledForReliability: throttled('reliability'),
  powerCapSeconds: throttledTime('sw_power_cap', 'sw_power_cap'),
  syncSeconds: throttledTime('sync_boost', 'sync_boost'),
  softwareHeatSeconds: throttledTime('sw_thermal_slowdown', 'sw_therm_slowdown'),
  heatSeconds: throttledTime('hw_thermal_slowdown', 'hw_therm_slowdown'),
  powerBrakeSeconds: throttledTime('hw_power_brake_slowdown', 'hw_power_brake'),
  boardLimitSeconds: number(shared.throttledTime, { reason: 'board_limit' }),
  lowUtilizationSeconds: number(shared.throttledTime, { reason: 'low_utilization' }),
  reliabilitySeconds: number(shared.throttledTime, { reason: 'reliability' }),
  pcieLanes: number(shared.pcieWidth, undefined, `${LINK}/link_widths/current_link_width`),
  pcieMaxLanes: number(shared.pcieWidthMax, undefined, `${LINK}/link_widths/max_link_width`),
  pcieGeneration: number(shared.pcieGeneration, undefined, `${LINK}/pcie_gen/current_link_gen`, `${LINK}/pcie_gen/device_current_link_gen`),
  pcieMaxGeneration: number(shared.pcieGenerationMax, undefined, `${LINK}/pcie_gen/max_link_gen`),
  pcieReplays: number(shared.pcieReplays, undefined, 'pci/replay_counter'),
  pcieReplayRollovers: number('pcie_replay_rollovers_total', undefined, 'pci/replay_rollover_counter'),
  pcieTransmitBytesPerSecond: number('pcie_throughput_bytes_per_second', { direction: 'transmit' }, 'pci/tx_util'),
  pcieReceiveBytesPerSecond: number('pcie_throughput_bytes_per_second', { direction: 'receive' }, 'pci/rx_util'),
  pcieTransmittedBytes: number(shared.transmittedBytes, { port: 'pcie' }),
  pcieReceivedBytes: number(shared.receivedBytes, { port: 'pcie' }),
  encoderSessions: number('encoder_sessions', undefined, 'encoder_stats/session_count'),
  l2LifetimeErrors: lifetimeErrors('l2'),
  smLifetimeErrors: lifetimeErrors('sm'),
  microcontrollerLifetimeErrors: lifetimeErrors('microcontroller'),
  pcieLifetimeErrors: lifetimeErrors('pcie'),
  otherLifetimeErrors: lifetimeErrors('other'),
  isSramThresholdExceeded: flag('ecc_sram_threshold_exceeded', undefined, 'ecc_errors/aggregate/sram_threshold_exceeded'),
  isEccOn: flag('ecc_mode_enabled', { when: 'now' }, 'ecc_mode/current_ecc'),
  isEccPending: flag('ecc_mode_enabled', { when: 'pending' }, 'ecc_mode/pending_ecc'),
  isChannelRepairPending: flag('memory_repair_pending', { part: 'channel' }, 'ecc_errors/channel_repair_pending'),
  isTpcRepairPending: flag('memory_repair_pending', { part: 'tpc' }, 'ecc_errors/tpc_repair_pending'),
  isMemoryUnrepairable: flag('memory_unrepairable', undefined, 'ecc_errors/unrepairable_memory'),
  singleBitPages: number('retired_pages', { cause: 'single_bit' }, 'retired_pages/multiple_single_bit_retirement/retired_count'),
  doubleBitPages: number('retired_pages', { cause: 'double_bit' }, 'retired_pages/double_bit_retirement/retired_count'),
  arePagesPending: flag('retired_pages_pending', undefined, 'retired_pages/pending_retirement', 'retired_pages/pending_blacklist'),
  correctableRows: number('remapped_rows_total', { cause: 'correctable' }, 'remapped_rows/remapped_row_corr'),
  uncorrectableRows: number('remapped_rows_total', { cause: 'uncorrectable' }, 'remapped_rows/remapped_row_unc'),
  // Boards after Blackwell remap banks.
  isRemapPending: flag('row_remap_pending', undefined, 'remapped_rows/remapped_row_pending', 'remapped_banks/bank_remapper_pending'),
  isRemapFailed: flag('row_remap_failure', undefined, 'remapped_rows/remapped_row_failure'),
  banksWithMaxSpareRows: spareRows('max'),
  banksWithManySpareRows: spareRows('high'),
  banksWithSomeSpareRows: spareRows('partial'),
  banksWithFewSpareRows: spareRows('low'),
  banksWithoutSpareRows: spareRows('none'),
  hasFabricDegradedBandwidth: flag('fabric_fault', { fault: 'degraded_bandwidth' }),
  hasFabricRouteRecovery: flag('fabric_fault', { fault: 'route_recovery' }),
  hasFabricRouteUnhealthy: flag('fabric_fault', { fault: 'route_unhealthy' }),
  hasFabricAccessTimeout: flag('fabric_fault', { fault: 'access_timeout_recovery' }),
  hasFabricMisconfiguration: flag('fabric_fault', { fault: 'configuration' }),
  isPersistent: flag('persistence_mode_enabled', undefined, 'persistence_mode'),
  isMigOn: flag('mig_mode_enabled', { when: 'now' }, 'mig_mode/current_mig'),
  isMigPending: flag('mig_mode_enabled', { when: 'pending' }, 'mig_mode/pending_mig'),
  /** 0 is fastest, 15 slowest. */
  performanceState: number('performance_state', undefined, 'performance_state'),
  // Means since the previous read, which only the driver's library provides.
  graphicsActivityRatio: activity('graphics'),
  smActivityRatio: activity('sm'),
  integerActivityRatio: activity('integer'),
  tensorActivityRatio: activity('tensor'),
  dfmaActivityRatio: activity('tensor_dfma'),
  hmmaActivityRatio: activity('tensor_hmma'),
  dmmaActivityRatio: activity('tensor_dmma'),
  immaActivityRatio: activity('tensor_imma'),
  fp64ActivityRatio: activity('fp64'),
  fp32ActivityRatio: activity('fp32'),
  fp16ActivityRatio: activity('fp16'),
  occupancyRatio: number('sm_occupancy_ratio'),
  memoryBandwidthRatio: number('memory_bandwidth_ratio'),
  pcieMeanTransmitBytesPerSecond: number('traffic_bytes_per_second', { link: 'pcie', direction: 'transmit' }),
  pcieMeanReceiveBytesPerSecond: number('traffic_bytes_per_second', { link: 'pcie', direction: 'receive' }),
  nvlinkMeanReceiveBytesPerSecond: number('traffic_bytes_per_second', { link: 'nvlink', direction: 'receive' }),
  nvlinkMeanTransmitBytesPerSecond: number('traffic_bytes_per_second', { link: 'nvlink', direction: 'transmit' }),
  multiprocessors: number('mig_multiprocessors', undefined, 'device_attributes/shared/multiprocessor_count'),
} as const satisfies Readonly<Record<string, ValueSpec>>;

export type ValueKey = keyof typeof VALUES;
type ValueOf<K extends ValueKey> = (typeof VALUES)[K]['kind'] extends 'flag' ? boolean : Value;
/** Unknown values are absent. */
export type Values = { readonly [K in ValueKey]?: ValueOf<K> | undefined };

export const GPU_KEYS = (Object.keys(VALUES) as ValueKey[]).filter((key) => key !== 'multiprocessors');
export const MEMORY_KEYS: readonly ValueKey[] = [
  'memoryTotalBytes',
  'memoryUsedBytes',
  'memoryReservedBytes',
  'bar1TotalBytes',
  'bar1UsedBytes',
];
/** Values of an instance. */
export const INSTANCE_KEYS: readonly ValueKey[] = [...MEMORY_KEYS, 'multiprocessors'];

/** Returns readings of the known values, in the order of the table. */
export function valueReadings(values: Values): readonly Reading[] {
  return (Object.keys(VALUES) as ValueKey[]).flatMap((key) => {
    const value = values[key];
    const { metric, labels } = VALUES[key];
    return value === undefined ? [] : [reading(metric, typeof value === 'boolean' ? Number(value) : value, labels)];
  });
}

export const reading = (metric: string, value: Value, labels?: Labels): Reading =>
  labels === undefined ? { metric, value } : { metric, labels, value };

/** Maps the end of a metric name to its quantity: Prometheus names end with the unit. */
const QUANTITIES: readonly (readonly [RegExp, Quantity])[] = [
  [/_bytes_per_second$/, 'bytes_per_second'],
  [/_bytes$/, 'bytes'],
  [/_watts$/, 'watts'],
  [/_celsius$/, 'celsius'],
  [/_hertz$/, 'hertz'],
  [/_ratio$/, 'ratio'],
  [/_seconds_total$/, 'seconds'],
  [/_volts$/, 'volts'],
  [/_lanes$/, 'lanes'],
];

export const quantityOf = (key: ValueKey): Quantity => QUANTITIES.find(([end]) => end.test(VALUES[key].metric))?.[1] ?? 'count';
