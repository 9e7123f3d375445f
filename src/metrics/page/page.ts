import { Registry } from 'prom-client';
import { fullHelp } from '../../model/deprecation.ts';
import { DURATION_BOUNDS, type DurationCounts } from '../../model/duration-counts.ts';
import type { AgentMetricSpec, Value } from '../../model/metric.ts';
import { escapeHelp, joinLabels, type LabelText, labelText } from './labels.ts';
import { STEP, type Steps } from './steps.ts';
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
export type Head = Pick<AgentMetricSpec, 'name' | 'type' | 'help' | 'deprecated'>;

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

/** Text of this length is encoded at once: a longer one costs more to collect, and a shorter one more to send. */
const PIECE_LENGTH = 65_536;

interface Metric {
  readonly head: Head;
  readonly samples: readonly Sample[];
}

/**
 * A metrics page. The caller adds series in any order; the page writes them sorted by name and labels. The page counts series that it
 * cannot show, so that none disappears silently.
 */
export class Page {
  readonly #metrics = new Map<string, { readonly head: Head; readonly samples: Sample[]; isSorted: boolean }>();
  readonly #dropped = new Map<DropReason, number>();
  #added = 0;

  /** `last`: labels after those that many series share. Of two different `labels` of a metric, none may begin with the other one. */
  add(head: Head, labels: LabelText, value: Value, last: LabelText = ''): void {
    this.#push(head, { suffix: '', labels, rank: 0, last, value });
  }

  /** Adds one sample of a histogram; `last` is the label `le` of a bucket. */
  addSample(head: Head, labels: LabelText, value: Value, { suffix = '', last = '', rank = 0 } = {}): void {
    this.#push(head, { suffix, labels, rank, last, value });
  }

  addHistogram(head: Head, labels: LabelText, { withinBounds, count, sumSeconds }: DurationCounts): void {
    for (const [rank, last] of BOUNDS.entries())
      this.addSample(head, labels, withinBounds[rank] ?? count, { suffix: '_bucket', last, rank });
    this.addSample(head, labels, sumSeconds, { suffix: '_sum', rank: BOUNDS.length });
    this.addSample(head, labels, count, { suffix: '_count', rank: BOUNDS.length + 1 });
  }

  /** The caller lets others work when it is true, after each {@link STEP} series. */
  get isStep(): boolean {
    if (this.#added < STEP) return false;
    this.#added = 0;
    return true;
  }

  drop(reason: DropReason): void {
    this.#dropped.set(reason, (this.#dropped.get(reason) ?? 0) + 1);
  }

  /** Sorts the series and removes duplicates. Call it once, after all series were added. */
  *finish(): Steps<FinishedPage> {
    const metrics: Metric[] = [];
    let sorted = 0;
    for (const { head, samples, isSorted } of this.#metrics.values()) {
      metrics.push({ head, samples: isSorted ? samples : this.#unique(samples) });
      if (isSorted) continue;
      sorted += samples.length;
      if (sorted < STEP) continue;
      sorted = 0;
      yield;
    }
    return new FinishedPage(
      metrics.sort((a, b) => (a.head.name < b.head.name ? -1 : 1)),
      this.#dropped,
    );
  }

  #push(head: Head, sample: Sample): void {
    if (!isExportable(head.type, sample.value)) {
      this.drop('invalid-value');
      return;
    }
    this.#added += 1;
    const known = this.#metrics.get(head.name);
    if (known === undefined) {
      this.#metrics.set(head.name, { head, samples: [sample], isSorted: true });
      return;
    }
    // Devices and holders come in order, so most metrics need no sorting and have no duplicates.
    if (known.isSorted) known.isSorted = compare(known.samples[known.samples.length - 1] as Sample, sample) < 0;
    known.samples.push(sample);
  }

  #unique(samples: Sample[]): readonly Sample[] {
    samples.sort(compare);
    return samples.filter((sample, at) => {
      const before = samples[at - 1];
      const isUnique = before === undefined || compare(before, sample) !== 0;
      if (!isUnique) this.drop('duplicate');
      return isUnique;
    });
  }
}

/** Most neighbours have the same object as `labels`. */
const compare = (a: Sample, b: Sample): number => compareTexts(a.labels, b.labels) || a.rank - b.rank || compareTexts(a.last, b.last);
const compareTexts = (a: LabelText, b: LabelText): number => (a === b ? 0 : a < b ? -1 : 1);

/** An immutable page. */
export class FinishedPage {
  readonly #metrics: readonly Metric[];
  readonly dropped: ReadonlyMap<DropReason, number>;

  constructor(metrics: readonly Metric[], dropped: ReadonlyMap<DropReason, number>) {
    this.#metrics = metrics;
    this.dropped = dropped;
  }

  has(name: string): boolean {
    return this.#metrics.some(({ head }) => head.name === name);
  }

  /** Returns the number of series whose metric name starts with `prefix`. */
  count(prefix: string): number {
    return this.#metrics.reduce((sum, { head, samples }) => sum + (head.name.startsWith(prefix) ? samples.length : 0), 0);
  }

  /** Encodes HELP, TYPE, UNIT and samples of all metrics, without the OpenMetrics end mark. The text format separates metrics by a blank line. */
  *bytes(format: Format): Steps<readonly Buffer[]> {
    const pieces: Buffer[] = [];
    let text = '';
    let written = 0;
    for (const [at, { head, samples }] of this.#metrics.entries()) {
      text += (at > 0 && format === 'text' ? '\n' : '') + headText(head, format);
      for (const sample of samples) {
        text += lineOf(head, sample);
        written += 1;
        if (text.length >= PIECE_LENGTH) {
          pieces.push(Buffer.from(text));
          text = '';
        }
        if (written % STEP === 0) yield;
      }
    }
    if (text !== '') pieces.push(Buffer.from(text));
    return pieces;
  }
}

function headText(head: Head, format: Format): string {
  const { name, type } = head;
  const isOpen = format === 'openmetrics';
  const family = isOpen && type === 'counter' ? name.replace(/_total$/, '') : name;
  const unit = isOpen ? unitOf(name) : undefined;
  return `# HELP ${family} ${escapeHelp(fullHelp(head), isOpen)}\n# TYPE ${family} ${type}\n${unit === undefined ? '' : `# UNIT ${family} ${unit}\n`}`;
}

function lineOf({ name }: Head, { suffix, labels, last, value }: Sample): string {
  const all = joinLabels(labels, last);
  return all === '' ? `${name}${suffix} ${value}\n` : `${name}${suffix}{${all}} ${value}\n`;
}

function isExportable(type: Head['type'], value: Value): boolean {
  if (typeof value === 'bigint') return type === 'gauge' || value >= 0n;
  return Number.isFinite(value) && (type === 'gauge' || value >= 0);
}

/** OpenMetrics requires `10.0`. Both formats use this text, so that a bucket is the same series in both. */
function boundText(bound: number): string {
  return Number.isInteger(bound) ? `${bound}.0` : String(bound);
}
