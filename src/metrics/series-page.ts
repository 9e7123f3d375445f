import type { MetricSpec, MetricType } from '../model/metric.ts';
import type { LabelText } from './labels.ts';

/** What a page needs to know of a metric. */
export type Declared = Pick<MetricSpec, 'name' | 'type' | 'help'>;

/** Why a series was left out of a page. Closed set: value of the label `reason`. */
export const DROP_REASONS = ['duplicate', 'undeclared', 'invalid-value'] as const;
export type DropReason = (typeof DROP_REASONS)[number];

export interface Series {
  readonly labels: LabelText;
  readonly value: number | bigint;
}

/** All series of one metric, ordered by their labels. */
export interface MetricSeries {
  readonly name: string;
  readonly type: MetricType;
  readonly help: string;
  readonly series: readonly Series[];
}

/**
 * Collects series from a snapshot. Two series never have the same name and labels: the first one in snapshot order stays.
 * What is left out is counted, so that nothing disappears silently.
 */
export class SeriesPage {
  readonly dropped = new Map<DropReason, number>();
  readonly #metrics = new Map<string, { readonly declared: Declared; readonly series: Series[] }>();

  add(declared: Declared, labels: LabelText, value: number | bigint): void {
    if (!isExportable(declared.type, value)) {
      this.drop('invalid-value');
      return;
    }
    const metric = this.#metrics.get(declared.name);
    if (metric === undefined) this.#metrics.set(declared.name, { declared, series: [{ labels, value }] });
    else metric.series.push({ labels, value });
  }

  drop(reason: DropReason): void {
    this.dropped.set(reason, (this.dropped.get(reason) ?? 0) + 1);
  }

  /** Ordered by name, then by labels, whatever the order of adding was. To be called once, when all is added. */
  finish(): readonly MetricSeries[] {
    const names = [...this.#metrics.keys()].sort();
    return names.map((name) => {
      const { declared, series } = this.#metrics.get(name) as { declared: Declared; series: Series[] };
      return { name, type: declared.type, help: declared.help, series: this.#unique(series) };
    });
  }

  #unique(series: Series[]): readonly Series[] {
    series.sort((a, b) => (a.labels < b.labels ? -1 : a.labels > b.labels ? 1 : 0));
    return series.filter((one, index) => {
      if (index === 0 || one.labels !== series[index - 1]?.labels) return true;
      this.drop('duplicate');
      return false;
    });
  }
}

export function countSeries(metrics: readonly MetricSeries[]): number {
  return metrics.reduce((sum, metric) => sum + metric.series.length, 0);
}

function isExportable(type: MetricType, value: number | bigint): boolean {
  if (typeof value === 'bigint') return type === 'gauge' || value >= 0n;
  return Number.isFinite(value) && (type === 'gauge' || value >= 0);
}
