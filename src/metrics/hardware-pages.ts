import type { Snapshot } from '../model/snapshot.ts';
import type { PageFacts } from './agent-metrics.ts';
import { addContainers } from './container-metrics.ts';
import { type Layout, layOut, type MetricLayout } from './layout.ts';
import type { ReadingWriter } from './reading-metrics.ts';
import { type Format, lineStart, metricHead } from './render.ts';
import { SeriesPage } from './series-page.ts';

/** Devices and containers of one snapshot, written at most once per format. */
export interface HardwarePage {
  readonly snapshot: Snapshot;
  readonly facts: PageFacts;
  /** HELP, TYPE and samples of all metrics as UTF-8, without an end mark. The same bytes each time; nobody may change them. */
  bytes(format: Format): Buffer;
}

/** The samples of one metric. */
interface Samples {
  readonly layout: MetricLayout;
  /** Each sample's line up to the value. */
  readonly starts: readonly string[];
  readonly values: readonly (number | bigint)[];
  readonly bytes: Buffer;
}

interface Written {
  readonly page: SeriesPage;
  readonly layout: Layout;
  readonly samples: readonly Samples[];
  readonly heads: ReadonlyMap<Format, readonly Buffer[]>;
}

/**
 * Writes the part of the page that is about devices and containers. From one snapshot to the next most of it stays: the same
 * series in the same order, the same labels, and metrics of which no value changed. Only the rest is written anew.
 */
export class HardwarePages {
  readonly #writer: ReadingWriter;
  #last: Written | undefined;

  constructor(writer: ReadingWriter) {
    this.#writer = writer;
  }

  of(snapshot: Snapshot): HardwarePage {
    const page = new SeriesPage();
    this.#writer.addDevices(page, snapshot);
    addContainers(page, snapshot);
    this.#writer.addContainers(page, snapshot);
    const written = write(page, this.#last);
    this.#last = written;
    if (written.layout.duplicates > 0) page.drop('duplicate', written.layout.duplicates);
    const pages = new Map<Format, Buffer>();
    return {
      snapshot,
      facts: { series: countSeries(written.layout), dropped: page.dropped },
      bytes(format) {
        const bytes = pages.get(format) ?? joinMetrics(written, format);
        pages.set(format, bytes);
        return bytes;
      },
    };
  }
}

function write(page: SeriesPage, last: Written | undefined): Written {
  if (last !== undefined && page.hasSeriesOf(last.page)) {
    return { ...last, page, samples: last.samples.map((samples) => rewrite(samples, page)) };
  }
  const layout = layOut(page);
  const samples = layout.metrics.map((metric) => firstSamples(metric, page));
  const heads = (format: Format): readonly Buffer[] => layout.metrics.map(({ declared }) => Buffer.from(metricHead(declared, format)));
  return { page, layout, samples, heads: new Map((['text', 'openmetrics'] as const).map((format) => [format, heads(format)])) };
}

function firstSamples(layout: MetricLayout, page: SeriesPage): Samples {
  const starts = layout.labels.map((labels) => lineStart(layout.declared.name, labels));
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

function joinMetrics({ samples, heads }: Written, format: Format): Buffer {
  const [between, end] = format === 'text' ? [Buffer.from('\n\n'), Buffer.from('\n')] : [Buffer.from('\n'), Buffer.from('\n')];
  const parts: Buffer[] = [];
  for (const [index, { bytes }] of samples.entries()) {
    if (index > 0) parts.push(between);
    parts.push(heads.get(format)?.[index] as Buffer, bytes);
  }
  if (parts.length > 0) parts.push(end);
  return Buffer.concat(parts);
}

function countSeries({ metrics }: Layout): PageFacts['series'] {
  const series = { device: 0, container: 0 };
  for (const { declared, places } of metrics) series[declared.name.startsWith('container_') ? 'container' : 'device'] += places.length;
  return series;
}
