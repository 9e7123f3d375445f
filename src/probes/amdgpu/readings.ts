import { defined } from '../../model/defined.ts';
import type { MetricSpec, Reading } from '../../model/metric.ts';
import { canMeasure, readingOf } from '../kit/hwmon.ts';
import { pcieReadings } from '../kit/pcie/pcie.ts';
import { ReadingSet } from '../kit/reading-set.ts';
import type { AwakeSample, CardFacts } from './card.ts';
import { metrics } from './metrics.ts';
import type { RasSample } from './ras.ts';
import { powerScaleOf, type Sample, type Table } from './table.ts';
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

/** Facts of other sources about a card. */
export interface CardContext {
  /** From the topology of KFD. */
  readonly gfxTarget?: string;
  /** Number of its partitions; absent when the topology does not tell. */
  readonly partitions?: number;
  /** Compute units in use; absent when no process tells. */
  readonly computeUnits?: number;
}

/** Readings of a sleeping card: only that it sleeps. */
export const ASLEEP: readonly Reading[] = [{ metric: metrics.asleep.name, value: 1 }];

/** Readings of an awake card. Files come first, because the driver computes them from newer or more exact values than its table. */
export function cardReadings(sample: AwakeSample, facts: CardFacts, context: CardContext): readonly Reading[] {
  const { busy, monitor, table, pcie, ras } = sample;
  const { gfxTarget, partitions, computeUnits } = context;
  const readings = new ReadingSet();
  readings.add(metrics.asleep, 0);
  readings.add(metrics.info, 1, infoLabels(facts, gfxTarget));
  for (const engine of ['gpu', 'memory', 'video'] as const) readings.add(metrics.utilization, busy[engine], { engine });
  readings.add(metrics.memoryUsed, sample.vramUsed);
  readings.add(metrics.memoryTotal, facts.vramTotal);
  readings.add(metrics.gttUsed, sample.gttUsed);
  readings.add(metrics.gttTotal, facts.gttTotal);
  readings.add(metrics.partitions, partitions);
  readings.add(metrics.computeUnitsBusy, computeUnits);
  readings.addAll(monitor?.readings ?? []);
  readings.readMs = sample.replaysMs;
  readings.add(metrics.pcieReplays, sample.replays);
  readings.readMs = undefined;
  if (table !== undefined) {
    const [edge, watts] = [readingOf(monitor, metrics.temperature, 'edge'), readingOf(monitor, metrics.power, 'gpu')];
    addTableReadings(readings, table, defined({ edgeCelsius: edge, watts, gfxTarget }));
  }
  addRas(readings, ras);
  if (pcie !== undefined) readings.append(pcieReadings(pcie));
  return readings.list();
}

function infoLabels(facts: CardFacts, gfxTarget: string | undefined): Readonly<Record<string, string>> {
  return {
    vbios: facts.vbios ?? '',
    memory_vendor: facts.memoryVendor ?? '',
    gfx_target: gfxTarget ?? '',
    unique_id: facts.uniqueId ?? '',
    compute_partition: facts.computePartition ?? '',
    memory_partition: facts.memoryPartition ?? '',
  };
}

const SEVERITIES = ['uncorrectable', 'correctable', 'deferred'] as const;

function addRas(readings: ReadingSet, { events, blocks, blocksMs, badPages, badPagesMs }: RasSample): void {
  if (events !== undefined && events !== 'unknown') {
    readings.add(metrics.rasEvents, events.fatal, { event: 'fatal_error' });
    readings.add(metrics.rasEvents, events.poisonCreated, { event: 'poison_creation' });
    readings.add(metrics.rasEvents, events.poisonConsumed, { event: 'poison_consumption' });
  }
  readings.readMs = blocksMs;
  for (const { block, errors } of blocks)
    for (const severity of SEVERITIES) readings.add(metrics.rasErrors, errors?.[severity], { block, severity });
  // A sum without one of its parts would fall, so it needs all blocks that can be read.
  if (blocks.length > 0 && blocks.every(({ isUnknown }) => !isUnknown)) {
    for (const severity of ['uncorrectable', 'correctable'] as const) {
      const counts = blocks.flatMap(({ errors }) => errors?.[severity] ?? []);
      if (counts.length === 0) continue;
      const sum = counts.reduce<bigint>((all, count) => all + BigInt(count), 0n);
      readings.add(metrics.errors, sum <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(sum) : sum, { kind: `ecc_${severity}` });
    }
  }
  readings.readMs = badPagesMs;
  if (badPages === undefined || badPages === 'unknown' || !badPages.isWhole) return;
  readings.add(metrics.badPages, badPages.retired, { state: 'retired' });
  readings.add(metrics.badPages, badPages.pending, { state: 'pending' });
  readings.add(metrics.badPages, badPages.failed, { state: 'failed' });
}
