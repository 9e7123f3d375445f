import type { AgentMetricSpec } from '../model/metric.ts';
import { joinLabels, type LabelText } from './labels.ts';

/** What a page needs to know of a metric. */
export interface Declared extends Pick<AgentMetricSpec, 'name' | 'type' | 'help'> {
  /** Present for a metric that has several samples for each set of labels: which one it is. */
  readonly sample?: {
    /** What its name has after that of the metric. */
    readonly suffix: string;
    /** Those that stand after the others. */
    readonly labels: LabelText;
    /** Its place among the samples of the same labels. */
    readonly rank: number;
  };
}

/** Series in the order in which they were added. */
export interface AddedSeries {
  readonly size: number;
  declaredAt(at: number): Declared;
  labelsAt(at: number): LabelText;
}

/** Where the series of one metric stand among the added ones, ordered by their labels. */
export interface MetricLayout {
  readonly declared: Declared;
  readonly places: readonly number[];
  /** Of each sample. */
  readonly names: readonly string[];
  readonly labels: readonly LabelText[];
}

export interface Layout {
  /** Ordered by name. */
  readonly metrics: readonly MetricLayout[];
  /** Series that were added a second time and have no place. */
  readonly duplicates: number;
}

/** Orders series by name and labels; of two with the same name and labels the first one added stays. */
export function layOut(added: AddedSeries): Layout {
  const byName = new Map<string, number[]>();
  for (let at = 0; at < added.size; at += 1) {
    const { name } = added.declaredAt(at);
    const places = byName.get(name);
    if (places === undefined) byName.set(name, [at]);
    else places.push(at);
  }
  const metrics = [...byName.keys()].sort().map((name) => orderByLabels(added, byName.get(name) as number[]));
  const placed = metrics.reduce((sum, { places }) => sum + places.length, 0);
  return { metrics, duplicates: added.size - placed };
}

function orderByLabels(added: AddedSeries, places: readonly number[]): MetricLayout {
  const all = places.map((place) => ({ place, labels: added.labelsAt(place), sample: added.declaredAt(place).sample }));
  all.sort((a, b) => (a.labels < b.labels ? -1 : a.labels > b.labels ? 1 : rankOf(a) - rankOf(b)));
  const unique = all.filter((one, index) => {
    const before = all[index - 1];
    return before === undefined || one.labels !== before.labels || rankOf(one) !== rankOf(before);
  });
  const declared = added.declaredAt(places[0] as number);
  return {
    declared,
    places: unique.map(({ place }) => place),
    names: unique.map(({ sample }) => (sample === undefined ? declared.name : declared.name + sample.suffix)),
    labels: unique.map(({ labels, sample }) => (sample === undefined ? labels : joinLabels(labels, sample.labels))),
  };
}

const rankOf = ({ sample }: { readonly sample: Declared['sample'] | undefined }): number => sample?.rank ?? 0;
