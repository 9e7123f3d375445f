import { defined } from '../../model/defined.ts';
import type { Reading } from '../../model/metric.ts';
import { readingOf } from '../kit/hwmon.ts';
import { pcieReadings } from '../kit/pcie/pcie.ts';
import { ReadingSet } from '../kit/reading-set.ts';
import type { AwakeSample, CardFacts } from './card.ts';
import { metrics } from './metrics.ts';
import type { RasSample } from './ras.ts';
import { addTableReadings } from './table-readings.ts';

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
