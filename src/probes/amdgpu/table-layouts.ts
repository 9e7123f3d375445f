import type { MetricSpec } from '../../model/metric.ts';
import { metrics } from './metrics.ts';

const { temperature, power, voltage, energy, throttled, utilization, busyAccumulated, limitedAccumulated } = metrics;
const { pcieEvents, pcieReplays, pcieBandwidth, receivedBytes, transmittedBytes, linkUp, firmwareSamples, throttleResidency } = metrics;

/** Width in bytes of the types of integers, by the numbers that a table that describes itself has for them: u8 s8 u16 s16 u32 s32 u64 s64. */
export const WIDTHS: readonly number[] = [1, 1, 2, 2, 4, 4, 8, 8];

/** A field of a binary table, and the series that it becomes. */
export interface Field {
  readonly metric: MetricSpec;
  /** Value of the label of the metric. Of `throttled`, empty for bits of reasons. */
  readonly name: string;
  /** Number of its type: see {@link WIDTHS}. */
  readonly type: number;
  /** In bytes, little endian. */
  readonly offset: number;
  /** What the integer is multiplied by to get the unit of the metric. */
  readonly scale: number;
  /** The field is an array. */
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

const fieldOf =
  (type: number) =>
  (metric: MetricSpec, name: string, offset: number, scale = 1, count?: number): Field => ({
    metric,
    name,
    type,
    offset,
    scale,
    ...(count !== undefined && { count }),
  });
const [u16, u32, u64] = [fieldOf(2), fieldOf(4), fieldOf(6)];

const celsius = (name: string, offset: number, count?: number): Field => u16(temperature, name, offset, 1, count);
const clock = (name: string, offset: number, count?: number): Field => u16(metrics.clock, name, offset, MHZ, count);

/** Layouts come from kgd_pp_interface.h of Linux, with the natural alignment of its structures. */

const DISCRETE_11: readonly Field[] = [
  celsius('edge', 4),
  celsius('junction', 6),
  celsius('memory', 8),
  celsius('vr_gfx', 10),
  celsius('vr_soc', 12),
  celsius('vr_memory', 14),
  u16(utilization, 'gpu', 16, PERCENT),
  u16(utilization, 'memory', 18, PERCENT),
  u16(utilization, 'video', 20, PERCENT),
  u16(power, 'gpu', 22),
  u64(energy, '', 24, ENERGY_STEP),
  clock('graphics', 54),
  clock('soc', 56),
  clock('memory', 58),
  clock('video', 60),
  clock('decoder', 62),
  u32(throttled, 'unspecified', 68),
  u16(metrics.fanSpeed, '0', 72),
  u32(busyAccumulated, 'gpu', 80),
  u32(busyAccumulated, 'memory', 84),
  celsius('hbm', 88, 4),
];

const DISCRETE_13: readonly Field[] = [
  ...DISCRETE_11,
  u16(voltage, 'soc', 104, MILLI),
  u16(voltage, 'vddgfx', 106, MILLI),
  u16(voltage, 'memory', 108, MILLI),
  u64(throttled, '', 112),
];

/** Parts of a table of an Instinct card, by their offsets. The fields before offset 16 are the same in all versions. */

const INSTINCT: readonly Field[] = [
  celsius('junction', 4),
  celsius('memory', 6),
  celsius('vr_soc', 8),
  u16(power, 'gpu', 10),
  u16(utilization, 'gpu', 12, PERCENT),
  u16(utilization, 'memory', 14, PERCENT),
];
const joules = (at: number): Field => u64(energy, '', at, ENERGY_STEP);
const throttle = (at: number): Field => u32(throttled, 'unspecified', at);
const residencies = (at: number): readonly Field[] => [
  u32(firmwareSamples, '', at),
  ...['prochot', 'power', 'socket_thermal', 'vr_thermal', 'hbm_thermal'].map((reason, n) =>
    u32(throttleResidency, reason, at + 4 * (n + 1)),
  ),
];
const activity = (at: number): readonly Field[] => [u32(busyAccumulated, 'gpu', at), u32(busyAccumulated, 'memory', at + 4)];
const pcie = (at: number): readonly Field[] => [
  u64(pcieBandwidth, '', at, 1e9),
  u64(pcieEvents, 'l0_to_recovery', at + 8),
  u64(pcieReplays, '', at + 16),
  u64(pcieEvents, 'replay_rollover', at + 24),
];
const nak = (at: number): readonly Field[] => [u32(pcieEvents, 'nak_sent', at), u32(pcieEvents, 'nak_received', at + 4)];
const otherEnd = (at: number): Field => u32(pcieEvents, 'other_end_recovery', at);
const xgmi = (at: number): readonly Field[] => [u64(receivedBytes, 'xgmi', at, 1_024, 8), u64(transmittedBytes, 'xgmi', at + 64, 1_024, 8)];
const clocks = (graphics: number, memory: number): readonly Field[] => [clock('graphics', graphics, 8), clock('memory', memory)];

/** Versions 1.7 and 1.8 differ in what follows. */
const INSTINCT_17: readonly Field[] = [
  ...INSTINCT,
  joules(24),
  ...residencies(40),
  ...activity(76),
  ...pcie(96),
  ...nak(128),
  ...xgmi(136),
  u16(linkUp, 'xgmi', 264, 1, 8),
  ...clocks(296, 336),
];

/** Statistics of one partition, up to the accumulators: busy per compute die, per JPEG engine and per video engine. */
function partitionBusy(start: number, jpegs: number): readonly Field[] {
  return [
    u32(utilization, 'gpu', start, PERCENT, 8),
    u16(utilization, 'jpeg', start + 32, PERCENT, jpegs),
    u16(utilization, 'video', start + 32 + 2 * jpegs, PERCENT, 4),
  ];
}

const LIMITS: readonly string[] = ['power', 'thermal', 'low_utilization', 'total'];

/** Accumulators of one partition, 8 per reason, one for each compute die. */
function partitionAccumulators(start: number, reasons: readonly string[]): readonly Field[] {
  return [
    u64(busyAccumulated, 'gpu', start, 1, 8),
    ...reasons.map((reason, n) => u64(limitedAccumulated, reason, start + 64 * (n + 1), 1, 8)),
  ];
}

/** Fields of an APU in format 2. Temperatures are hundredths of °C, power is in mW, activity is hundredths of a percent. */
const APU_21: readonly Field[] = [
  u16(temperature, 'gfx', 4, 0.01),
  u16(temperature, 'soc', 6, 0.01),
  u16(utilization, 'gpu', 28, 0.0001),
  u16(utilization, 'video', 30, 0.0001),
  u16(power, 'socket_average', 40, MILLI),
  u16(power, 'cpu_average', 42, MILLI),
  u16(power, 'soc_average', 44, MILLI),
  u16(power, 'gfx_average', 46, MILLI),
  clock('graphics', 76),
  clock('soc', 78),
  clock('memory', 80),
  clock('fabric', 82),
  clock('video', 84),
  clock('decoder', 86),
  u32(throttled, 'unspecified', 108),
];
const APU_22: readonly Field[] = [...APU_21, u64(throttled, '', 120)];

const APU_30: readonly Field[] = [
  u16(temperature, 'gfx', 4, 0.01),
  u16(temperature, 'soc', 6, 0.01),
  u16(temperature, 'skin', 40, 0.01),
  u16(utilization, 'gpu', 42, PERCENT),
  u16(utilization, 'video', 44, PERCENT),
  u16(metrics.memoryTraffic, 'read', 94, 1e6),
  u16(metrics.memoryTraffic, 'write', 96, 1e6),
  u32(power, 'socket_average', 112, MILLI),
  u32(power, 'apu_average', 120, MILLI),
  u32(power, 'gfx_average', 124, MILLI),
  u32(power, 'dgpu_average', 128, MILLI),
  clock('graphics', 174),
  clock('soc', 176),
  clock('fabric', 182),
  clock('video', 184),
  clock('memory', 186),
  ...['prochot', 'power_sustained', 'power_fast', 'power_slow', 'core_thermal', 'gfx_thermal', 'soc_thermal'].map((reason, n) =>
    u32(throttleResidency, reason, 228 + 4 * n),
  ),
];

/** Layouts of gpu_metrics, keyed by `format.content`. Version 1.9 describes itself, so it has no layout here. Version 1.0 has another alignment and is not supported. */
export const GPU_METRICS: Readonly<Record<string, Layout>> = {
  '1.1': { size: 96, fields: DISCRETE_11 },
  '1.2': { size: 104, fields: DISCRETE_11 },
  '1.3': { size: 120, fields: DISCRETE_13 },
  '1.4': {
    size: 288,
    fields: [...INSTINCT, joules(24), throttle(40), ...activity(56), ...pcie(72), ...xgmi(104), ...clocks(240, 280)],
  },
  '1.5': {
    size: 360,
    fields: [...INSTINCT, joules(88), throttle(104), ...activity(120), ...pcie(136), ...nak(168), ...xgmi(176), ...clocks(312, 352)],
  },
  '1.6': {
    size: 1_664,
    fields: [
      ...INSTINCT,
      joules(16),
      ...residencies(32),
      ...activity(68),
      ...pcie(88),
      ...nak(120),
      otherEnd(1_656),
      ...xgmi(128),
      ...clocks(264, 304),
    ],
    partitions: { offset: 312, size: 168, count: 8, fields: [...partitionBusy(0, 32), ...partitionAccumulators(104, [])] },
  },
  '1.7': {
    size: 2_208,
    fields: [...INSTINCT_17, otherEnd(2_200)],
    partitions: { offset: 344, size: 232, count: 8, fields: [...partitionBusy(0, 32), ...partitionAccumulators(104, ['any'])] },
  },
  '1.8': {
    size: 3_872,
    fields: [...INSTINCT_17, otherEnd(3_864)],
    partitions: { offset: 344, size: 440, count: 8, fields: [...partitionBusy(0, 40), ...partitionAccumulators(120, LIMITS)] },
  },
  '2.1': { size: 120, fields: APU_21 },
  '2.2': { size: 128, fields: APU_22 },
  '2.3': { size: 152, fields: APU_22 },
  '2.4': {
    size: 168,
    fields: [...APU_22, ...['cpu', 'soc', 'gfx'].map((name, n) => u16(voltage, name, 152 + 2 * n, MILLI))],
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

/** Attribute of a table that describes itself: the series that it becomes, and its scale. Source: enum amdgpu_metrics_attr_id. */
export const ATTRIBUTES: Readonly<Record<number, readonly [metric: MetricSpec, name: string, scale?: number]>> = {
  0: [temperature, 'junction'],
  1: [temperature, 'memory'],
  2: [temperature, 'vr_soc'],
  3: [power, 'gpu'],
  4: [utilization, 'gpu', PERCENT],
  5: [utilization, 'memory', PERCENT],
  7: [energy, '', ENERGY_STEP],
  9: [firmwareSamples, ''],
  10: [throttleResidency, 'prochot'],
  11: [throttleResidency, 'power'],
  12: [throttleResidency, 'socket_thermal'],
  13: [throttleResidency, 'vr_thermal'],
  14: [throttleResidency, 'hbm_thermal'],
  20: [busyAccumulated, 'gpu'],
  21: [busyAccumulated, 'memory'],
  23: [pcieBandwidth, '', 1e9],
  24: [pcieEvents, 'l0_to_recovery'],
  25: [pcieReplays, ''],
  26: [pcieEvents, 'replay_rollover'],
  27: [pcieEvents, 'nak_sent'],
  28: [pcieEvents, 'nak_received'],
  29: [receivedBytes, 'xgmi', 1_024],
  30: [transmittedBytes, 'xgmi', 1_024],
  31: [linkUp, 'xgmi'],
  33: [metrics.clock, 'graphics', MHZ],
  34: [metrics.clock, 'soc', MHZ],
  35: [metrics.clock, 'video', MHZ],
  36: [metrics.clock, 'decoder', MHZ],
  37: [metrics.clock, 'memory', MHZ],
  39: [pcieEvents, 'other_end_recovery'],
  40: [utilization, 'gpu', PERCENT],
  41: [utilization, 'jpeg', PERCENT],
  42: [utilization, 'video', PERCENT],
  43: [busyAccumulated, 'gpu'],
  44: [limitedAccumulated, 'power'],
  45: [limitedAccumulated, 'thermal'],
  46: [limitedAccumulated, 'low_utilization'],
  47: [limitedAccumulated, 'total'],
};
