import { wordOf } from './codes.ts';
import type { Getter, Values, Way } from './getter.ts';
import {
  FABRIC_V1,
  FABRIC_V2,
  FABRIC_V3,
  MARGIN,
  MEMORY,
  MEMORY_V2,
  REMAP_HISTOGRAM,
  REPAIR,
  SRAM_STATUS,
  TEMPERATURE,
  UTILIZATION,
} from './layouts.ts';
import type { Memory } from './memory.ts';
import {
  ARCHITECTURES,
  BRANDS,
  COMPUTE_MODES,
  FABRIC_COMPLETED,
  FABRIC_CONFIGURATION_SHIFT,
  FABRIC_FAULT_SHIFTS,
  FABRIC_HEALTH_WORDS,
  FABRIC_STATE_WORDS,
  REASON_BITS,
} from './words.ts';

/**
 * Which function tells what. Source of functions, units and struct layouts: nvml.h 13.3. Symbols with a number are named with it:
 * the plain ones in the library are the first version, of an older struct.
 */

type Convert = (value: number) => string | number | undefined;
const same: Convert = (value) => value;
const percent: Convert = (value) => value / 100;
const megahertz: Convert = (value) => value * 1e6;
const milliwatts: Convert = (value) => value / 1_000;
const digits: Convert = (value) => String(value);
const flag: Convert = (value) => (value === 0 ? 0 : 1);

const u32 = (symbol: string, path: string, convert: Convert = same, before: readonly number[] = []): Way => ({
  symbol,
  before,
  tell: (out, values) => {
    values[path] = convert(out.u32(0));
  },
});
const u64 = (symbol: string, path: string, before: readonly number[] = []): Way => ({
  symbol,
  before,
  tell: (out, values) => {
    values[path] = out.u64(0);
  },
});
const text = (symbol: string, path: string, length: number): Way => ({
  symbol,
  after: [length],
  tell: (out, values) => {
    values[path] = out.text(0, length);
  },
});
const one = (path: string, ...ways: [Way, ...Way[]]): Getter => ({ ways, paths: [path] });
/** Several answers of 32 bits each. */
const several = (symbol: string, paths: readonly string[], convert: Convert = same): Getter => ({
  paths,
  ways: [
    {
      symbol,
      outs: paths.length,
      tell: (out, values) => {
        for (const [index, path] of paths.entries()) values[path] = convert(out.u32(index * 8));
      },
    },
  ],
});

const MEMORY_PATHS = ['fb_memory_usage/total', 'fb_memory_usage/used', 'fb_memory_usage/reserved'] as const;
const [TOTAL, USED, RESERVED] = MEMORY_PATHS;

/** The first version counts what driver and firmware keep as used. */
export const memoryGetter: Getter = {
  paths: MEMORY_PATHS,
  ways: [
    {
      symbol: 'nvmlDeviceGetMemoryInfo_v2',
      struct: MEMORY_V2,
      tell: (out, values) => {
        values[TOTAL] = out.u64(MEMORY_V2.total);
        values[USED] = out.u64(MEMORY_V2.used);
        values[RESERVED] = out.u64(MEMORY_V2.reserved);
      },
    },
    { symbol: 'nvmlDeviceGetMemoryInfo', size: MEMORY.size, tell: (out, values) => usage(out, values, 'fb_memory_usage') },
  ],
};

function usage(out: Memory, values: Values, path: string): void {
  values[`${path}/total`] = out.u64(MEMORY.total);
  values[`${path}/used`] = out.u64(MEMORY.used);
}

export const bar1Getter: Getter = {
  paths: ['bar1_memory_usage/total', 'bar1_memory_usage/used'],
  ways: [{ symbol: 'nvmlDeviceGetBAR1MemoryInfo', size: MEMORY.size, tell: (out, values) => usage(out, values, 'bar1_memory_usage') }],
};

/** By kind of clock. */
const CLOCKS = ['graphics_clock', 'sm_clock', 'mem_clock', 'video_clock'];
const LINK_GENERATION = 'pci/pci_gpu_link_info/pcie_gen';
const LINK_WIDTH = 'pci/pci_gpu_link_info/link_widths';

const reasons: Getter = {
  paths: Object.keys(REASON_BITS).map((reason) => `clocks_event_reasons/clocks_event_reason_${reason}`),
  ways: [reasonsBy('nvmlDeviceGetCurrentClocksEventReasons'), reasonsBy('nvmlDeviceGetCurrentClocksThrottleReasons')],
};

function reasonsBy(symbol: string): Way {
  const bits = Object.entries(REASON_BITS).map(([reason, bit]) => [`clocks_event_reasons/clocks_event_reason_${reason}`, bit] as const);
  return {
    symbol,
    tell: (out, values) => {
      const mask = out.u32(0);
      for (const [path, bit] of bits) values[path] = (mask & bit) === 0 ? 0 : 1;
    },
  };
}

const temperature: Getter = one(
  'temperature/gpu_temp',
  {
    symbol: 'nvmlDeviceGetTemperatureV',
    struct: TEMPERATURE,
    tell: (out, values) => {
      values['temperature/gpu_temp'] = out.i32(TEMPERATURE.value);
    },
  },
  u32('nvmlDeviceGetTemperature', 'temperature/gpu_temp', same, [0]),
);

const margin: Getter = one('temperature/gpu_temp_tlimit', {
  symbol: 'nvmlDeviceGetMarginTemperature',
  struct: MARGIN,
  tell: (out, values) => {
    values['temperature/gpu_temp_tlimit'] = out.i32(MARGIN.value);
  },
});

const FABRIC_FAULTS = Object.entries(FABRIC_FAULT_SHIFTS).map(([fault, shift]) => ({ path: `nvml/fabric/${fault}`, shift }));
const FABRIC_CONFIGURATION = 'nvml/fabric/configuration';

const fabric: Getter = {
  paths: ['fabric/state', 'fabric/status', 'fabric/health/summary', ...FABRIC_FAULTS.map(({ path }) => path), FABRIC_CONFIGURATION],
  ways: [
    { symbol: 'nvmlDeviceGetGpuFabricInfoV', struct: FABRIC_V3, tell: (out, values) => fabricState(out, values, FABRIC_V3) },
    { symbol: 'nvmlDeviceGetGpuFabricInfoV', struct: FABRIC_V2, tell: (out, values) => fabricState(out, values, FABRIC_V2) },
    { symbol: 'nvmlDeviceGetGpuFabricInfo', size: FABRIC_V1.size, tell: (out, values) => fabricState(out, values, FABRIC_V1) },
  ],
};

interface FabricLayout {
  readonly status: number;
  readonly state: number;
  readonly healthMask?: number;
  readonly healthSummary?: number;
}

function fabricState(out: Memory, values: Values, layout: FabricLayout): void {
  const state = out.u8(layout.state);
  values['fabric/state'] = FABRIC_STATE_WORDS[state];
  // The status means something once the registration has ended.
  values['fabric/status'] = state === FABRIC_COMPLETED ? wordOf(out.u32(layout.status)) : 'N/A';
  values['fabric/health/summary'] = layout.healthSummary === undefined ? undefined : FABRIC_HEALTH_WORDS[out.u8(layout.healthSummary)];
  if (layout.healthMask === undefined) return;
  const mask = out.u32(layout.healthMask);
  for (const { path, shift } of FABRIC_FAULTS) {
    const told = (mask >>> shift) & 3;
    values[path] = told === 1 ? 1 : told === 2 ? 0 : undefined;
  }
  const configuration = (mask >>> FABRIC_CONFIGURATION_SHIFT) & 15;
  values[FABRIC_CONFIGURATION] = configuration === 0 ? undefined : configuration === 1 ? 0 : 1;
}

/** Error types, kinds of counters and locations of `nvmlDeviceGetMemoryErrorCounter`. */
const [CORRECTED, UNCORRECTED] = [0, 1];
const [VOLATILE, AGGREGATE] = [0, 1];
const LOCATIONS = { l1_cache: 0, l2_cache: 1, device_memory: 2, register_file: 3, texture_memory: 4, texture_shm: 5, cbu: 6 };
const [DRAM, SRAM] = [2, 7];

const errors = (path: string, type: number, counter: number, location: number): Getter =>
  one(path, u64('nvmlDeviceGetMemoryErrorCounter', path, [type, counter, location]));

const unified = (period: string, counter: number): readonly Getter[] => [
  errors(`ecc_errors/${period}/sram_correctable`, CORRECTED, counter, SRAM),
  errors(`ecc_errors/${period}/sram_uncorrectable`, UNCORRECTED, counter, SRAM),
  errors(`ecc_errors/${period}/dram_correctable`, CORRECTED, counter, DRAM),
  errors(`ecc_errors/${period}/dram_uncorrectable`, UNCORRECTED, counter, DRAM),
];
const byBits = (period: string, counter: number): readonly Getter[] =>
  Object.entries(LOCATIONS).flatMap(([name, location]) => [
    errors(`ecc_errors/${period}/single_bit/${name}`, CORRECTED, counter, location),
    errors(`ecc_errors/${period}/double_bit/${name}`, UNCORRECTED, counter, location),
  ]);

/** Boards up to Volta count by single and double bits, later ones by SRAM and DRAM. */
export const eccGetters = {
  volatile: { unified: unified('volatile', VOLATILE), byBits: byBits('volatile', VOLATILE) },
  aggregate: { unified: unified('aggregate', AGGREGATE), byBits: byBits('aggregate', AGGREGATE) },
} as const;

/** The only errors that the driver tells of an instance. */
export const instanceErrors: Getter = errors('ecc_error_count/volatile_count/sram_uncorrectable', UNCORRECTED, VOLATILE, SRAM);

/** Drivers without the field of the present power have a function for it. */
export const powerGetter: Getter = one(
  'gpu_power_readings/power_draw',
  u32('nvmlDeviceGetPowerUsage', 'gpu_power_readings/power_draw', milliwatts),
);

const clock = (name: string, prefix: string, symbol: string): Getter =>
  one(`${prefix}/${name}`, u32(symbol, `${prefix}/${name}`, megahertz, [CLOCKS.indexOf(name)]));

/** What changes from one second to the next, and what a program that is lost hangs on. */
export const fastGetters: readonly Getter[] = [
  temperature,
  memoryGetter,
  {
    paths: ['utilization/gpu_util', 'utilization/memory_util'],
    ways: [
      {
        symbol: 'nvmlDeviceGetUtilizationRates',
        tell: (out, values) => {
          values['utilization/gpu_util'] = out.u32(UTILIZATION.gpu) / 100;
          values['utilization/memory_util'] = out.u32(UTILIZATION.memory) / 100;
        },
      },
    ],
  },
  margin,
  clock('sm_clock', 'clocks', 'nvmlDeviceGetClockInfo'),
  reasons,
  {
    paths: ['corr', 'unc', 'pending', 'failure'].map((what) => `remapped_rows/remapped_row_${what}`),
    ways: [
      {
        symbol: 'nvmlDeviceGetRemappedRows',
        outs: 4,
        tell: (out, values) => {
          values['remapped_rows/remapped_row_corr'] = out.u32(0);
          values['remapped_rows/remapped_row_unc'] = out.u32(8);
          values['remapped_rows/remapped_row_pending'] = flag(out.u32(16));
          values['remapped_rows/remapped_row_failure'] = flag(out.u32(24));
        },
      },
    ],
  },
];

/** Asked for before instances are looked for. */
export const splitGetters: readonly Getter[] = [several('nvmlDeviceGetMigMode', ['mig_mode/current_mig', 'mig_mode/pending_mig'], flag)];

const HISTOGRAM = ['max', 'high', 'partial', 'low', 'none'] as const;
const SRAM_UNITS = ['l2', 'sm', 'pcie', 'microcontroller', 'other'] as const;
const SRAM_SOURCES = 'ecc_errors/aggregate_uncorrectable_sram_sources';

/** What can wait for half a minute: engines that most programs leave alone, links, what a board says of its repairs. */
export const slowGetters: readonly Getter[] = [
  ...Object.entries({ Encoder: 'encoder', Decoder: 'decoder', Jpg: 'jpeg', Ofa: 'ofa' }).map(([name, engine]) =>
    one(`utilization/${engine}_util`, { ...u32(`nvmlDeviceGet${name}Utilization`, `utilization/${engine}_util`, percent), outs: 2 }),
  ),
  // The first is that of the multiprocessors on boards for computing, the last hardly moves.
  ...['graphics_clock', 'video_clock', 'mem_clock'].map((name) => clock(name, 'clocks', 'nvmlDeviceGetClockInfo')),
  one(
    'performance_state',
    u32('nvmlDeviceGetPerformanceState', 'performance_state', (state) => (state <= 15 ? `P${state}` : undefined)),
  ),
  one('fan_speed', u32('nvmlDeviceGetFanSpeed_v2', 'fan_speed', percent, [0]), u32('nvmlDeviceGetFanSpeed', 'fan_speed', percent)),
  one(`${LINK_GENERATION}/current_link_gen`, u32('nvmlDeviceGetCurrPcieLinkGeneration', `${LINK_GENERATION}/current_link_gen`)),
  one(`${LINK_WIDTH}/current_link_width`, u32('nvmlDeviceGetCurrPcieLinkWidth', `${LINK_WIDTH}/current_link_width`)),
  one('pci/replay_counter', u32('nvmlDeviceGetPcieReplayCounter', 'pci/replay_counter')),
  fabric,
  bar1Getter,
  { paths: ['encoder_stats/session_count'], ways: [{ ...u32('nvmlDeviceGetEncoderStats', 'encoder_stats/session_count'), outs: 3 }] },
  {
    paths: HISTOGRAM.map((what) => `remapped_rows/row_remapper_histogram/row_remapper_histogram_${what}`),
    ways: [
      {
        symbol: 'nvmlDeviceGetRowRemapperHistogram',
        size: REMAP_HISTOGRAM.size,
        tell: (out, values) => {
          for (const what of HISTOGRAM)
            values[`remapped_rows/row_remapper_histogram/row_remapper_histogram_${what}`] = out.u32(REMAP_HISTOGRAM[what]);
        },
      },
    ],
  },
  {
    paths: [...SRAM_UNITS.map((unit) => `${SRAM_SOURCES}/sram_${unit}`), 'ecc_errors/aggregate/sram_threshold_exceeded'],
    ways: [
      {
        symbol: 'nvmlDeviceGetSramEccErrorStatus',
        struct: SRAM_STATUS,
        tell: (out, values) => {
          for (const unit of SRAM_UNITS) values[`${SRAM_SOURCES}/sram_${unit}`] = out.u64(SRAM_STATUS[unit]);
          values['ecc_errors/aggregate/sram_threshold_exceeded'] = flag(out.u32(SRAM_STATUS.thresholdExceeded));
        },
      },
    ],
  },
  {
    paths: ['ecc_errors/channel_repair_pending', 'ecc_errors/tpc_repair_pending'],
    ways: [
      {
        symbol: 'nvmlDeviceGetRepairStatus',
        struct: REPAIR,
        tell: (out, values) => {
          values['ecc_errors/channel_repair_pending'] = flag(out.u32(REPAIR.channel));
          values['ecc_errors/tpc_repair_pending'] = flag(out.u32(REPAIR.tpc));
        },
      },
    ],
  },
  one('ecc_errors/unrepairable_memory', u32('nvmlDeviceGetUnrepairableMemoryFlag_v1', 'ecc_errors/unrepairable_memory', flag)),
  {
    paths: ['cc_protected_memory_usage/total', 'cc_protected_memory_usage/used'],
    ways: [
      {
        symbol: 'nvmlDeviceGetConfComputeProtectedMemoryUsage',
        size: MEMORY.size,
        tell: (out, values) => usage(out, values, 'cc_protected_memory_usage'),
      },
    ],
  },
];

/** What stays until somebody changes it: limits and modes. */
export const factGetters: readonly Getter[] = [
  several('nvmlDeviceGetEccMode', ['ecc_mode/current_ecc', 'ecc_mode/pending_ecc'], flag),
  one('persistence_mode', u32('nvmlDeviceGetPersistenceMode', 'persistence_mode', flag)),
  one(
    'compute_mode',
    u32('nvmlDeviceGetComputeMode', 'compute_mode', (mode) => COMPUTE_MODES[mode]),
  ),
  ...Object.entries({ current: 'EnforcedPowerLimit', requested: 'PowerManagementLimit', default: 'PowerManagementDefaultLimit' }).map(
    ([limit, name]) =>
      one(`gpu_power_readings/${limit}_power_limit`, u32(`nvmlDeviceGet${name}`, `gpu_power_readings/${limit}_power_limit`, milliwatts)),
  ),
  several(
    'nvmlDeviceGetPowerManagementLimitConstraints',
    ['gpu_power_readings/min_power_limit', 'gpu_power_readings/max_power_limit'],
    milliwatts,
  ),
  ...CLOCKS.map((name) => clock(name, 'max_clocks', 'nvmlDeviceGetMaxClockInfo')),
  one(`${LINK_GENERATION}/max_link_gen`, u32('nvmlDeviceGetMaxPcieLinkGeneration', `${LINK_GENERATION}/max_link_gen`)),
  one(`${LINK_WIDTH}/max_link_width`, u32('nvmlDeviceGetMaxPcieLinkWidth', `${LINK_WIDTH}/max_link_width`)),
];

const THRESHOLDS = ['max', 'slow', 'max_mem', 'max_gpu'];

/** Limits in degrees, which boards have that do not tell them as degrees left. */
export const thresholdGetters: readonly Getter[] = THRESHOLDS.map((limit, type) =>
  one(
    `temperature/gpu_temp_${limit}_threshold`,
    u32('nvmlDeviceGetTemperatureThreshold', `temperature/gpu_temp_${limit}_threshold`, same, [type]),
  ),
);
export const TEMPERATURE_MARGINS: readonly string[] = THRESHOLDS.map((limit) => `temperature/gpu_temp_${limit}_tlimit_threshold`);

/** What a board is: read once for each handle. */
export const identityGetters: readonly Getter[] = [
  one('uuid', text('nvmlDeviceGetUUID', 'uuid', 96)),
  one('product_name', text('nvmlDeviceGetName', 'product_name', 96)),
  one('serial', text('nvmlDeviceGetSerial', 'serial', 30)),
  one('board_part_number', text('nvmlDeviceGetBoardPartNumber', 'board_part_number', 80)),
  one('vbios_version', text('nvmlDeviceGetVbiosVersion', 'vbios_version', 32)),
  one('gsp_firmware_version', { ...text('nvmlDeviceGetGspFirmwareVersion', 'gsp_firmware_version', 80), after: [], size: 80 }),
  one('minor_number', u32('nvmlDeviceGetMinorNumber', 'minor_number', digits)),
  one('gpu_module_id', u32('nvmlDeviceGetModuleId', 'gpu_module_id', digits)),
  one(
    'product_brand',
    u32('nvmlDeviceGetBrand', 'product_brand', (brand) => BRANDS[brand]),
  ),
  {
    paths: ['product_architecture', 'nvml/architecture'],
    ways: [
      {
        symbol: 'nvmlDeviceGetArchitecture',
        tell: (out, values) => {
          values.product_architecture = ARCHITECTURES[out.u32(0)];
          values['nvml/architecture'] = out.u32(0);
        },
      },
    ],
  },
];
