import type { KeptFile } from '../../host/kept-group.ts';
import type { Labels } from '../../model/metric.ts';
import type { Slot } from './counter-pass.ts';
import type { CounterRow, CounterSet } from './counter-row.ts';
import { counterRows, JUDGED_FILES } from './counters.ts';

const rowsBySet: ReadonlyMap<CounterSet, ReadonlyMap<string, readonly [CounterRow, number]>> = new Map(
  (['counters', 'counters_ext', 'hw_counters', 'device'] as const).map((set) => [
    set,
    new Map(counterRows.flatMap((row, order) => (row.set === set ? [[row.file, [row, order] as const] as const] : []))),
  ]),
);

/** Where the counters of one port, or of a device, lie: set to directory. */
export type CounterPlaces = readonly (readonly [CounterSet, string])[];

export function portPlaces(portDirectory: string, withHardware: boolean): CounterPlaces {
  const classic = [
    ['counters_ext', `${portDirectory}/counters_ext`],
    ['counters', `${portDirectory}/counters`],
  ] as const;
  return withHardware ? [['hw_counters', `${portDirectory}/hw_counters`], ...classic] : classic;
}

const judgedFiles: ReadonlySet<string> = new Set(JUDGED_FILES);

/** A slot for each file found that feeds a metric, in the order in which they are best read. `fileOf` is asked for no other. */
export function makeSlots(
  found: readonly (readonly [CounterSet, string, readonly string[]])[],
  port: Labels,
  fileOf: (path: string) => KeptFile,
): readonly Slot[] {
  const series = new Map<string, number>();
  const slots: { order: number; slot: Slot }[] = [];
  for (const [set, directory, names] of found) {
    for (const name of names) {
      const entry = rowsBySet.get(set)?.get(name);
      if (entry === undefined) continue;
      const [row, order] = entry;
      const labels = { ...port, ...row.labels };
      const key = `${row.metric.name} ${JSON.stringify(labels)}`;
      const number = series.get(key) ?? series.size;
      series.set(key, number);
      const file = fileOf(`${directory}/${name}`);
      const isJudged = judgedFiles.has(row.file);
      slots.push({ order, slot: { row, file, id: { metric: row.metric.name, labels }, series: number, isJudged, place: -1 } });
    }
  }
  return slots.sort((a, b) => cost(a) - cost(b) || a.order - b.order).map(({ slot }) => slot);
}

/**
 * One firmware query serves all hardware counters for the milliseconds of `lifespan`, so they are read in one go; each of the
 * others is a query of its own.
 */
function cost({ slot }: { readonly slot: Slot }): number {
  return slot.row.set === 'hw_counters' || slot.row.set === 'device' ? 0 : 1;
}
