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

/** The readings that changed, in the order of their largest change in relation to their largest value. */
export function changedMost({ series }: IncidentReadings): readonly ChangedReading[] {
  return series
    .filter(({ metric }) => !IS_TIME.test(metric))
    .flatMap(({ metric, labels, values }) => {
      const known = values.filter((value) => value !== null);
      const [first] = known;
      const last = known.at(-1);
      if (first === undefined || last === undefined) return [];
      const [min, max] = [Math.min(...known), Math.max(...known)];
      return min === max ? [] : [{ metric, labels, first, min, max, last }];
    })
    .map((one) => ({ one, change: (one.max - one.min) / Math.max(Math.abs(one.max), Math.abs(one.min)) }))
    .sort((a, b) => b.change - a.change || (a.one.metric < b.one.metric ? -1 : 1))
    .map(({ one }) => one);
}
