import { Registry } from 'prom-client';
import { DURATION_BOUNDS, type DurationCounts } from '../../model/duration-counts.ts';
import type { AgentMetricSpec, Value } from '../../model/metric.ts';
import type { Values } from '../../model/readings.ts';
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
export type Head = Pick<AgentMetricSpec, 'name' | 'type' | 'help'>;

/** One line of a page up to its value. */
interface Line {
  readonly head: Head;
  /** Suffix of the metric name: `_bucket`, `_sum` or `_count` for a histogram. */
  readonly suffix: string;
  readonly labels: LabelText;
  /** Order among the samples of one histogram. */
  readonly rank: number;
  readonly last: LabelText;
  readonly text: string;
}

/** What one caller added, in its order. `lines` are the same object as in the page before while the series are the same. */
interface Block {
  readonly inputs: readonly unknown[];
  readonly lines: readonly Line[];
  /** The values of the lines. */
  readonly values: Values;
  readonly dropped: readonly DropReason[];
}

const BOUNDS = [...DURATION_BOUNDS.map(boundText), '+Inf'].map((le) => labelText({ le }));

/** One metric of a page: where its lines are, in the order of the page. */
interface Metric {
  readonly head: Head;
  readonly blocks: readonly number[];
  readonly places: readonly number[];
}

/** The bytes of a page in one format. A later page with the same lines copies the metrics whose values did not change. */
interface Encoded {
  readonly bytes: Buffer;
  /** Where each metric ends, in bytes from the begin of the page. */
  readonly ends: readonly number[];
  /** The values of each block. */
  readonly columns: readonly Values[];
}

/** The order of a page, for as long as its series stay the same. */
interface Layout {
  readonly metrics: readonly Metric[];
  /** For each block: the index of the metric of each line. */
  readonly metricAt: readonly (readonly number[])[];
  readonly duplicates: number;
}

/**
 * A metrics page. The caller adds series in any order; the page writes them sorted by name and labels. The page counts series that it
 * cannot show, so that none disappears silently. It is made from the page before: what has the same series as there keeps the order and the
 * texts of its lines, and gets other values.
 */
export class Page {
  readonly #before: FinishedPage | undefined;
  readonly #blocks: Block[] = [];
  readonly #keys: string[] = [];
  #open: OpenBlock;
  #added = 0;

  constructor(before?: FinishedPage) {
    this.#before = before;
    this.#open = new OpenBlock(before?.blockOf(''));
  }

  /** `last`: labels after those that many series share. Of two different `labels` of a metric, none may begin with the other one. */
  add(head: Head, labels: LabelText, value: Value, last: LabelText = ''): void {
    this.#added += 1;
    this.#open.push(head, '', labels, 0, last, value);
  }

  /** Adds one sample of a histogram; `last` is the label `le` of a bucket. */
  addSample(head: Head, labels: LabelText, value: Value, { suffix = '', last = '', rank = 0 } = {}): void {
    this.#added += 1;
    this.#open.push(head, suffix, labels, rank, last, value);
  }

  addHistogram(head: Head, labels: LabelText, { withinBounds, count, sumSeconds }: DurationCounts): void {
    for (const [rank, last] of BOUNDS.entries())
      this.addSample(head, labels, withinBounds[rank] ?? count, { suffix: '_bucket', last, rank });
    this.addSample(head, labels, sumSeconds, { suffix: '_sum', rank: BOUNDS.length });
    this.addSample(head, labels, count, { suffix: '_count', rank: BOUNDS.length + 1 });
  }

  /**
   * Adds what `write` adds. It depends on `inputs` alone: while all of them are the same as in the page before, nothing is written anew.
   * Without inputs, only the texts of the same series are kept.
   */
  block(key: string, inputs: readonly unknown[], write: () => void): void {
    const before = this.#before?.blockOf(key);
    const isSame = before !== undefined && inputs.length > 0 && areSameInputs(before.inputs, inputs);
    this.#keep(key, isSame ? before : this.#written(before, inputs, write));
  }

  /** Adds a column of values to series that are known by their list. `first`: labels before those of a series. */
  column(key: string, series: readonly (ColumnSeries | undefined)[], first: LabelText, values: Values): void {
    const before = this.#before?.blockOf(key);
    const inputs = [series, first, values] as const;
    const write = (): void => {
      for (const [at, one] of series.entries())
        if (one === undefined) this.drop('undeclared');
        else this.add(one.head, first, values[at] as Value, one.last);
    };
    const isOfSeries = before !== undefined && before.inputs[0] === series && before.inputs[1] === first;
    if (isOfSeries && before.inputs[2] === values) this.#keep(key, before);
    else this.#keep(key, (isOfSeries ? this.#moved(before, inputs) : undefined) ?? this.#written(before, inputs, write));
  }

  /** The caller lets others work when it is true, after each {@link STEP} series. */
  takesStep(): boolean {
    if (this.#added < STEP) return false;
    this.#added = 0;
    return true;
  }

  drop(reason: DropReason): void {
    this.#open.dropped.push(reason);
  }

  /** Sorts the series and removes duplicates. Call it once, after all series were added. */
  *finish(): Steps<FinishedPage> {
    this.#keep('', this.#open.close([]));
    const before = this.#before;
    const isAsBefore = before?.hasLinesOf(this.#blocks) === true;
    const layout = isAsBefore ? before.layout : yield* layoutOf(this.#blocks);
    return new FinishedPage(this.#keys, this.#blocks, layout, isAsBefore ? before.encoded : new Map());
  }

  #keep(key: string, block: Block): void {
    this.#keys.push(key);
    this.#blocks.push(block);
  }

  /** The lines of the block before with other values. Undefined when that has not all lines, or a value cannot be exported. */
  #moved(before: Block, inputs: readonly [readonly (ColumnSeries | undefined)[], LabelText, Values]): Block | undefined {
    const [series, , values] = inputs;
    if (before.lines.length !== series.length || !areExportable(before.lines, values)) return undefined;
    this.#added += values.length;
    return { inputs, lines: before.lines, values, dropped: before.dropped };
  }

  #written(before: Block | undefined, inputs: readonly unknown[], write: () => void): Block {
    const outer = this.#open;
    const own = new OpenBlock(before);
    this.#open = own;
    write();
    this.#open = outer;
    return own.close(inputs);
  }
}

/** A series of {@link Page.column}. */
export interface ColumnSeries {
  readonly head: Head;
  readonly last: LabelText;
}

/** A block that is being written. While it has the lines of the block before, it makes none. */
class OpenBlock {
  readonly #before: readonly Line[];
  #lines: Line[] | undefined;
  readonly #values: Value[] = [];
  readonly dropped: DropReason[] = [];

  constructor(before: Block | undefined) {
    this.#before = before?.lines ?? [];
  }

  push(head: Head, suffix: string, labels: LabelText, rank: number, last: LabelText, value: Value): void {
    if (!isExportable(head.type, value)) {
      this.dropped.push('invalid-value');
      return;
    }
    const at = this.#values.length;
    this.#values.push(value);
    const known = this.#before[at];
    const isKnown =
      known !== undefined &&
      known.head === head &&
      known.labels === labels &&
      known.last === last &&
      known.suffix === suffix &&
      known.rank === rank;
    if (isKnown && this.#lines === undefined) return;
    this.#lines ??= this.#before.slice(0, at);
    this.#lines.push(isKnown ? known : { head, suffix, labels, rank, last, text: textOf(head, suffix, joinLabels(labels, last)) });
  }

  close(inputs: readonly unknown[]): Block {
    const values = this.#values;
    const isSame = values.length === this.#before.length;
    return { inputs, lines: this.#lines ?? (isSame ? this.#before : this.#before.slice(0, values.length)), values, dropped: this.dropped };
  }
}

function areSameInputs(a: readonly unknown[], b: readonly unknown[]): boolean {
  for (let at = 0; at < b.length; at += 1) if (a[at] !== b[at]) return false;
  return a.length === b.length;
}

function areExportable(lines: readonly Line[], values: Values): boolean {
  for (let at = 0; at < lines.length; at += 1) {
    const value = values[at] as Value;
    const isUsual = value >= 0 && value < Number.POSITIVE_INFINITY;
    if (!isUsual && !isExportable((lines[at] as Line).head.type, value)) return false;
  }
  return true;
}

function* layoutOf(blocks: readonly Block[]): Steps<Layout> {
  const found = new Map<
    string,
    { readonly head: Head; readonly blocks: number[]; readonly places: number[]; last: Line; isSorted: boolean }
  >();
  let steps = 0;
  for (const [block, { lines }] of blocks.entries()) {
    for (let place = 0; place < lines.length; place += 1) {
      const line = lines[place] as Line;
      const known = found.get(line.head.name);
      if (known === undefined) {
        found.set(line.head.name, { head: line.head, blocks: [block], places: [place], last: line, isSorted: true });
        continue;
      }
      // Devices and holders come in order, so most metrics need no sorting and have no duplicates.
      if (known.isSorted) known.isSorted = compare(known.last, line) < 0;
      known.last = line;
      known.blocks.push(block);
      known.places.push(place);
    }
    steps += lines.length;
    if (steps < STEP) continue;
    steps = 0;
    yield;
  }
  const named = [...found.values()].sort((a, b) => (a.head.name < b.head.name ? -1 : 1));
  const metrics = named.map((one) => (one.isSorted ? one : sorted(one, blocks)));
  const metricAt = blocks.map(({ lines }) => new Array<number>(lines.length));
  for (const [at, one] of named.entries())
    for (let n = 0; n < one.places.length; n += 1) (metricAt[one.blocks[n] as number] as number[])[one.places[n] as number] = at;
  const count = (all: readonly Metric[]): number => all.reduce((sum, { places }) => sum + places.length, 0);
  return { metrics, metricAt, duplicates: count(named) - count(metrics) };
}

/** In the order of the page, without duplicates. */
function sorted({ head, blocks, places }: Metric, all: readonly Block[]): Metric {
  const lines = places.map((place, n) => ({ line: all[blocks[n] as number]?.lines[place] as Line, block: blocks[n] as number, place }));
  lines.sort((a, b) => compare(a.line, b.line));
  const unique = lines.filter(({ line }, at) => at === 0 || compare((lines[at - 1] as { readonly line: Line }).line, line) !== 0);
  return { head, blocks: unique.map(({ block }) => block), places: unique.map(({ place }) => place) };
}

/** Most neighbours have the same object as `labels`. */
const compare = (a: Line, b: Line): number => compareTexts(a.labels, b.labels) || a.rank - b.rank || compareTexts(a.last, b.last);
const compareTexts = (a: LabelText, b: LabelText): number => (a === b ? 0 : a < b ? -1 : 1);

/** An immutable page. */
export class FinishedPage {
  readonly #blocks: readonly Block[];
  readonly #byKey: ReadonlyMap<string, Block>;
  readonly layout: Layout;
  /** The latest bytes of this page, or of another one with the same lines. */
  readonly encoded: Map<Format, Encoded>;

  constructor(keys: readonly string[], blocks: readonly Block[], layout: Layout, encoded: Map<Format, Encoded>) {
    this.#blocks = blocks;
    this.#byKey = new Map(keys.map((key, at) => [key, blocks[at] as Block]));
    this.layout = layout;
    this.encoded = encoded;
  }

  get dropped(): ReadonlyMap<DropReason, number> {
    const counts = new Map<DropReason, number>();
    for (const { dropped } of this.#blocks)
      if (dropped.length > 0) for (const reason of dropped) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    const { duplicates } = this.layout;
    return duplicates === 0 ? counts : counts.set('duplicate', duplicates + (counts.get('duplicate') ?? 0));
  }

  blockOf(key: string): Block | undefined {
    return this.#byKey.get(key);
  }

  hasLinesOf(blocks: readonly Block[]): boolean {
    return blocks.length === this.#blocks.length && blocks.every(({ lines }, at) => lines === this.#blocks[at]?.lines);
  }

  has(name: string): boolean {
    return this.layout.metrics.some(({ head }) => head.name === name);
  }

  /** Returns the number of series whose metric name starts with `prefix`. */
  count(prefix: string): number {
    return this.layout.metrics.reduce((sum, { head, places }) => sum + (head.name.startsWith(prefix) ? places.length : 0), 0);
  }

  /** Encodes HELP, TYPE, UNIT and samples of all metrics, without the OpenMetrics end mark. The text format separates metrics by a blank line. */
  *bytes(format: Format): Steps<Buffer> {
    const { metrics } = this.layout;
    const before = this.encoded.get(format);
    const changed = before && this.#changedSince(before.columns);
    const pieces: Buffer[] = [];
    const ends: number[] = [];
    let [end, taken, written] = [0, 0, 0];
    for (let at = 0; at < metrics.length; at += 1) {
      const from = before?.ends[at - 1] ?? 0;
      const to = before?.ends[at] ?? 0;
      if (changed?.has(at) === false) {
        end += to - from;
      } else {
        const metric = metrics[at] as Metric;
        const own = Buffer.from((at > 0 && format === 'text' ? '\n' : '') + this.#textOf(metric, format));
        if (before !== undefined) pieces.push(before.bytes.subarray(taken, from));
        taken = to;
        pieces.push(own);
        end += own.length;
        written += metric.places.length;
      }
      ends.push(end);
      if (written < STEP) continue;
      written = 0;
      yield;
    }
    if (before !== undefined) pieces.push(before.bytes.subarray(taken));
    const bytes = Buffer.concat(pieces, end);
    this.encoded.set(format, { bytes, ends, columns: this.#blocks.map(({ values }) => values) });
    return bytes;
  }

  /** The metrics that have another value than in these columns. */
  #changedSince(columns: readonly Values[]): ReadonlySet<number> {
    const changed = new Set<number>();
    for (let n = 0; n < columns.length; n += 1) {
      const { values } = this.#blocks[n] as Block;
      const before = columns[n] as Values;
      if (values === before) continue;
      const metricAt = this.layout.metricAt[n] as readonly number[];
      for (let at = 0; at < values.length; at += 1) if (values[at] !== before[at]) changed.add(metricAt[at] as number);
    }
    return changed;
  }

  #textOf({ head, blocks, places }: Metric, format: Format): string {
    const parts = [headText(head, format)];
    for (let n = 0; n < places.length; n += 1) {
      const { lines, values } = this.#blocks[blocks[n] as number] as Block;
      const at = places[n] as number;
      parts.push((lines[at] as Line).text, `${values[at]}\n`);
    }
    return parts.join('');
  }
}

function headText(head: Head, format: Format): string {
  const { name, type } = head;
  const isOpen = format === 'openmetrics';
  const family = isOpen && type === 'counter' ? name.replace(/_total$/, '') : name;
  // A metric without a unit says so: Prometheus 3 would give it that of the metric before as label `__unit__`.
  const unit = isOpen ? `# UNIT ${family} ${unitOf(name) ?? ''}\n` : '';
  return `# HELP ${family} ${escapeHelp(head.help, isOpen)}\n# TYPE ${family} ${type}\n${unit}`;
}

function textOf({ name }: Head, suffix: string, labels: LabelText): string {
  return labels === '' ? `${name}${suffix} ` : `${name}${suffix}{${labels}} `;
}

function isExportable(type: Head['type'], value: Value): boolean {
  if (typeof value === 'bigint') return type === 'gauge' || value >= 0n;
  return Number.isFinite(value) && (type === 'gauge' || value >= 0);
}

/** OpenMetrics requires `10.0`. Both formats use this text, so that a bucket is the same series in both. */
function boundText(bound: number): string {
  return Number.isInteger(bound) ? `${bound}.0` : String(bound);
}
