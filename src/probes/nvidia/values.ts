import type { Labels, MetricSpec, Value } from '../../model/metric.ts';
import { metrics } from './metrics.ts';

/** What a value counts, in its base unit. A flag is yes or no, enabled or disabled, active or not. */
export type Quantity =
  | 'bytes'
  | 'bytes_per_second'
  | 'watts'
  | 'joules'
  | 'celsius'
  | 'hertz'
  | 'ratio'
  | 'seconds'
  | 'volts'
  | 'lanes'
  | 'count'
  | 'flag';

/** One value of a GPU or instance: what it counts, its metric, and its paths in `nvidia-smi -q -x`. */
interface ValueSpec {
  readonly quantity: Quantity;
  readonly metric: MetricSpec;
  readonly labels: Labels | undefined;
  /** Paths, newest first, because drivers rename elements. Empty when only the driver's library provides the value. */
  readonly paths: readonly string[];
}

const of =
  <Q extends ValueSpec['quantity']>(quantity: Q) =>
  (metric: MetricSpec, labels?: Labels, ...paths: readonly string[]) =>
    ({ quantity, metric, labels, paths }) as const;
const [count, ratio, bytes, bytesPerSecond, seconds, flag] = [
  of('count'),
  of('ratio'),
  of('bytes'),
  of('bytes_per_second'),
  of('seconds'),
  of('flag'),
];
const [celsius, watts, joules, volts, hertz, lanes] = [of('celsius'), of('watts'), of('joules'), of('volts'), of('hertz'), of('lanes')];

const DEGREES = 'temperature/gpu_temp';
/** Drivers of the 610 branch nest the limits in another element. */
const powerLimit = (limit: string, name: string, oldName = name) =>
  watts(
    metrics.powerLimit,
    { limit },
    `gpu_power_readings/${name}`,
    `gpu_power_readings/gpu_ceiling_power_limit/${name}`,
    `power_readings/${oldName}`,
  );
const throttled = (reason: string) =>
  flag(
    metrics.throttled,
    { reason },
    `clocks_event_reasons/clocks_event_reason_${reason}`,
    `clocks_throttle_reasons/clocks_throttle_reason_${reason}`,
  );
const throttledTime = (reason: string, name: string) =>
  seconds(metrics.throttledTime, { reason }, `clocks_event_reasons_counters/clocks_event_reasons_counters_${name}`);
const LINK = 'pci/pci_gpu_link_info';
const lifetimeErrors = (unit: string) =>
  count(metrics.eccSramUncorrectableErrors, { unit }, `ecc_errors/aggregate_uncorrectable_sram_sources/sram_${unit}`);
const spareRows = (availability: string) =>
  count(metrics.rowRemapBanks, { availability }, `remapped_rows/row_remapper_histogram/row_remapper_histogram_${availability}`);

const activity = (unit: string) => ratio(metrics.activity, { unit });

/** All values that are a single number or flag. */
export const VALUES = {
  memoryTotalBytes: bytes(metrics.memoryTotal, undefined, 'fb_memory_usage/total'),
  memoryUsedBytes: bytes(metrics.memoryUsed, undefined, 'fb_memory_usage/used'),
  memoryReservedBytes: bytes(metrics.memoryReserved, undefined, 'fb_memory_usage/reserved'),
  bar1TotalBytes: bytes(metrics.bar1MemoryTotal, undefined, 'bar1_memory_usage/total'),
  bar1UsedBytes: bytes(metrics.bar1MemoryUsed, undefined, 'bar1_memory_usage/used'),
  protectedTotalBytes: bytes(metrics.protectedMemoryTotal, undefined, 'cc_protected_memory_usage/total'),
  protectedUsedBytes: bytes(metrics.protectedMemoryUsed, undefined, 'cc_protected_memory_usage/used'),
  busyRatio: ratio(metrics.utilization, { engine: 'gpu' }, 'utilization/gpu_util'),
  memoryBusyRatio: ratio(metrics.utilization, { engine: 'memory' }, 'utilization/memory_util'),
  encoderBusyRatio: ratio(metrics.utilization, { engine: 'encoder' }, 'utilization/encoder_util'),
  decoderBusyRatio: ratio(metrics.utilization, { engine: 'decoder' }, 'utilization/decoder_util'),
  jpegBusyRatio: ratio(metrics.utilization, { engine: 'jpeg' }, 'utilization/jpeg_util'),
  ofaBusyRatio: ratio(metrics.utilization, { engine: 'ofa' }, 'utilization/ofa_util'),
  temperatureCelsius: celsius(metrics.temperature, { sensor: 'gpu' }, DEGREES),
  memoryTemperatureCelsius: celsius(metrics.temperature, { sensor: 'memory' }, 'temperature/memory_temp'),
  shutdownCelsius: celsius(metrics.temperatureLimit, { sensor: 'gpu', limit: 'shutdown' }, `${DEGREES}_max_threshold`),
  slowdownCelsius: celsius(metrics.temperatureLimit, { sensor: 'gpu', limit: 'slowdown' }, `${DEGREES}_slow_threshold`),
  maximumCelsius: celsius(metrics.temperatureLimit, { sensor: 'gpu', limit: 'maximum' }, `${DEGREES}_max_gpu_threshold`),
  targetCelsius: celsius(metrics.temperatureLimit, { sensor: 'gpu', limit: 'target' }, 'temperature/gpu_target_temperature'),
  memoryMaximumCelsius: celsius(metrics.temperatureLimit, { sensor: 'memory', limit: 'maximum' }, `${DEGREES}_max_mem_threshold`),
  // Degrees left before the GPU slows down. Margins and temperatures must not share a metric.
  marginCelsius: celsius(metrics.temperatureMargin, undefined, `${DEGREES}_tlimit`),
  shutdownMarginCelsius: celsius(metrics.temperatureLimitMargin, { limit: 'shutdown' }, `${DEGREES}_max_tlimit_threshold`),
  slowdownMarginCelsius: celsius(metrics.temperatureLimitMargin, { limit: 'slowdown' }, `${DEGREES}_slow_tlimit_threshold`),
  maximumMarginCelsius: celsius(metrics.temperatureLimitMargin, { limit: 'maximum' }, `${DEGREES}_max_gpu_tlimit_threshold`),
  memoryMaximumMarginCelsius: celsius(metrics.temperatureLimitMargin, { limit: 'memory_maximum' }, `${DEGREES}_max_mem_tlimit_threshold`),
  powerWatts: watts(
    metrics.power,
    { sensor: 'gpu' },
    'gpu_power_readings/instant_power_draw',
    'gpu_power_readings/power_draw',
    'power_readings/instant_power_draw',
    'power_readings/power_draw',
  ),
  averagePowerWatts: watts(metrics.power, { sensor: 'gpu_average' }, 'gpu_power_readings/average_power_draw'),
  memoryPowerWatts: watts(
    metrics.power,
    { sensor: 'memory' },
    'gpu_memory_power_readings/instant_power_draw',
    'gpu_memory_power_readings/power_draw',
  ),
  /** H100 to GB300 give no other power of their memory. */
  averageMemoryPowerWatts: watts(metrics.power, { sensor: 'memory_average' }, 'gpu_memory_power_readings/average_power_draw'),
  modulePowerWatts: watts(
    metrics.power,
    { sensor: 'module' },
    'module_power_readings/instant_power_draw',
    'module_power_readings/power_draw',
  ),
  averageModulePowerWatts: watts(metrics.power, { sensor: 'module_average' }, 'module_power_readings/average_power_draw'),
  energyJoules: joules(metrics.energy),
  enforcedLimitWatts: powerLimit('enforced', 'current_power_limit', 'enforced_power_limit'),
  requestedLimitWatts: powerLimit('requested', 'requested_power_limit', 'power_limit'),
  defaultLimitWatts: powerLimit('default', 'default_power_limit'),
  minimumLimitWatts: powerLimit('minimum', 'min_power_limit'),
  maximumLimitWatts: powerLimit('maximum', 'max_power_limit'),
  graphicsVolts: volts(metrics.voltage, { sensor: 'graphics' }, 'voltage/graphics_volt'),
  graphicsHertz: hertz(metrics.clock, { clock: 'graphics' }, 'clocks/graphics_clock'),
  smHertz: hertz(metrics.clock, { clock: 'sm' }, 'clocks/sm_clock'),
  memoryHertz: hertz(metrics.clock, { clock: 'memory' }, 'clocks/mem_clock'),
  videoHertz: hertz(metrics.clock, { clock: 'video' }, 'clocks/video_clock'),
  graphicsMaxHertz: hertz(metrics.clockMax, { clock: 'graphics' }, 'max_clocks/graphics_clock'),
  smMaxHertz: hertz(metrics.clockMax, { clock: 'sm' }, 'max_clocks/sm_clock'),
  memoryMaxHertz: hertz(metrics.clockMax, { clock: 'memory' }, 'max_clocks/mem_clock'),
  videoMaxHertz: hertz(metrics.clockMax, { clock: 'video' }, 'max_clocks/video_clock'),
  fanRatio: ratio(metrics.fanRatio, { fan: '0' }, 'fan_speed'),
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
  boardLimitSeconds: seconds(metrics.throttledTime, { reason: 'board_limit' }),
  lowUtilizationSeconds: seconds(metrics.throttledTime, { reason: 'low_utilization' }),
  reliabilitySeconds: seconds(metrics.throttledTime, { reason: 'reliability' }),
  pcieLanes: lanes(metrics.pcieWidth, undefined, `${LINK}/link_widths/current_link_width`),
  pcieMaxLanes: lanes(metrics.pcieWidthMax, undefined, `${LINK}/link_widths/max_link_width`),
  pcieGeneration: count(metrics.pcieGeneration, undefined, `${LINK}/pcie_gen/current_link_gen`, `${LINK}/pcie_gen/device_current_link_gen`),
  pcieMaxGeneration: count(metrics.pcieGenerationMax, undefined, `${LINK}/pcie_gen/max_link_gen`),
  pcieReplays: count(metrics.pcieReplays, undefined, 'pci/replay_counter'),
  pcieReplayRollovers: count(metrics.pcieReplayRollovers, undefined, 'pci/replay_rollover_counter'),
  pcieTransmitBytesPerSecond: bytesPerSecond(metrics.pcieThroughput, { direction: 'transmit' }, 'pci/tx_util'),
  pcieReceiveBytesPerSecond: bytesPerSecond(metrics.pcieThroughput, { direction: 'receive' }, 'pci/rx_util'),
  pcieTransmittedBytes: bytes(metrics.transmittedBytes, { port: 'pcie' }),
  pcieReceivedBytes: bytes(metrics.receivedBytes, { port: 'pcie' }),
  encoderSessions: count(metrics.encoderSessions, undefined, 'encoder_stats/session_count'),
  l2LifetimeErrors: lifetimeErrors('l2'),
  smLifetimeErrors: lifetimeErrors('sm'),
  microcontrollerLifetimeErrors: lifetimeErrors('microcontroller'),
  pcieLifetimeErrors: lifetimeErrors('pcie'),
  otherLifetimeErrors: lifetimeErrors('other'),
  isSramThresholdExceeded: flag(metrics.eccSramThresholdExceeded, undefined, 'ecc_errors/aggregate/sram_threshold_exceeded'),
  isEccOn: flag(metrics.eccModeEnabled, { when: 'now' }, 'ecc_mode/current_ecc'),
  isEccPending: flag(metrics.eccModeEnabled, { when: 'pending' }, 'ecc_mode/pending_ecc'),
  isChannelRepairPending: flag(metrics.memoryRepairPending, { part: 'channel' }, 'ecc_errors/channel_repair_pending'),
  isTpcRepairPending: flag(metrics.memoryRepairPending, { part: 'tpc' }, 'ecc_errors/tpc_repair_pending'),
  isMemoryUnrepairable: flag(metrics.memoryUnrepairable, undefined, 'ecc_errors/unrepairable_memory'),
  isLicensed: flag(
    metrics.vgpuLicensed,
    undefined,
    'vgpu_software_licensed_product/license_status',
    'grid_licensed_product/license_status',
  ),
  singleBitPages: count(metrics.retiredPages, { cause: 'single_bit' }, 'retired_pages/multiple_single_bit_retirement/retired_count'),
  doubleBitPages: count(metrics.retiredPages, { cause: 'double_bit' }, 'retired_pages/double_bit_retirement/retired_count'),
  arePagesPending: flag(metrics.retiredPagesPending, undefined, 'retired_pages/pending_retirement', 'retired_pages/pending_blacklist'),
  correctableRows: count(metrics.remappedRows, { cause: 'correctable' }, 'remapped_rows/remapped_row_corr'),
  uncorrectableRows: count(metrics.remappedRows, { cause: 'uncorrectable' }, 'remapped_rows/remapped_row_unc'),
  // Boards after Blackwell remap banks.
  isRemapPending: flag(metrics.rowRemapPending, undefined, 'remapped_rows/remapped_row_pending', 'remapped_banks/bank_remapper_pending'),
  isRemapFailed: flag(metrics.rowRemapFailure, undefined, 'remapped_rows/remapped_row_failure'),
  banksWithMaxSpareRows: spareRows('max'),
  banksWithManySpareRows: spareRows('high'),
  banksWithSomeSpareRows: spareRows('partial'),
  banksWithFewSpareRows: spareRows('low'),
  banksWithoutSpareRows: spareRows('none'),
  isPersistent: flag(metrics.persistenceModeEnabled, undefined, 'persistence_mode'),
  isMigOn: flag(metrics.migModeEnabled, { when: 'now' }, 'mig_mode/current_mig'),
  isMigPending: flag(metrics.migModeEnabled, { when: 'pending' }, 'mig_mode/pending_mig'),
  /** 0 is fastest, 15 slowest. */
  performanceState: count(metrics.performanceState, undefined, 'performance_state'),
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
  occupancyRatio: ratio(metrics.smOccupancy),
  memoryBandwidthRatio: ratio(metrics.memoryBandwidth),
  pcieMeanTransmitBytesPerSecond: bytesPerSecond(metrics.traffic, { link: 'pcie', direction: 'transmit' }),
  pcieMeanReceiveBytesPerSecond: bytesPerSecond(metrics.traffic, { link: 'pcie', direction: 'receive' }),
  nvlinkMeanReceiveBytesPerSecond: bytesPerSecond(metrics.traffic, { link: 'nvlink', direction: 'receive' }),
  nvlinkMeanTransmitBytesPerSecond: bytesPerSecond(metrics.traffic, { link: 'nvlink', direction: 'transmit' }),
  multiprocessors: count(metrics.migMultiprocessors, undefined, 'device_attributes/shared/multiprocessor_count'),
} as const satisfies Readonly<Record<string, ValueSpec>>;

export type ValueKey = keyof typeof VALUES;
type ValueOf<K extends ValueKey> = (typeof VALUES)[K]['quantity'] extends 'flag' ? boolean : Value;
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
