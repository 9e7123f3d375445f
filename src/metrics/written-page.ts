import { type Layout, layOut, type MetricLayout } from './layout.ts';
import { type Format, lineStart, metricHead } from './render.ts';
import type { SeriesPage } from './series-page.ts';

/** The samples of one metric. */
interface Samples {
  readonly layout: MetricLayout;
  /** Each sample's line up to the value. */
  readonly starts: readonly string[];
  readonly values: readonly (number | bigint)[];
  readonly bytes: Buffer;
}

/** A page's metrics as text, from which one with the same series is made by writing changed values only. */
export interface WrittenPage {
  readonly page: SeriesPage;
  readonly layout: Layout;
  readonly samples: readonly Samples[];
  readonly heads: ReadonlyMap<Format, readonly Buffer[]>;
}

/** `last`: the page before, where it may have the same series. */
export function writePage(page: SeriesPage, last: WrittenPage | undefined): WrittenPage {
  if (last !== undefined && page.hasSeriesOf(last.page)) {
    return { ...last, page, samples: last.samples.map((samples) => rewrite(samples, page)) };
  }
  const layout = layOut(page);
  const samples = layout.metrics.map((metric) => firstSamples(metric, page));
  const heads = (format: Format): readonly Buffer[] => layout.metrics.map(({ declared }) => Buffer.from(metricHead(declared, format)));
  return { page, layout, samples, heads: new Map((['text', 'openmetrics'] as const).map((format) => [format, heads(format)])) };
}

function firstSamples(layout: MetricLayout, page: SeriesPage): Samples {
  const starts = layout.labels.map((labels, index) => lineStart(layout.names[index] as string, labels));
  return withValues({ layout, starts }, valuesOf(layout, page));
}

function rewrite(samples: Samples, page: SeriesPage): Samples {
  const values = valuesOf(samples.layout, page);
  return values.every((value, index) => Object.is(value, samples.values[index])) ? samples : withValues(samples, values);
}

function withValues({ layout, starts }: Pick<Samples, 'layout' | 'starts'>, values: Samples['values']): Samples {
  let text = '';
  for (let index = 0; index < starts.length; index += 1) text += starts[index] + String(values[index]);
  return { layout, starts, values, bytes: Buffer.from(text) };
}

function valuesOf({ places }: MetricLayout, page: SeriesPage): Samples['values'] {
  return places.map((place) => page.valueAt(place));
}

/** HELP, TYPE and samples of all metrics as UTF-8, without an end mark. */
export function joinMetrics({ samples, heads }: WrittenPage, format: Format): Buffer {
  const [between, end] = format === 'text' ? [Buffer.from('\n\n'), Buffer.from('\n')] : [Buffer.from('\n'), Buffer.from('\n')];
  const parts: Buffer[] = [];
  for (const [index, { bytes }] of samples.entries()) {
    if (index > 0) parts.push(between);
    parts.push(heads.get(format)?.[index] as Buffer, bytes);
  }
  if (parts.length > 0) parts.push(end);
  return Buffer.concat(parts);
}
