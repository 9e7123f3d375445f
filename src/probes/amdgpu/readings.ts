import { addValues, type MetricSpec, type Value } from '../../model/metric.ts';
import { canMeasure } from '../kit/hwmon.ts';
import type { ReadingSet } from '../kit/reading-set.ts';
import { metrics } from './metrics.ts';
import type { Sample, Table } from './table.ts';

const { temperature, power, utilization, clock, energy, linkUp, throttled, busyAccumulated, limitedAccumulated } = metrics;

/** Facts that decide which values of a table have a known unit. */
export interface TableContext {
  /** Temperature and power of the hardware monitor; absent without one. */
  readonly edgeCelsius?: number | undefined;
  readonly watts?: number | undefined;
  /** Instruction set, which names the chip: `90010` for MI200. */
  readonly gfxTarget?: string | undefined;
}

/** Adds the readings of a whole card. Values that another source already told stay as they are. Returns whether the unit of each power is known. */
export function addTable(readings: ReadingSet, table: Table, context: TableContext): boolean {
  const isTrusted = trustOf(table, context);
  const scaleOf = powerScaleOf(table, context.watts);
  let arePowersKnown = true;
  for (const { metric, name, index, value: raw } of table.samples) {
    const scale = metric === power ? scaleOf(name) : 1;
    if (scale === undefined) arePowersKnown = false;
    if (scale === undefined || !isTrusted(metric)) continue;
    const value = scale === 1 ? raw : Number(raw) * scale;
    if (isPossible(metric, Number(value))) addSeries(readings, metric, value, `${name}${index ?? ''}`);
  }
  addThrottling(readings, table.samples);
  // Without partitioning, the one partition is the whole card. Its statistics also have the video engines.
  const [only, ...others] = table.partitions;
  if (only !== undefined && others.length === 0) addPartition(readings, only);
  return arePowersKnown;
}

function addSeries(readings: ReadingSet, metric: MetricSpec, value: Value, name: string): void {
  const label = metric.labels[0];
  readings.add(metric, value, label === undefined ? undefined : { [label]: name });
}

function isPossible(metric: MetricSpec, value: number): boolean {
  if (metric === temperature) return canMeasure('temp', value);
  if (metric === power) return canMeasure('power', value);
  if (metric === utilization) return value <= 1;
  if (metric === linkUp) return value === 0 || value === 1;
  return metric !== throttled && metric !== limitedAccumulated;
}

/** What is told of partitions. */
const OF_PARTITIONS: ReadonlySet<MetricSpec> = new Set([utilization, clock, busyAccumulated, limitedAccumulated]);

/** Adds the readings of one partition, from its own table or from its part of the table of the card: the mean, or the sum of what counts. */
export function addPartition(readings: ReadingSet, samples: readonly Sample[]): void {
  const groups = new Map<string, readonly [Sample, Value[]]>();
  for (const sample of samples) {
    const { metric, name, value } = sample;
    const group = groups.get(`${metric.name} ${name}`)?.[1];
    if (group !== undefined) group.push(value);
    else if (OF_PARTITIONS.has(metric)) groups.set(`${metric.name} ${name}`, [sample, [value]]);
  }
  for (const [{ metric, name }, values] of groups.values()) {
    const sum = values.reduce(addValues);
    const value = metric.type === 'counter' ? sum : Number(sum) / values.length;
    if (metric !== utilization || value <= 1) addSeries(readings, metric, value, name);
  }
}

/** Groups of bits of `indep_throttle_status`. Source: kgd_pp_interface.h. */
const REASONS: readonly (readonly [reason: string, mask: bigint])[] = [
  ['power', 0xffn],
  ['current', 0xff_0000n],
  ['thermal', 0xffff_0000_0000n],
  ['other', 0xffff_0000_ff00_ff00n],
];

/** The bits of the older field depend on the chip, so it only tells whether there is a reason. */
function addThrottling(readings: ReadingSet, samples: readonly Sample[]): void {
  const told = samples.filter(({ metric }) => metric === throttled);
  const bits = told.find(({ name }) => name === '')?.value;
  if (bits === undefined) for (const { name, value } of told) readings.add(throttled, value === 0 ? 0 : 1, { reason: name });
  else for (const [reason, mask] of REASONS) readings.add(throttled, (BigInt(bits) & mask) === 0n ? 0 : 1, { reason });
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
function trustOf({ version, samples }: Table, { edgeCelsius, gfxTarget }: TableContext): (metric: MetricSpec) => boolean {
  const isDiscrete = ['1.1', '1.2', '1.3'].includes(version);
  const gfx = samples.find(({ metric, name }) => metric === temperature && name === 'gfx')?.value;
  const isConfirmed = gfx !== undefined && edgeCelsius !== undefined && Math.abs(Number(gfx) - edgeCelsius) <= SAME;
  return (metric) => {
    if (metric === energy) return !isDiscrete || WITH_ENERGY.has(gfxTarget);
    return isConfirmed || !version.startsWith('2.') || (metric !== temperature && metric !== utilization);
  };
}

/** Largest factor between two measurements of the same power, which average over different times. */
const ALIKE = 30;

/**
 * Returns by what to multiply a power. Tables of format 2 have milliwatts or watts: their values come unchanged from the firmware, which
 * has either unit. The hardware monitor knows the firmware, so the power of the socket must fit it. Undefined: the unit is unknown. When
 * the socket is in watts, the unit of the other powers is unknown. Source: renoir_ppt.c, renoir_get_smu_metrics_data, in
 * Linux drivers/gpu/drm/amd/pm/swsmu/smu12.
 */
function powerScaleOf({ version, samples }: Table, watts: number | undefined): (name: string) => number | undefined {
  if (!version.startsWith('2.')) return () => 1;
  const socket = samples.find(({ metric, name }) => metric === power && name === 'socket_average')?.value;
  if (socket === undefined || watts === undefined) return () => undefined;
  const fits = (value: number): boolean => value < watts * ALIKE && value > watts / ALIKE;
  if (fits(Number(socket))) return () => 1;
  const isInWatts = fits(Number(socket) * 1_000);
  return (name) => (isInWatts && name === 'socket_average' ? 1_000 : undefined);
}
