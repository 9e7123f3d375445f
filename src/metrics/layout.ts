import type { Declared } from './declared.ts';
import { joinLabels, type LabelText } from './labels.ts';
import type { Section, SeriesList } from './section.ts';

/** Where the series of one metric stand in the sections of a page, ordered by their labels. */
export interface MetricLayout {
  readonly declared: Declared;
  /** Of each sample the number of its section, and its place in it. */
  readonly sections: Int32Array;
  readonly places: Int32Array;
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

/** One series as it was added. */
interface Added {
  readonly section: number;
  readonly place: number;
  readonly declared: Declared;
  readonly labels: LabelText;
}

/** Orders series by name and labels; of two with the same name and labels the first one added stays. */
export function layOut(sections: readonly Section[]): Layout {
  const byName = new Map<string, Added[]>();
  let size = 0;
  for (const [section, { list }] of sections.entries()) {
    for (const [place, declared] of list.declared.entries()) {
      const added = { section, place, declared, labels: labelsAt(list, place) };
      const others = byName.get(declared.name);
      if (others === undefined) byName.set(declared.name, [added]);
      else others.push(added);
      size += 1;
    }
  }
  const metrics = [...byName.keys()].sort().map((name) => orderByLabels(byName.get(name) as Added[]));
  return { metrics, duplicates: size - metrics.reduce((sum, { names }) => sum + names.length, 0) };
}

function labelsAt({ labels, own }: SeriesList, place: number): LabelText {
  return joinLabels(labels[place] as LabelText, own[place] as LabelText);
}

function orderByLabels(added: readonly Added[]): MetricLayout {
  const { declared } = added[0] as Added;
  const all = [...added].sort((a, b) => (a.labels < b.labels ? -1 : a.labels > b.labels ? 1 : rankOf(a) - rankOf(b)));
  const unique = all.filter((one, at) => {
    const before = all[at - 1];
    return before === undefined || one.labels !== before.labels || rankOf(one) !== rankOf(before);
  });
  const sampleOf = ({ declared }: Added): NonNullable<Declared['sample']> | undefined => declared.sample;
  return {
    declared,
    sections: Int32Array.from(unique, ({ section }) => section),
    places: Int32Array.from(unique, ({ place }) => place),
    names: unique.map((one) => declared.name + (sampleOf(one)?.suffix ?? '')),
    labels: unique.map((one) => joinLabels(one.labels, sampleOf(one)?.labels ?? '')),
  };
}

const rankOf = ({ declared }: Added): number => declared.sample?.rank ?? 0;
