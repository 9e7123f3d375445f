import { DURATION_BOUNDS, type DurationCounts } from '../model/duration-counts.ts';
import type { AgentMetricSpec } from '../model/metric.ts';
import type { Declared } from './declared.ts';
import { type LabelText, labelText } from './labels.ts';
import type { SeriesPage } from './series-page.ts';

/** The samples that one histogram of durations has for each set of labels. */
export interface HistogramSamples {
  /** One for each of {@link DURATION_BOUNDS}, and that without a bound. */
  readonly buckets: readonly Declared[];
  readonly sum: Declared;
  readonly count: Declared;
}

/** To be made once for each metric: a page knows its series again by these objects. */
export function histogramSamples({ name, type, help }: AgentMetricSpec): HistogramSamples {
  const bounds = [...DURATION_BOUNDS.map(boundText), '+Inf'];
  const sample = (suffix: string, rank: number, labels: LabelText = ''): Declared => ({
    name,
    type,
    help,
    sample: { suffix, labels, rank },
  });
  return {
    buckets: bounds.map((le, rank) => sample('_bucket', rank, labelText({ le }))),
    sum: sample('_sum', bounds.length),
    count: sample('_count', bounds.length + 1),
  };
}

export function addHistogram(page: SeriesPage, samples: HistogramSamples, labels: LabelText, durations: DurationCounts): void {
  const { withinBounds, count, sumSeconds } = durations;
  for (const [at, bucket] of samples.buckets.entries()) page.add(bucket, labels, withinBounds[at] ?? count);
  page.add(samples.sum, labels, sumSeconds);
  page.add(samples.count, labels, count);
}

/** OpenMetrics wants `10.0`; written alike in both formats, a bucket is the same series whichever one is scraped. */
const boundText = (bound: number): string => (Number.isInteger(bound) ? `${bound}.0` : String(bound));
