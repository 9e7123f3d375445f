import type { MetricSpec } from '../model/metric.ts';
import type { LabelText } from './labels.ts';

/** What a page needs to know of a metric. */
export type Declared = Pick<MetricSpec, 'name' | 'type' | 'help'>;

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
  const all = places.map((place) => ({ place, labels: added.labelsAt(place) }));
  all.sort((a, b) => (a.labels < b.labels ? -1 : a.labels > b.labels ? 1 : 0));
  const unique = all.filter((one, index) => index === 0 || one.labels !== all[index - 1]?.labels);
  return {
    declared: added.declaredAt(places[0] as number),
    places: unique.map(({ place }) => place),
    labels: unique.map(({ labels }) => labels),
  };
}
