import { joinLabels, type LabelText } from './labels.ts';
import { type Declared, layOut } from './layout.ts';

/** Why a series was left out of a page. Closed set: value of the label `reason`. */
export const DROP_REASONS = ['duplicate', 'undeclared', 'invalid-value'] as const;
export type DropReason = (typeof DROP_REASONS)[number];

export interface Series {
  /** That of the metric; a sample of a histogram has a suffix. */
  readonly name: string;
  readonly labels: LabelText;
  readonly value: number | bigint;
}

/** All series of one metric, ordered by their labels. */
export interface MetricSeries {
  readonly name: string;
  readonly type: Declared['type'];
  readonly help: string;
  readonly series: readonly Series[];
}

/**
 * Collects series from a snapshot. Two series never have the same name and labels: the first one in snapshot order stays.
 * What is left out is counted, so that nothing disappears silently.
 */
export class SeriesPage {
  readonly dropped = new Map<DropReason, number>();
  readonly #declared: Declared[] = [];
  readonly #labels: LabelText[] = [];
  readonly #own: LabelText[] = [];
  readonly #values: (number | bigint)[] = [];

  /** `own`: further labels. Told apart, they cost no joining where the page has the same series as the one before. */
  add(declared: Declared, labels: LabelText, value: number | bigint, own: LabelText = ''): void {
    if (!isExportable(declared.type, value)) {
      this.drop('invalid-value');
      return;
    }
    this.#declared.push(declared);
    this.#labels.push(labels);
    this.#own.push(own);
    this.#values.push(value);
  }

  drop(reason: DropReason, count = 1): void {
    this.dropped.set(reason, (this.dropped.get(reason) ?? 0) + count);
  }

  /** How many series were added. */
  get size(): number {
    return this.#values.length;
  }

  /** What was added at a place in the order of adding. */
  declaredAt(at: number): Declared {
    return this.#declared[at] as Declared;
  }

  labelsAt(at: number): LabelText {
    return joinLabels(this.#labels[at] as LabelText, this.#own[at] as LabelText);
  }

  valueAt(at: number): number | bigint {
    return this.#values[at] as number | bigint;
  }

  /** True when the other page has the same series, added in the same order, whatever their values are. */
  hasSeriesOf(other: SeriesPage): boolean {
    if (this.size !== other.size) return false;
    for (let at = 0; at < this.size; at += 1) {
      if (this.#declared[at] !== other.#declared[at] || this.#own[at] !== other.#own[at] || this.#labels[at] !== other.#labels[at]) {
        return false;
      }
    }
    return true;
  }

  /** Ordered by name, then by labels, whatever the order of adding was. To be called once, when all is added. */
  finish(): readonly MetricSeries[] {
    const { metrics, duplicates } = layOut(this);
    if (duplicates > 0) this.drop('duplicate', duplicates);
    return metrics.map(({ declared: { name, type, help }, places, names, labels }) => ({
      name,
      type,
      help,
      series: places.map((place, index) => ({
        name: names[index] as string,
        labels: labels[index] as LabelText,
        value: this.valueAt(place),
      })),
    }));
  }
}

function isExportable(type: Declared['type'], value: number | bigint): boolean {
  if (typeof value === 'bigint') return type === 'gauge' || value >= 0n;
  return Number.isFinite(value) && (type === 'gauge' || value >= 0);
}
