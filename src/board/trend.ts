/** Points of one trend, and the time that each of them stands for. */
export const TREND_POINTS = 60;
export const TREND_STEP_MS = 30_000;
/** Time that a trend reaches back. */
export const TREND_MS = TREND_POINTS * TREND_STEP_MS;

/** Means of equal spans of time, oldest first; null where nothing was read. */
export type Trend = readonly (number | null)[];

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

/** Growth per second between samples of a counter; null after a reset, and where one of two samples is absent. */
export function ratesOf(times: readonly number[], values: readonly (number | null)[]): readonly (number | null)[] {
  return values.map((value, at) => rateBetween(times[at - 1], values[at - 1], times[at], value) ?? null);
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
