/** Points of one trend, and the time that each of them covers. */
export const TREND_POINTS = 60;
export const TREND_STEP_MS = 30_000;
/** Time that a trend reaches back. */
export const TREND_MS = TREND_POINTS * TREND_STEP_MS;

/** Means of equal spans of time, oldest first; null where nothing was read. */
export type Trend = readonly (number | null)[];

/** Trend of the first reading of each device, keyed by device. */
export type Trends = Readonly<Record<string, Trend>>;

/** Makes a trend of samples, whose times ascend. A sample beyond the span does not count. */
export function trendOf(times: readonly number[], values: readonly (number | null)[], endMs: number): Trend {
  const sums = new Float64Array(TREND_POINTS);
  const counts = new Uint32Array(TREND_POINTS);
  for (const [at, time] of times.entries()) {
    const value = values[at];
    const point = TREND_POINTS - 1 - Math.floor((endMs - time) / TREND_STEP_MS);
    if (value === null || value === undefined || point < 0 || point >= TREND_POINTS) continue;
    sums[point] = (sums[point] as number) + value;
    counts[point] = (counts[point] as number) + 1;
  }
  return Array.from(sums, (sum, point) => (counts[point] === 0 ? null : significant(sum / (counts[point] as number))));
}

/**
 * Growth per second between samples of a counter; null after a reset, and where one of two samples is absent. `reads`: time of the read
 * that gave each value. The growth between two reads is that of all samples between them. After the last read it is not known yet.
 */
export function ratesOf(
  times: readonly number[],
  values: readonly (number | null)[],
  reads: readonly number[] = times,
): readonly (number | null)[] {
  const rates = values.map((): number | null => null);
  /** Sample after the one that first had the value of the read before. */
  let from = 1;
  for (let at = 1; at < values.length; at += 1) {
    const isBroken = values[at] === null || values[at - 1] === null;
    if (!isBroken && reads[at] === reads[at - 1]) continue;
    const rate = rateBetween(reads[at - 1], values[at - 1], reads[at], values[at]) ?? null;
    if (!isBroken) rates.fill(rate, from, at + 1);
    from = at + 1;
  }
  return rates;
}

export function rateBetween(
  fromMs: number | undefined,
  from: number | null | undefined,
  toMs: number | undefined,
  to: number | null | undefined,
): number | undefined {
  if (fromMs === undefined || toMs === undefined || from === null || from === undefined || to === null || to === undefined)
    return undefined;
  if (toMs <= fromMs || to < from) return undefined;
  return ((to - from) / (toMs - fromMs)) * 1_000;
}

/** Four digits are more than a picture can show, and keep the text of a trend short. */
const significant = (value: number): number => Number(value.toPrecision(4));

/** A longer time between two reads, as a multiple of the usual one, is a gap: the values in between are unknown. */
const GAP = 3;

/** The usual time between samples whose times ascend; undefined while there are not two. */
export function usualSpacing(times: readonly number[]): number | undefined {
  const distances = times.slice(1).map((time, at) => time - (times[at] as number));
  return distances.sort((a, b) => a - b)[Math.floor(distances.length / 2)];
}

/** Whether the pause between two reads is so long that a line must not connect them. */
export const isGap = (fromMs: number, toMs: number, spacingMs: number | undefined): boolean =>
  spacingMs !== undefined && toMs - fromMs > GAP * spacingMs;

/** One value, or the mean of the values of a short time with the least and the largest of them. */
export interface Point {
  readonly ms: number;
  readonly value: number;
  readonly low: number;
  readonly most: number;
  /** Middle of the time that it stands for. */
  readonly middleMs: number;
}

/** The known values since a time, in runs without a gap. */
export function runsOf(times: readonly number[], values: readonly (number | null)[], fromMs: number): readonly (readonly Point[])[] {
  const spacing = usualSpacing(times);
  const runs: Point[][] = [];
  let last: number | undefined;
  for (const [at, ms] of times.entries()) {
    const value = values[at];
    if (value === null || value === undefined || ms < fromMs) continue;
    const point = { ms, value, low: value, most: value, middleMs: ms };
    if (last === undefined || at - last > 1 || isGap(times[last] as number, ms, spacing)) runs.push([point]);
    else runs.at(-1)?.push(point);
    last = at;
  }
  return runs;
}

/** Joins the values of equal times, which begin at multiples of their length: the next picture has the same ones. A value that is alone stays as it is. */
export function bucketsOf(run: readonly Point[], lengthMs: number): readonly Point[] {
  const buckets = new Map<number, Point[]>();
  for (const point of run) {
    const number = Math.floor(point.ms / lengthMs);
    buckets.set(number, [...(buckets.get(number) ?? []), point]);
  }
  return [...buckets].map(([number, points]) => {
    const mean = (of: 'ms' | 'value'): number => points.reduce((sum, point) => sum + point[of], 0) / points.length;
    const values = points.map(({ value }) => value);
    return {
      ms: mean('ms'),
      value: mean('value'),
      low: Math.min(...values),
      most: Math.max(...values),
      middleMs: (number + 0.5) * lengthMs,
    };
  });
}
