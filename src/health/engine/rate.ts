import type { RateThreshold } from '../policy/policy.ts';

/**
 * What is remembered of one counter: its growth since a baseline as a line of few points. Stretches without growth take
 * two points, however long they are. Plain data.
 */
export interface RateSeries {
  /** Last counter value and when it was read. */
  readonly value: number;
  readonly atMs: number;
  /** The last value was the one at which the counter sticks. */
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
 * Adds one reading. A smaller value than before is a reset: the counter has grown from 0 since, and what it grew before stays grown.
 * A reading of the same time is the same reading. A value that is no count leaves the series as it is.
 */
export function addSample(series: RateSeries | undefined, sample: Sample, windowMs: number): RateSeries | undefined {
  const { value, ceiling } = sample;
  if (!Number.isFinite(value) || value < 0) return series;
  const saturated = ceiling !== undefined && value >= ceiling;
  if (series === undefined || sample.atMs < series.atMs - windowMs) {
    return { value, atMs: sample.atMs, saturated, points: [[sample.atMs, 0]] };
  }
  if (sample.atMs === series.atMs) return series;
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

/** Drops what lies before the window, but for the point from which the line enters it. */
function trimmed(points: Points, startMs: number): Points {
  let first = 0;
  while (first + 2 < points.length && (points[first + 1] as readonly [number, number])[0] <= startMs) first += 1;
  return first === 0 ? points : points.slice(first);
}

/** Leaves out every second inner point when there are too many; between the others the line is straight. */
function thinned(points: Points): Points {
  if (points.length <= MAX_POINTS) return points;
  return points.filter((_, index) => index % 2 === 0 || index === points.length - 1);
}

/** Growth within the window that ends now. A gap longer than a window counts with its share. Undefined before the second reading. */
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
 * Judges growth, never an absolute value: the first reading says nothing. A counter that sticks at its ceiling says nothing
 * either, unless its growth up to there was too much already.
 */
export function judgeRate(series: RateSeries | undefined, threshold: RateThreshold, atMs: number): RateJudgement {
  const growth = series === undefined ? undefined : growthWithin(series, threshold.windowMs, atMs);
  if (series === undefined || growth === undefined) return { status: 'unknown' };
  if (growth > threshold.growth) return { status: true, growth };
  return { status: series.saturated ? 'unknown' : false, growth };
}
