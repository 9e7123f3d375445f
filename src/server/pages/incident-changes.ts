import type { IncidentReadings } from '../../incidents/record.ts';
import type { Labels } from '../../model/metric.ts';

export interface ChangedReading {
  readonly metric: string;
  readonly labels: Labels;
  readonly first: number;
  readonly min: number;
  readonly max: number;
  readonly last: number;
}

/** A time that moves on says nothing. */
const IS_TIME = /_timestamp_seconds$/;

/**
 * The readings that changed, the largest change first: for a gauge in relation to its largest value, for a counter the change of its
 * growth. A counter that grows evenly is normal and comes last.
 */
export function changedMost({ series }: IncidentReadings): readonly ChangedReading[] {
  return series
    .filter(({ metric }) => !IS_TIME.test(metric))
    .flatMap(({ metric, labels, type, values }) => {
      const known = values.filter((value) => value !== null);
      const [first] = known;
      const last = known.at(-1);
      if (first === undefined || last === undefined) return [];
      const [min, max] = [Math.min(...known), Math.max(...known)];
      if (min === max) return [];
      const change = type === 'counter' ? changeOfGrowth(known) : (max - min) / Math.max(Math.abs(max), Math.abs(min));
      return [{ change, one: { metric, labels, first, min, max, last } }];
    })
    .sort((a, b) => b.change - a.change || (a.one.metric < b.one.metric ? -1 : 1))
    .map(({ one }) => one);
}

/** Compares the growth in the two halves of the time: 0 for even growth, 1 for growth in one half only. */
function changeOfGrowth(values: readonly number[]): number {
  const middle = values[Math.floor((values.length - 1) / 2)] as number;
  const [early, late] = [Math.abs(middle - (values[0] as number)), Math.abs((values.at(-1) as number) - middle)];
  const larger = Math.max(early, late);
  return larger === 0 ? 1 : Math.abs(late - early) / larger;
}
