import type { RateThreshold } from '../policy/policy.ts';

/**
 * Memory of one counter: its growth since a baseline, as a line of few points. A period without growth takes two points, whatever its
 * length. Plain data.
 */
export interface RateSeries {
  /** Last counter value, read at `atMs`. */
  readonly value: number;
  readonly atMs: number;
  /** The last value was the ceiling of the counter. */
  readonly saturated: boolean;
  /** Time and growth since the baseline, both rising; the first is the baseline or the last point before the window. */
  readonly points: readonly (readonly [atMs: number, growth: number])[];
}

export interface Sample {
  readonly value: number;
  readonly ceiling?: number | undefined;
  readonly atMs: number;
}

const MAX_POINTS = 64;

/**
 * Adds one reading. A smaller value than before means a reset: the counter grew from 0 again, and its earlier growth still counts.
 * A reading that is not later and has the same value is ignored: a probe can tell a read again. A value that is not a count leaves the series unchanged.
 */
export function addSample(series: RateSeries | undefined, sample: Sample, windowMs: number): RateSeries | undefined {
  const { value, ceiling } = sample;
  if (!Number.isFinite(value) || value < 0) return series;
  const saturated = ceiling !== undefined && value >= ceiling;
  if (series === undefined || sample.atMs < series.atMs - windowMs) {
    return { value, atMs: sample.atMs, saturated, points: [[sample.atMs, 0]] };
  }
  if (sample.atMs <= series.atMs && value === series.value) return series;
  const atMs = Math.max(sample.atMs, series.atMs);
  const points = [...series.points];
  const last = points.at(-1) as readonly [number, number];
  const growth = last[1] + (value < series.value ? value : value - series.value);
  const flat = growth === last[1] && points.at(-2)?.[1] === growth;
  if (flat || (last[0] === atMs && points.length > 1)) points.pop();
  points.push([atMs, growth]);
  return { value, atMs, saturated, points: thinned(trimmed(points, atMs - windowMs)) };
}

type Points = RateSeries['points'];

/** Drops the points before the window, except the last one, where the line enters the window. */
function trimmed(points: Points, startMs: number): Points {
  let first = 0;
  while (first + 2 < points.length && (points[first + 1] as readonly [number, number])[0] <= startMs) first += 1;
  return first === 0 ? points : points.slice(first);
}

/** Drops every second inner point when there are too many. The line between the kept points is straight. */
function thinned(points: Points): Points {
  if (points.length <= MAX_POINTS) return points;
  return points.filter((_, index) => index % 2 === 0 || index === points.length - 1);
}

/** Growth within the window that ends at `nowMs`. A gap longer than a window counts proportionally. Undefined before the second reading. */
export function growthWithin(series: RateSeries, windowMs: number, nowMs: number): number | undefined {
  if (series.points.length < 2) return undefined;
  const last = series.points.at(-1) as readonly [number, number];
  return last[1] - growthAt(series.points, nowMs - windowMs);
}

function growthAt(points: Points, atMs: number): number {
  let before = points[0] as readonly [number, number];
  for (const point of points) {
    if (point[0] > atMs) {
      const span = point[0] - before[0];
      return span === 0 || atMs <= before[0] ? before[1] : before[1] + ((point[1] - before[1]) * (atMs - before[0])) / span;
    }
    before = point;
  }
  return before[1];
}

export interface RateJudgement {
  readonly status: boolean | 'unknown';
  readonly growth?: number;
}

/**
 * Judges growth, never an absolute value: after the first reading the status is unknown. It is also unknown for a counter at its
 * ceiling, unless the growth to the ceiling exceeds the threshold.
 */
export function judgeRate(series: RateSeries | undefined, threshold: RateThreshold, atMs: number): RateJudgement {
  const growth = series === undefined ? undefined : growthWithin(series, threshold.windowMs, atMs);
  if (series === undefined || growth === undefined) return { status: 'unknown' };
  if (growth > threshold.growth) return { status: true, growth };
  return { status: series.saturated ? 'unknown' : false, growth };
}
