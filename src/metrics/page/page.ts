import { Registry } from 'prom-client';
import { DURATION_BOUNDS, type DurationCounts } from '../../model/duration-counts.ts';
import type { AgentMetricSpec, Value } from '../../model/metric.ts';
import { escapeHelp, joinLabels, type LabelText, labelText } from './labels.ts';
import { unitOf } from './units.ts';

export type Format = 'text' | 'openmetrics';

export const CONTENT_TYPES: Readonly<Record<Format, string>> = {
  text: Registry.PROMETHEUS_CONTENT_TYPE,
  openmetrics: Registry.OPENMETRICS_CONTENT_TYPE,
};

/** Last line of the OpenMetrics format. */
export const END = '# EOF\n';

/** Why a series was left out of a page. Closed set, used as values of the label `reason`. */
export const DROP_REASONS = ['duplicate', 'undeclared', 'invalid-value'] as const;
export type DropReason = (typeof DROP_REASONS)[number];

/** The parts of a metric declaration that a page needs. */
export type Head = Pick<AgentMetricSpec, 'name' | 'type' | 'help'>;

interface Sample {
  /** Suffix of the metric name: `_bucket`, `_sum` or `_count` for a histogram. */
  readonly suffix: string;
  readonly labels: LabelText;
  /** Order among the samples of one histogram. */
  readonly rank: number;
  readonly last: LabelText;
  readonly value: Value;
}

const BOUNDS = [...DURATION_BOUNDS.map(boundText), '+Inf'].map((le) => labelText({ le }));

/**
 * A metrics page. The caller adds series in any order; the page writes them sorted by name and labels. The page counts series that it
 * cannot show, so that none disappears silently.
 */
export class Page {
  readonly #metrics = new Map<string, { readonly head: Head; readonly samples: Sample[] }>();
  readonly #dropped = new Map<DropReason, number>();

  add(head: Head, labels: LabelText, value: Value): void {
    this.addSample(head, labels, value);
  }

  /** Adds one sample of a histogram; `last` is the label `le` of a bucket. */
  addSample(head: Head, labels: LabelText, value: Value, { suffix = '', last = '', rank = 0 } = {}): void {
    if (isExportable(head.type, value)) this.#samplesOf(head).push({ suffix, labels, rank, last, value });
    else this.drop('invalid-value');
  }

  addHistogram(head: Head, labels: LabelText, { withinBounds, count, sumSeconds }: DurationCounts): void {
    for (const [rank, last] of BOUNDS.entries())
      this.addSample(head, labels, withinBounds[rank] ?? count, { suffix: '_bucket', last, rank });
    this.addSample(head, labels, sumSeconds, { suffix: '_sum', rank: BOUNDS.length });
    this.addSample(head, labels, count, { suffix: '_count', rank: BOUNDS.length + 1 });
  }

  drop(reason: DropReason): void {
    this.#dropped.set(reason, (this.#dropped.get(reason) ?? 0) + 1);
  }

  /** Sorts the series and removes duplicates. Call it once, after all series were added. */
  finish(): FinishedPage {
    const metrics = [...this.#metrics.values()].sort((a, b) => (a.head.name < b.head.name ? -1 : 1));
    return new FinishedPage(
      metrics.map(({ head, samples }) => ({ head, samples: this.#unique(samples) })),
      this.#dropped,
    );
  }

  #unique(samples: Sample[]): readonly Sample[] {
    samples.sort((a, b) => (a.labels < b.labels ? -1 : a.labels > b.labels ? 1 : a.rank - b.rank));
    return samples.filter(({ labels, rank }, at) => {
      const before = samples[at - 1];
      const isUnique = labels !== before?.labels || rank !== before.rank;
      if (!isUnique) this.drop('duplicate');
      return isUnique;
    });
  }

  #samplesOf(head: Head): Sample[] {
    const known = this.#metrics.get(head.name);
    if (known !== undefined) return known.samples;
    const samples: Sample[] = [];
    this.#metrics.set(head.name, { head, samples });
    return samples;
  }
}

/** An immutable page. */
export class FinishedPage {
  readonly #metrics: readonly { readonly head: Head; readonly samples: readonly Sample[] }[];
  readonly dropped: ReadonlyMap<DropReason, number>;

  constructor(metrics: readonly { readonly head: Head; readonly samples: readonly Sample[] }[], dropped: ReadonlyMap<DropReason, number>) {
    this.#metrics = metrics;
    this.dropped = dropped;
  }

  /** Returns the number of series whose metric name starts with `prefix`. */
  count(prefix: string): number {
    return this.#metrics.reduce((sum, { head, samples }) => sum + (head.name.startsWith(prefix) ? samples.length : 0), 0);
  }

  /** Returns HELP, TYPE, UNIT and samples of all metrics, without the OpenMetrics end mark. The text format separates metrics by a blank line. */
  text(format: Format): string {
    return this.#metrics
      .map(({ head, samples }) => headText(head, format) + samplesText(head, samples))
      .join(format === 'text' ? '\n' : '');
  }
}

function headText({ name, type, help }: Head, format: Format): string {
  const isOpen = format === 'openmetrics';
  const family = isOpen && type === 'counter' ? name.replace(/_total$/, '') : name;
  const unit = isOpen ? unitOf(name) : undefined;
  return `# HELP ${family} ${escapeHelp(help, isOpen)}\n# TYPE ${family} ${type}\n${unit === undefined ? '' : `# UNIT ${family} ${unit}\n`}`;
}

function samplesText({ name }: Head, samples: readonly Sample[]): string {
  let text = '';
  for (const { suffix, labels, last, value } of samples) {
    const all = joinLabels(labels, last);
    text += all === '' ? `${name}${suffix} ${value}\n` : `${name}${suffix}{${all}} ${value}\n`;
  }
  return text;
}

function isExportable(type: Head['type'], value: Value): boolean {
  if (typeof value === 'bigint') return type === 'gauge' || value >= 0n;
  return Number.isFinite(value) && (type === 'gauge' || value >= 0);
}

/** OpenMetrics requires `10.0`. Both formats use this text, so that a bucket is the same series in both. */
function boundText(bound: number): string {
  return Number.isInteger(bound) ? `${bound}.0` : String(bound);
}
