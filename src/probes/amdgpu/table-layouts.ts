/** Quantity that a field of a binary table holds, in base units after scaling. */
export type Quantity =
  | 'temperature'
  | 'power'
  | 'busy'
  | 'clock'
  | 'fan'
  | 'voltage'
  | 'energy'
  /** Sum of the samples of activity, by engine. */
  | 'busyAccumulated'
  /** Sum of the samples below the highest clock, by reason. */
  | 'limited'
  | 'residency'
  | 'samples'
  | 'throttle'
  | 'throttleBits'
  | 'pcieEvent'
  | 'pcieReplays'
  | 'pcieBandwidth'
  | 'memoryTraffic'
  | 'xgmiRead'
  | 'xgmiWrite'
  | 'xgmiStatus';

export type IntegerType = 'u16' | 'u32' | 'u64';

/** `offset` in bytes, little endian. `scale` multiplies the integer. With `count` the field is an array. */
export interface Field {
  readonly quantity: Quantity;
  readonly name: string;
  readonly type: IntegerType;
  readonly offset: number;
  readonly scale: number;
  readonly count?: number;
}

/** A table of one version. `size` includes padding and is the size in the header. */
export interface Layout {
  readonly size: number;
  readonly fields: readonly Field[];
  /** Statistics of each partition. `count` is the number of records in the table, whether a partition uses them or not. */
  readonly partitions?: { readonly offset: number; readonly size: number; readonly count: number; readonly fields: readonly Field[] };
}

/** Joules of one step of the energy counter of Instinct cards. Source: comment of energy_accumulator in kgd_pp_interface.h. */
const ENERGY_STEP = 15.259e-6;
const MHZ = 1_000_000;
const PERCENT = 0.01;
const MILLI = 0.001;

const field = (quantity: Quantity, name: string, type: IntegerType, offset: number, scale = 1, count?: number): Field => ({
  quantity,
  name,
  type,
  offset,
  scale,
  ...(count === undefined ? {} : { count }),
});

const celsius = (name: string, offset: number, count?: number): Field => field('temperature', name, 'u16', offset, 1, count);
const clock = (name: string, offset: number, count?: number): Field => field('clock', name, 'u16', offset, MHZ, count);

/** Layouts come from kgd_pp_interface.h of Linux, with the natural alignment of its structures. */

const DISCRETE_11: readonly Field[] = [
  celsius('edge', 4),
  celsius('junction', 6),
  celsius('memory', 8),
  celsius('vr_gfx', 10),
  celsius('vr_soc', 12),
  celsius('vr_memory', 14),
  field('busy', 'gpu', 'u16', 16, PERCENT),
  field('busy', 'memory', 'u16', 18, PERCENT),
  field('busy', 'video', 'u16', 20, PERCENT),
  field('power', 'gpu', 'u16', 22),
  field('energy', '', 'u64', 24, ENERGY_STEP),
  clock('graphics', 54),
  clock('soc', 56),
  clock('memory', 58),
  clock('video', 60),
  clock('decoder', 62),
  field('throttle', '', 'u32', 68),
  field('fan', '0', 'u16', 72),
  field('busyAccumulated', 'gpu', 'u32', 80),
  field('busyAccumulated', 'memory', 'u32', 84),
  celsius('hbm', 88, 4),
];

const DISCRETE_13: readonly Field[] = [
  ...DISCRETE_11,
  field('voltage', 'soc', 'u16', 104, MILLI),
  field('voltage', 'vddgfx', 'u16', 106, MILLI),
  field('voltage', 'memory', 'u16', 108, MILLI),
  field('throttleBits', '', 'u64', 112),
];

/** Offsets of the parts of a table of an Instinct card. The fields before offset 16 are the same in all versions. */
interface InstinctOffsets {
  readonly energy: number;
  readonly throttle?: number;
  readonly samples?: number;
  readonly busyAccumulated: number;
  readonly pcieInstant: number;
  readonly nak?: number;
  readonly otherEnd?: number;
  readonly xgmi: number;
  readonly status?: number;
  readonly clocks: number;
  readonly memoryClock: number;
}

const RESIDENCIES: readonly string[] = ['prochot', 'power', 'socket_thermal', 'vr_thermal', 'hbm_thermal'];

function instinct(at: InstinctOffsets): readonly Field[] {
  const { samples, throttle, nak, otherEnd, status, pcieInstant } = at;
  return [
    celsius('junction', 4),
    celsius('memory', 6),
    celsius('vr_soc', 8),
    field('power', 'gpu', 'u16', 10),
    field('busy', 'gpu', 'u16', 12, PERCENT),
    field('busy', 'memory', 'u16', 14, PERCENT),
    field('energy', '', 'u64', at.energy, ENERGY_STEP),
    ...(throttle === undefined ? [] : [field('throttle', '', 'u32', throttle)]),
    ...(samples === undefined
      ? []
      : [
          field('samples', '', 'u32', samples),
          ...RESIDENCIES.map((reason, n) => field('residency', reason, 'u32', samples + 4 * (n + 1))),
        ]),
    field('busyAccumulated', 'gpu', 'u32', at.busyAccumulated),
    field('busyAccumulated', 'memory', 'u32', at.busyAccumulated + 4),
    field('pcieBandwidth', '', 'u64', pcieInstant, 1e9),
    field('pcieEvent', 'l0_to_recovery', 'u64', pcieInstant + 8),
    field('pcieReplays', '', 'u64', pcieInstant + 16),
    field('pcieEvent', 'replay_rollover', 'u64', pcieInstant + 24),
    ...(nak === undefined ? [] : [field('pcieEvent', 'nak_sent', 'u32', nak), field('pcieEvent', 'nak_received', 'u32', nak + 4)]),
    ...(otherEnd === undefined ? [] : [field('pcieEvent', 'other_end_recovery', 'u32', otherEnd)]),
    field('xgmiRead', 'xgmi', 'u64', at.xgmi, 1_024, 8),
    field('xgmiWrite', 'xgmi', 'u64', at.xgmi + 64, 1_024, 8),
    ...(status === undefined ? [] : [field('xgmiStatus', 'xgmi', 'u16', status, 1, 8)]),
    clock('graphics', at.clocks, 8),
    clock('memory', at.memoryClock),
  ];
}

/** Statistics of one partition, up to the accumulators: busy per compute die, per JPEG engine and per video engine. */
function partitionBusy(start: number, jpegs: number): readonly Field[] {
  return [
    field('busy', 'gpu', 'u32', start, PERCENT, 8),
    field('busy', 'jpeg', 'u16', start + 32, PERCENT, jpegs),
    field('busy', 'video', 'u16', start + 32 + 2 * jpegs, PERCENT, 4),
  ];
}

const LIMITS: readonly string[] = ['power', 'thermal', 'low_utilization', 'total'];

/** Accumulators of one partition, 8 per reason, one for each compute die. */
function partitionAccumulators(start: number, reasons: readonly string[]): readonly Field[] {
  return [
    field('busyAccumulated', 'gpu', 'u64', start, 1, 8),
    ...reasons.map((reason, n) => field('limited', reason, 'u64', start + 64 * (n + 1), 1, 8)),
  ];
}

/** Fields of an APU in format 2. Temperatures are hundredths of °C, power is in mW, activity is hundredths of a percent. */
const APU_21: readonly Field[] = [
  field('temperature', 'gfx', 'u16', 4, 0.01),
  field('temperature', 'soc', 'u16', 6, 0.01),
  field('busy', 'gpu', 'u16', 28, 0.0001),
  field('busy', 'video', 'u16', 30, 0.0001),
  field('power', 'socket_average', 'u16', 40, MILLI),
  field('power', 'cpu_average', 'u16', 42, MILLI),
  field('power', 'soc_average', 'u16', 44, MILLI),
  field('power', 'gfx_average', 'u16', 46, MILLI),
  clock('graphics', 76),
  clock('soc', 78),
  clock('memory', 80),
  clock('fabric', 82),
  clock('video', 84),
  clock('decoder', 86),
  field('throttle', '', 'u32', 108),
];
const APU_22: readonly Field[] = [...APU_21, field('throttleBits', '', 'u64', 120)];

const APU_30: readonly Field[] = [
  field('temperature', 'gfx', 'u16', 4, 0.01),
  field('temperature', 'soc', 'u16', 6, 0.01),
  field('temperature', 'skin', 'u16', 40, 0.01),
  field('busy', 'gpu', 'u16', 42, PERCENT),
  field('busy', 'video', 'u16', 44, PERCENT),
  field('memoryTraffic', 'read', 'u16', 94, 1e6),
  field('memoryTraffic', 'write', 'u16', 96, 1e6),
  field('power', 'socket_average', 'u32', 112, MILLI),
  field('power', 'apu_average', 'u32', 120, MILLI),
  field('power', 'gfx_average', 'u32', 124, MILLI),
  field('power', 'dgpu_average', 'u32', 128, MILLI),
  clock('graphics', 174),
  clock('soc', 176),
  clock('fabric', 182),
  clock('video', 184),
  clock('memory', 186),
  ...['prochot', 'power_sustained', 'power_fast', 'power_slow', 'core_thermal', 'gfx_thermal', 'soc_thermal'].map((reason, n) =>
    field('residency', reason, 'u32', 228 + 4 * n),
  ),
];

/** Layouts of gpu_metrics, keyed by `format.content`. Version 1.9 describes itself, so it has no layout here. Version 1.0 has another alignment and is not supported. */
export const GPU_METRICS: Readonly<Record<string, Layout>> = {
  '1.1': { size: 96, fields: DISCRETE_11 },
  '1.2': { size: 104, fields: DISCRETE_11 },
  '1.3': { size: 120, fields: DISCRETE_13 },
  '1.4': {
    size: 288,
    fields: instinct({ energy: 24, throttle: 40, busyAccumulated: 56, pcieInstant: 72, xgmi: 104, clocks: 240, memoryClock: 280 }),
  },
  '1.5': {
    size: 360,
    fields: instinct({
      energy: 88,
      throttle: 104,
      busyAccumulated: 120,
      pcieInstant: 136,
      nak: 168,
      xgmi: 176,
      clocks: 312,
      memoryClock: 352,
    }),
  },
  '1.6': {
    size: 1_664,
    fields: instinct({
      energy: 16,
      samples: 32,
      busyAccumulated: 68,
      pcieInstant: 88,
      nak: 120,
      otherEnd: 1_656,
      xgmi: 128,
      clocks: 264,
      memoryClock: 304,
    }),
    partitions: { offset: 312, size: 168, count: 8, fields: [...partitionBusy(0, 32), ...partitionAccumulators(104, [])] },
  },
  '1.7': {
    size: 2_208,
    fields: instinct({
      energy: 24,
      samples: 40,
      busyAccumulated: 76,
      pcieInstant: 96,
      nak: 128,
      otherEnd: 2_200,
      xgmi: 136,
      status: 264,
      clocks: 296,
      memoryClock: 336,
    }),
    partitions: { offset: 344, size: 232, count: 8, fields: [...partitionBusy(0, 32), ...partitionAccumulators(104, ['any'])] },
  },
  '1.8': {
    size: 3_872,
    fields: instinct({
      energy: 24,
      samples: 40,
      busyAccumulated: 76,
      pcieInstant: 96,
      nak: 128,
      otherEnd: 3_864,
      xgmi: 136,
      status: 264,
      clocks: 296,
      memoryClock: 336,
    }),
    partitions: { offset: 344, size: 440, count: 8, fields: [...partitionBusy(0, 40), ...partitionAccumulators(120, LIMITS)] },
  },
  '2.1': { size: 120, fields: APU_21 },
  '2.2': { size: 128, fields: APU_22 },
  '2.3': { size: 152, fields: APU_22 },
  '2.4': {
    size: 168,
    fields: [...APU_22, ...['cpu', 'soc', 'gfx'].map((name, n) => field('voltage', name, 'u16', 152 + 2 * n, MILLI))],
  },
  '3.0': { size: 264, fields: APU_30 },
};

/** Layouts of xcp_metrics, the table of one partition. Version 1.1 describes itself. */
export const XCP_METRICS: Readonly<Record<string, Layout>> = {
  '1.0': {
    size: 488,
    fields: [clock('graphics', 4, 8), clock('memory', 44), ...partitionBusy(48, 40), ...partitionAccumulators(168, LIMITS)],
  },
};

/** Offset of the number of partitions in the tables that have their statistics. */
export const PARTITION_COUNT_AT: Readonly<Record<string, number>> = { '1.6': 306, '1.7': 338, '1.8': 338 };

/** Attribute of a table that describes itself: what it holds. Source: enum amdgpu_metrics_attr_id. */
export const ATTRIBUTES: Readonly<Record<number, Pick<Field, 'quantity' | 'name' | 'scale'>>> = {
  0: { quantity: 'temperature', name: 'junction', scale: 1 },
  1: { quantity: 'temperature', name: 'memory', scale: 1 },
  2: { quantity: 'temperature', name: 'vr_soc', scale: 1 },
  3: { quantity: 'power', name: 'gpu', scale: 1 },
  4: { quantity: 'busy', name: 'gpu', scale: PERCENT },
  5: { quantity: 'busy', name: 'memory', scale: PERCENT },
  7: { quantity: 'energy', name: '', scale: ENERGY_STEP },
  9: { quantity: 'samples', name: '', scale: 1 },
  10: { quantity: 'residency', name: 'prochot', scale: 1 },
  11: { quantity: 'residency', name: 'power', scale: 1 },
  12: { quantity: 'residency', name: 'socket_thermal', scale: 1 },
  13: { quantity: 'residency', name: 'vr_thermal', scale: 1 },
  14: { quantity: 'residency', name: 'hbm_thermal', scale: 1 },
  20: { quantity: 'busyAccumulated', name: 'gpu', scale: 1 },
  21: { quantity: 'busyAccumulated', name: 'memory', scale: 1 },
  23: { quantity: 'pcieBandwidth', name: '', scale: 1e9 },
  24: { quantity: 'pcieEvent', name: 'l0_to_recovery', scale: 1 },
  25: { quantity: 'pcieReplays', name: '', scale: 1 },
  26: { quantity: 'pcieEvent', name: 'replay_rollover', scale: 1 },
  27: { quantity: 'pcieEvent', name: 'nak_sent', scale: 1 },
  28: { quantity: 'pcieEvent', name: 'nak_received', scale: 1 },
  29: { quantity: 'xgmiRead', name: 'xgmi', scale: 1_024 },
  30: { quantity: 'xgmiWrite', name: 'xgmi', scale: 1_024 },
  31: { quantity: 'xgmiStatus', name: 'xgmi', scale: 1 },
  33: { quantity: 'clock', name: 'graphics', scale: MHZ },
  34: { quantity: 'clock', name: 'soc', scale: MHZ },
  35: { quantity: 'clock', name: 'video', scale: MHZ },
  36: { quantity: 'clock', name: 'decoder', scale: MHZ },
  37: { quantity: 'clock', name: 'memory', scale: MHZ },
  39: { quantity: 'pcieEvent', name: 'other_end_recovery', scale: 1 },
  40: { quantity: 'busy', name: 'gpu', scale: PERCENT },
  41: { quantity: 'busy', name: 'jpeg', scale: PERCENT },
  42: { quantity: 'busy', name: 'video', scale: PERCENT },
  43: { quantity: 'busyAccumulated', name: 'gpu', scale: 1 },
  44: { quantity: 'limited', name: 'power', scale: 1 },
  45: { quantity: 'limited', name: 'thermal', scale: 1 },
  46: { quantity: 'limited', name: 'low_utilization', scale: 1 },
  47: { quantity: 'limited', name: 'total', scale: 1 },
};
