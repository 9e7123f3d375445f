import type { DriverVersion } from './driver-version.ts';
import type { Getter, Way } from './getter.ts';
import { MARGIN, MEMORY, MEMORY_V2, TEMPERATURE, UTILIZATION } from './layouts.ts';
import { clock, flag, milliwatts, one, same, several, u32, usage } from './ways.ts';
import { FIRST_WITH_LATE_REASONS, LATE_REASON_BITS, REASON_BITS } from './words.ts';

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

function reasons({ branch }: DriverVersion): Getter {
  const names = Object.entries(branch >= FIRST_WITH_LATE_REASONS ? { ...REASON_BITS, ...LATE_REASON_BITS } : REASON_BITS);
  const bits = names.map(([reason, bit]) => [`clocks_event_reasons/clocks_event_reason_${reason}`, bit] as const);
  const by = (symbol: string): Way => ({
    symbol,
    tell: (out, values) => {
      const mask = out.u32(0);
      for (const [path, bit] of bits) values[path] = (mask & bit) === 0 ? 0 : 1;
    },
  });
  return {
    paths: bits.map(([path]) => path),
    ways: [by('nvmlDeviceGetCurrentClocksEventReasons'), by('nvmlDeviceGetCurrentClocksThrottleReasons')],
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

/** Drivers without the field of the present power have a function for it. */
export const powerGetter: Getter = one(
  'gpu_power_readings/power_draw',
  u32('nvmlDeviceGetPowerUsage', 'gpu_power_readings/power_draw', milliwatts),
);

/** What changes from one second to the next, and what a program that is lost hangs on. */
export const fastGetters = (driver: DriverVersion): readonly Getter[] => [
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
  reasons(driver),
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
