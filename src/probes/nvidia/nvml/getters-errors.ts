import type { Getter } from './getter.ts';
import { REMAP_HISTOGRAM, REPAIR, SRAM_STATUS } from './layouts.ts';
import { flag, one, u32, u64 } from './ways.ts';

/** Errors by memory, and what a board says of its repairs. */

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

const HISTOGRAM = ['max', 'high', 'partial', 'low', 'none'] as const;
const SRAM_UNITS = ['l2', 'sm', 'pcie', 'microcontroller', 'other'] as const;
const SRAM_SOURCES = 'ecc_errors/aggregate_uncorrectable_sram_sources';

/** What follows from errors, or from a reset. */
export const repairGetters: readonly Getter[] = [
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
];
