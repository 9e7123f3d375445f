import type { MetricSpec } from '../../model/metric.ts';
import { canMeasure } from '../kit/hwmon.ts';
import type { ReadingSet } from '../kit/reading-set.ts';
import { metrics } from './metrics.ts';
import type { Sample, Table } from './table.ts';
import type { Quantity } from './table-layouts.ts';

/** Facts that decide which values of a table have a known unit. */
export interface TableContext {
  /** Temperature of the hardware monitor; absent without one. */
  readonly edgeCelsius?: number;
  /** Power of the hardware monitor; absent without one. */
  readonly watts?: number;
  /** Instruction set, which names the chip: `90010` for MI200. */
  readonly gfxTarget?: string;
}

/** Quantities that become one series per sample, with the metric and the label that names the sample. */
const PLAIN: Readonly<Partial<Record<Quantity, { readonly metric: MetricSpec; readonly label?: string }>>> = {
  temperature: { metric: metrics.temperature, label: 'sensor' },
  power: { metric: metrics.power, label: 'sensor' },
  voltage: { metric: metrics.voltage, label: 'sensor' },
  clock: { metric: metrics.clock, label: 'clock' },
  fan: { metric: metrics.fanSpeed, label: 'fan' },
  energy: { metric: metrics.energy },
  busyAccumulated: { metric: metrics.busyAccumulated, label: 'engine' },
  residency: { metric: metrics.throttleResidency, label: 'reason' },
  samples: { metric: metrics.firmwareSamples },
  pcieEvent: { metric: metrics.pcieEvents, label: 'event' },
  pcieReplays: { metric: metrics.pcieReplays },
  pcieBandwidth: { metric: metrics.pcieBandwidth },
  memoryTraffic: { metric: metrics.memoryTraffic, label: 'direction' },
  xgmiRead: { metric: metrics.receivedBytes, label: 'port' },
  xgmiWrite: { metric: metrics.transmittedBytes, label: 'port' },
};

/** Adds the readings of a whole card. Values that another source already told stay as they are. */
export function addTableReadings(readings: ReadingSet, table: Table, context: TableContext): void {
  const isTrusted = trustOf(table, context);
  const scaleOf = powerScaleOf(table, context.watts);
  for (const sample of table.samples) {
    if (!isTrusted(sample)) continue;
    const { quantity } = sample;
    const scale = quantity === 'power' ? scaleOf(sample) : 1;
    if (scale === undefined) continue;
    const value = scale === 1 ? sample.value : Number(sample.value) * scale;
    if ((quantity === 'temperature' && !canMeasure('temp', Number(value))) || (quantity === 'power' && !canMeasure('power', Number(value))))
      continue;
    const plain = PLAIN[quantity];
    const name = nameOf(sample);
    if (plain !== undefined) readings.add(plain.metric, value, plain.label === undefined ? undefined : { [plain.label]: name });
    else if (quantity === 'busy') addBusy(readings, name, value);
    else if (quantity === 'xgmiStatus' && (value === 0 || value === 1)) readings.add(metrics.linkUp, value, { port: name });
  }
  addThrottling(readings, table.samples);
  // Without partitioning, the one partition is the whole card. Its statistics also have the video engines.
  const [only, ...others] = table.partitions;
  if (only !== undefined && others.length === 0) addPartitionReadings(readings, only);
}

/** Says whether the unit of each power of a table is known. `watts` is the power of the hardware monitor. */
export function arePowersKnown(table: Table, watts: number | undefined): boolean {
  const scaleOf = powerScaleOf(table, watts);
  return table.samples.every((sample) => sample.quantity !== 'power' || scaleOf(sample) !== undefined);
}

/** Largest factor between two measurements of the same power, which average over different times. */
const ALIKE = 30;

/**
 * Returns by what to multiply a power. Tables of format 2 have milliwatts or watts: their values come unchanged from the firmware, which
 * has either unit. The hardware monitor knows the firmware, so the power of the socket must fit it. Undefined: the unit is unknown. When
 * the socket is in watts, the unit of the other powers is unknown. Source: renoir_ppt.c, renoir_get_smu_metrics_data, in
 * Linux drivers/gpu/drm/amd/pm/swsmu/smu12.
 */
function powerScaleOf({ version, samples }: Table, watts: number | undefined): (sample: Sample) => number | undefined {
  if (!version.startsWith('2.')) return () => 1;
  const socket = samples.find(({ quantity, name }) => quantity === 'power' && name === 'socket_average')?.value;
  if (socket === undefined || watts === undefined) return () => undefined;
  const fits = (value: number): boolean => value < watts * ALIKE && value > watts / ALIKE;
  if (fits(Number(socket))) return () => 1;
  const isInWatts = fits(Number(socket) * 1_000);
  return ({ name }) => (isInWatts && name === 'socket_average' ? 1_000 : undefined);
}

/** Adds the readings of one partition, from its own table or from its part of the table of the card. */
export function addPartitionReadings(readings: ReadingSet, samples: readonly Sample[]): void {
  for (const { quantity, name, values } of grouped(samples)) {
    const mean = values.reduce<number>((sum, value) => sum + Number(value), 0) / values.length;
    if (quantity === 'busy') addBusy(readings, name, mean);
    else if (quantity === 'clock') readings.add(metrics.clock, mean, { clock: name });
    else if (quantity === 'busyAccumulated') readings.add(metrics.busyAccumulated, sumOf(values), { engine: name });
    else if (quantity === 'limited') readings.add(metrics.limitedAccumulated, sumOf(values), { reason: name });
  }
}

function addBusy(readings: ReadingSet, engine: string, value: number | bigint): void {
  const share = Number(value);
  if (share <= 1) readings.add(metrics.utilization, share, { engine });
}

const nameOf = ({ name, index }: Sample): string => (index === undefined ? name : `${name}${index}`);

interface Group {
  readonly quantity: Quantity;
  readonly name: string;
  readonly values: (number | bigint)[];
}

function grouped(samples: readonly Sample[]): readonly Group[] {
  const groups = new Map<string, Group>();
  for (const { quantity, name, value } of samples) {
    const key = `${quantity} ${name}`;
    const group = groups.get(key) ?? { quantity, name, values: [] };
    group.values.push(value);
    groups.set(key, group);
  }
  return [...groups.values()];
}

function sumOf(values: readonly (number | bigint)[]): number | bigint {
  const sum = values.reduce<bigint>((all, value) => all + BigInt(value), 0n);
  return sum <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(sum) : sum;
}

/** Groups of bits of `indep_throttle_status`. Source: kgd_pp_interface.h. */
const REASONS: readonly (readonly [reason: string, mask: bigint])[] = [
  ['power', 0xffn],
  ['current', 0xff_0000n],
  ['thermal', 0xffff_0000_0000n],
];
const OTHER = REASONS.reduce((rest, [, mask]) => rest & ~mask, 0xffff_ffff_ffff_ffffn);

/** The bits of the older field depend on the chip, so it only tells whether there is a reason. */
function addThrottling(readings: ReadingSet, samples: readonly Sample[]): void {
  const bits = samples.find(({ quantity }) => quantity === 'throttleBits')?.value;
  if (bits !== undefined) {
    for (const [reason, mask] of [...REASONS, ['other', OTHER] as const])
      readings.add(metrics.throttled, (BigInt(bits) & mask) === 0n ? 0 : 1, { reason });
    return;
  }
  const some = samples.find(({ quantity }) => quantity === 'throttle')?.value;
  if (some !== undefined) readings.add(metrics.throttled, some === 0 ? 0 : 1, { reason: 'unspecified' });
}

/** Largest difference, in °C, between two readings of the same sensor. */
const SAME = 10;

/** Instruction sets of MI100 and MI200, whose energy counter has the unit of the later Instinct cards. */
const WITH_ENERGY: ReadonlySet<string | undefined> = new Set(['90008', '90010']);

/**
 * Says whether the unit of a value is known. The energy counter of RDNA 2 counts in another unit than that of Instinct cards: in a
 * captured table it fits millijoules. Some firmware of APUs may report whole units in format 2, so its temperatures must agree with the
 * hardware monitor.
 */
function trustOf({ version, samples }: Table, { edgeCelsius, gfxTarget }: TableContext): (sample: Sample) => boolean {
  const isDiscrete = ['1.1', '1.2', '1.3'].includes(version);
  const isApu = version.startsWith('2.');
  const gfx = samples.find(({ quantity, name }) => quantity === 'temperature' && name === 'gfx')?.value;
  const isConfirmed = gfx !== undefined && edgeCelsius !== undefined && Math.abs(Number(gfx) - edgeCelsius) <= SAME;
  return ({ quantity }) => {
    if (quantity === 'energy') return !isDiscrete || WITH_ENERGY.has(gfxTarget);
    if (isApu && ['temperature', 'busy'].includes(quantity)) return isConfirmed;
    return true;
  };
}
