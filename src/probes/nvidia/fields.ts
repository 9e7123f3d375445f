import type { Labels } from '../../model/metric.ts';
import { shared } from '../../model/shared-metrics.ts';

/** A number or a yes/no, and where drivers put it: newest path first, the first one that says something wins. */
export interface Field {
  readonly metric: string;
  readonly labels?: Labels;
  readonly paths: readonly string[];
  /** `flag`: yes/no, enabled/disabled, active/not active become 1 and 0. */
  readonly kind?: 'flag';
}

const number = (metric: string, paths: string | readonly string[], labels?: Labels): Field => ({
  metric,
  paths: typeof paths === 'string' ? [paths] : paths,
  ...(labels === undefined ? {} : { labels }),
});
const flag = (metric: string, paths: string | readonly string[], labels?: Labels): Field => ({
  ...number(metric, paths, labels),
  kind: 'flag',
});
const nvidia = (name: string): string => `device_nvidia_${name}`;

/** Label value to element name. */
type Names = Readonly<Record<string, string>>;
const each = (names: Names, field: (value: string, element: string) => Field): Field[] =>
  Object.entries(names).map(([value, element]) => field(value, element));

const LIMITS: Names = { shutdown: 'max', slowdown: 'slow', maximum: 'max_gpu' };
const CLOCKS: Names = { graphics: 'graphics_clock', sm: 'sm_clock', memory: 'mem_clock', video: 'video_clock' };
const ENGINES: Names = {
  gpu: 'gpu_util',
  memory: 'memory_util',
  encoder: 'encoder_util',
  decoder: 'decoder_util',
  jpeg: 'jpeg_util',
  ofa: 'ofa_util',
};
/** Drivers of the 610 branch nest the limits. */
const CEILING = 'gpu_power_readings/gpu_ceiling_power_limit';
const POWER_LIMITS: Readonly<Record<string, readonly string[]>> = {
  enforced: ['gpu_power_readings/current_power_limit', `${CEILING}/current_power_limit`, 'power_readings/enforced_power_limit'],
  requested: ['gpu_power_readings/requested_power_limit', `${CEILING}/requested_power_limit`, 'power_readings/power_limit'],
  default: ['gpu_power_readings/default_power_limit', `${CEILING}/default_power_limit`, 'power_readings/default_power_limit'],
  minimum: ['gpu_power_readings/min_power_limit', `${CEILING}/min_power_limit`, 'power_readings/min_power_limit'],
  maximum: ['gpu_power_readings/max_power_limit', `${CEILING}/max_power_limit`, 'power_readings/max_power_limit'],
};
const THROTTLE_REASONS = [
  'gpu_idle',
  'applications_clocks_setting',
  'sw_power_cap',
  'hw_slowdown',
  'hw_thermal_slowdown',
  'hw_power_brake_slowdown',
  'sync_boost',
  'sw_thermal_slowdown',
  'display_clocks_setting',
  'board_limit',
  'reliability',
];
const THROTTLE_COUNTERS: Names = {
  sw_power_cap: 'sw_power_cap',
  sync_boost: 'sync_boost',
  sw_thermal_slowdown: 'sw_therm_slowdown',
  hw_thermal_slowdown: 'hw_therm_slowdown',
  hw_power_brake_slowdown: 'hw_power_brake',
};
const SRAM_UNITS: Names = { l2: 'sram_l2', sm: 'sram_sm', microcontroller: 'sram_microcontroller', pcie: 'sram_pcie', other: 'sram_other' };
const LINK = 'pci/pci_gpu_link_info';

/** Memory in terms of one element, for GPUs and MIG instances alike. */
export const memoryFields: readonly Field[] = [
  number(shared.memoryTotal.name, 'fb_memory_usage/total'),
  number(shared.memoryUsed.name, 'fb_memory_usage/used'),
  number(shared.memoryReserved.name, 'fb_memory_usage/reserved'),
  number(nvidia('bar1_memory_total_bytes'), 'bar1_memory_usage/total'),
  number(nvidia('bar1_memory_used_bytes'), 'bar1_memory_usage/used'),
];

export const gpuFields: readonly Field[] = [
  ...memoryFields,
  number(nvidia('protected_memory_total_bytes'), 'cc_protected_memory_usage/total'),
  number(nvidia('protected_memory_used_bytes'), 'cc_protected_memory_usage/used'),
  ...each(ENGINES, (engine, element) => number(shared.utilization.name, `utilization/${element}`, { engine })),
  number(shared.temperature.name, 'temperature/gpu_temp', { sensor: 'gpu' }),
  number(shared.temperature.name, 'temperature/memory_temp', { sensor: 'memory' }),
  ...each(LIMITS, (limit, element) =>
    number(shared.temperatureLimit.name, `temperature/gpu_temp_${element}_threshold`, { sensor: 'gpu', limit }),
  ),
  number(shared.temperatureLimit.name, 'temperature/gpu_target_temperature', { sensor: 'gpu', limit: 'target' }),
  number(shared.temperatureLimit.name, 'temperature/gpu_temp_max_mem_threshold', { sensor: 'memory', limit: 'maximum' }),
  number(nvidia('temperature_margin_celsius'), 'temperature/gpu_temp_tlimit'),
  // Margins and degrees are different things: never in one metric.
  ...each(LIMITS, (limit, element) =>
    number(nvidia('temperature_limit_margin_celsius'), `temperature/gpu_temp_${element}_tlimit_threshold`, { limit }),
  ),
  number(nvidia('temperature_limit_margin_celsius'), 'temperature/gpu_temp_max_mem_tlimit_threshold', { limit: 'memory_maximum' }),
  number(
    shared.power.name,
    [
      'gpu_power_readings/instant_power_draw',
      'gpu_power_readings/power_draw',
      'power_readings/instant_power_draw',
      'power_readings/power_draw',
    ],
    { sensor: 'gpu' },
  ),
  number(shared.power.name, ['gpu_power_readings/average_power_draw'], { sensor: 'gpu_average' }),
  number(shared.power.name, ['gpu_memory_power_readings/instant_power_draw', 'gpu_memory_power_readings/power_draw'], { sensor: 'memory' }),
  number(shared.power.name, ['module_power_readings/instant_power_draw', 'module_power_readings/power_draw'], { sensor: 'module' }),
  number(shared.power.name, 'module_power_readings/average_power_draw', { sensor: 'module_average' }),
  number(shared.energy.name, 'nvml/energy'),
  ...Object.entries(POWER_LIMITS).map(([limit, paths]) => number(shared.powerLimit.name, paths, { limit })),
  number(shared.voltage.name, 'voltage/graphics_volt', { sensor: 'graphics' }),
  ...each(CLOCKS, (clock, element) => number(shared.clock.name, `clocks/${element}`, { clock })),
  ...each(CLOCKS, (clock, element) => number(shared.clockMax.name, `max_clocks/${element}`, { clock })),
  number(shared.fanRatio.name, 'fan_speed', { fan: '0' }),
  ...THROTTLE_REASONS.map((reason) =>
    flag(
      shared.throttled.name,
      [`clocks_event_reasons/clocks_event_reason_${reason}`, `clocks_throttle_reasons/clocks_throttle_reason_${reason}`],
      { reason },
    ),
  ),
  ...each(THROTTLE_COUNTERS, (reason, element) =>
    number(shared.throttledTime.name, `clocks_event_reasons_counters/clocks_event_reasons_counters_${element}`, { reason }),
  ),
  ...['board_limit', 'low_utilization', 'reliability'].map((reason) =>
    number(shared.throttledTime.name, `nvml/throttled/${reason}`, { reason }),
  ),
  number(shared.pcieWidth.name, `${LINK}/link_widths/current_link_width`),
  number(shared.pcieWidthMax.name, `${LINK}/link_widths/max_link_width`),
  number(shared.pcieGeneration.name, [`${LINK}/pcie_gen/current_link_gen`, `${LINK}/pcie_gen/device_current_link_gen`]),
  number(shared.pcieGenerationMax.name, `${LINK}/pcie_gen/max_link_gen`),
  number(shared.pcieReplays.name, 'pci/replay_counter'),
  number(nvidia('pcie_replay_rollovers_total'), 'pci/replay_rollover_counter'),
  number(nvidia('pcie_throughput_bytes_per_second'), 'pci/tx_util', { direction: 'transmit' }),
  number(nvidia('pcie_throughput_bytes_per_second'), 'pci/rx_util', { direction: 'receive' }),
  number(shared.transmittedBytes.name, 'nvml/pcie/transmitted', { port: 'pcie' }),
  number(shared.receivedBytes.name, 'nvml/pcie/received', { port: 'pcie' }),
  number(nvidia('encoder_sessions'), 'encoder_stats/session_count'),
  ...each(SRAM_UNITS, (unit, element) =>
    number(nvidia('ecc_sram_uncorrectable_lifetime'), `ecc_errors/aggregate_uncorrectable_sram_sources/${element}`, { unit }),
  ),
  flag(nvidia('ecc_sram_threshold_exceeded'), 'ecc_errors/aggregate/sram_threshold_exceeded'),
  flag(nvidia('ecc_mode_enabled'), 'ecc_mode/current_ecc', { when: 'now' }),
  flag(nvidia('ecc_mode_enabled'), 'ecc_mode/pending_ecc', { when: 'pending' }),
  flag(nvidia('memory_repair_pending'), 'ecc_errors/channel_repair_pending', { part: 'channel' }),
  flag(nvidia('memory_repair_pending'), 'ecc_errors/tpc_repair_pending', { part: 'tpc' }),
  flag(nvidia('memory_unrepairable'), 'ecc_errors/unrepairable_memory'),
  number(nvidia('retired_pages'), 'retired_pages/multiple_single_bit_retirement/retired_count', { cause: 'single_bit' }),
  number(nvidia('retired_pages'), 'retired_pages/double_bit_retirement/retired_count', { cause: 'double_bit' }),
  flag(nvidia('retired_pages_pending'), ['retired_pages/pending_retirement', 'retired_pages/pending_blacklist']),
  number(nvidia('remapped_rows_total'), 'remapped_rows/remapped_row_corr', { cause: 'correctable' }),
  number(nvidia('remapped_rows_total'), 'remapped_rows/remapped_row_unc', { cause: 'uncorrectable' }),
  flag(nvidia('row_remap_pending'), ['remapped_rows/remapped_row_pending', 'remapped_banks/bank_remapper_pending']),
  flag(nvidia('row_remap_failure'), 'remapped_rows/remapped_row_failure'),
  ...['max', 'high', 'partial', 'low', 'none'].map((availability) =>
    number(nvidia('row_remap_banks'), `remapped_rows/row_remapper_histogram/row_remapper_histogram_${availability}`, { availability }),
  ),
  ...['degraded_bandwidth', 'route_recovery', 'route_unhealthy', 'access_timeout_recovery', 'configuration'].map((fault) =>
    flag(nvidia('fabric_fault'), `nvml/fabric/${fault}`, { fault }),
  ),
  flag(nvidia('persistence_mode_enabled'), 'persistence_mode'),
  flag(nvidia('mig_mode_enabled'), 'mig_mode/current_mig', { when: 'now' }),
  flag(nvidia('mig_mode_enabled'), 'mig_mode/pending_mig', { when: 'pending' }),
];

export const migFields: readonly Field[] = [
  ...memoryFields,
  number(nvidia('mig_multiprocessors'), 'device_attributes/shared/multiprocessor_count'),
];
