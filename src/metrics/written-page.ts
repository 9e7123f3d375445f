import type { Value } from '../model/metric.ts';
import { type Layout, layOut, type MetricLayout } from './layout.ts';
import { roomFor, writeValue } from './number-text.ts';
import { type Format, lineStart, metricHead } from './render.ts';
import type { Section } from './section.ts';

/** The samples of one metric. */
interface Samples {
  readonly layout: MetricLayout;
  readonly values: readonly Value[];
  /** One line each, a line feed before it. */
  readonly bytes: Buffer;
  /** In the bytes, of each value its place and the place after it, in turns. */
  readonly bounds: Int32Array;
}

/** A page's metrics as text, from which one with the same series is made by writing changed values only. */
export interface WrittenPage {
  readonly sections: readonly Section[];
  readonly layout: Layout;
  readonly samples: readonly Samples[];
  readonly heads: ReadonlyMap<Format, readonly Buffer[]>;
}

/** True when both have the same series in the same order, whatever their values are. */
function haveSameSeries(a: readonly Section[], b: readonly Section[]): boolean {
  if (a.length !== b.length) return false;
  for (let at = 0; at < a.length; at += 1) if (a[at]?.list !== b[at]?.list) return false;
  return true;
}

/** `last`: the page before, which may have the same series: then its layout is kept. */
export function writePage(sections: readonly Section[], last: WrittenPage | undefined): WrittenPage {
  if (last !== undefined && haveSameSeries(sections, last.sections)) {
    const isOther = Uint8Array.from(sections, ({ values }, at) => (values === last.sections[at]?.values ? 0 : 1));
    return { ...last, sections, samples: last.samples.map((samples) => rewrite(samples, sections, isOther)) };
  }
  const layout = layOut(sections);
  const samples = layout.metrics.map((metric) => firstSamples(metric, sections));
  const heads = (format: Format): readonly Buffer[] => layout.metrics.map(({ declared }) => Buffer.from(metricHead(declared, format)));
  return { sections, layout, samples, heads: new Map((['text', 'openmetrics'] as const).map((format) => [format, heads(format)])) };
}

function firstSamples(layout: MetricLayout, sections: readonly Section[]): Samples {
  const values = Array.from(layout.places, (place, at) => sections[layout.sections[at] as number]?.values[place] as Value);
  const bounds = new Int32Array(2 * values.length);
  let text = '';
  let end = 0;
  for (const [at, value] of values.entries()) {
    const start = lineStart(layout.names[at] as string, layout.labels[at] as string);
    bounds[2 * at] = end + Buffer.byteLength(start);
    end = (bounds[2 * at] as number) + String(value).length;
    bounds[2 * at + 1] = end;
    text += start + String(value);
  }
  return { layout, values, bytes: Buffer.from(text), bounds };
}

/** `isOther`: per section 1 where it has other values than the ones written. */
function rewrite(samples: Samples, sections: readonly Section[], isOther: Uint8Array): Samples {
  const { layout, values: before } = samples;
  let values: Value[] | undefined;
  let room = 0;
  for (let at = 0; at < before.length; at += 1) {
    const section = layout.sections[at] as number;
    if (isOther[section] === 0) continue;
    const value = (sections[section] as Section).values[layout.places[at] as number] as Value;
    if (value === before[at]) continue;
    values ??= before.slice();
    values[at] = value;
    room += roomFor(value);
  }
  return values === undefined ? samples : patched(samples, values, room);
}

/** The bytes are made anew, since a scrape may still send those from before; between changed values they are copied. */
function patched({ layout, values: before, bytes, bounds }: Samples, values: readonly Value[], room: number): Samples {
  const target = Buffer.allocUnsafe(bytes.length + room);
  let moved: Int32Array | undefined;
  /** Up to where the old bytes are copied, and the new ones written. */
  let from = 0;
  let to = 0;
  for (let at = 0; at < values.length; at += 1) {
    const [start, end] = [bounds[2 * at] as number, bounds[2 * at + 1] as number];
    if (values[at] !== before[at]) {
      bytes.copy(target, to, from, start);
      to = writeValue(target, to + start - from, values[at] as Value);
      from = end;
    }
    const shift = to - from;
    if (moved === undefined && shift === 0) continue;
    // The beginning of a value moves with what stands before it, its end with itself.
    moved ??= bounds.slice();
    moved[2 * at + 1] = end + shift;
    if (at + 1 < values.length) moved[2 * at + 2] = (bounds[2 * at + 2] as number) + shift;
  }
  bytes.copy(target, to, from);
  return { layout, values, bytes: target.subarray(0, to + bytes.length - from), bounds: moved ?? bounds };
}

export const LINE_FEED = Buffer.from('\n');
const BLANK_LINE = Buffer.from('\n\n');

/** HELP, TYPE and samples of metrics as UTF-8, of all of them or from one place to another: what comes from all places is the whole. */
export function joinMetrics({ samples, heads }: WrittenPage, format: Format, from = 0, to = samples.length): Buffer {
  const between = format === 'text' ? BLANK_LINE : LINE_FEED;
  const parts: Buffer[] = [];
  for (let at = from; at < to; at += 1) {
    if (at > 0) parts.push(between);
    parts.push(heads.get(format)?.[at] as Buffer, samples[at]?.bytes as Buffer);
  }
  if (to === samples.length && parts.length > 0) parts.push(LINE_FEED);
  return Buffer.concat(parts);
}
