/** Fewer values show no period that chance could not show. */
const LEAST_VALUES = 40;
/** Periods that the values must cover. */
const LEAST_PERIODS = 4;
/** Correlation with itself one period, and two periods, later. */
const ONE_LATER = 0.5;
const TWO_LATER = 0.35;
/** Values that vary less, as share of their mean, have no phases. */
const LEAST_VARIATION = 0.1;

/**
 * Length of the shortest period of equally spaced values, in their spacing; undefined when there is none. It is the first peak of the
 * autocorrelation after its first trough, and only if the double of it correlates too: noise, trends and single bursts have no such peak.
 */
export function periodOf(values: readonly number[]): number | undefined {
  const count = values.length;
  if (count < LEAST_VALUES) return undefined;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const apart = Float64Array.from(values, (value) => value - mean);
  const variance = apart.reduce((sum, value) => sum + value * value, 0) / count;
  if (!(mean > 0) || Math.sqrt(variance) < LEAST_VARIATION * mean) return undefined;
  const correlation = (lag: number): number => {
    let sum = 0;
    for (let at = lag; at < count; at += 1) sum += (apart[at] as number) * (apart[at - lag] as number);
    return sum / (count - lag) / variance;
  };
  const most = Math.floor(count / LEAST_PERIODS);
  let isPastTrough = false;
  let [before, now] = [1, correlation(1)];
  for (let lag = 1; lag <= most; lag += 1) {
    const after = correlation(lag + 1);
    isPastTrough ||= now < 0.2;
    const isPeak = isPastTrough && now >= ONE_LATER && now >= before && now >= after;
    if (isPeak && Math.max(correlation(2 * lag - 1), correlation(2 * lag), correlation(2 * lag + 1)) >= TWO_LATER)
      return lag + vertex(before, now, after);
    [before, now] = [now, after];
  }
  return undefined;
}

/** Where the parabola through three equally spaced values is highest, from the middle one. */
function vertex(before: number, now: number, after: number): number {
  const bend = before - 2 * now + after;
  return bend >= 0 ? 0 : Math.max(-0.5, Math.min(0.5, (0.5 * (before - after)) / bend));
}
