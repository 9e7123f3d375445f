import type { Snapshot } from '../model/snapshot.ts';
import type { PageFacts } from './agent-metrics.ts';
import { addContainers } from './container-metrics.ts';
import type { Layout } from './layout.ts';
import type { ReadingWriter } from './reading-metrics.ts';
import type { Format } from './render.ts';
import { SeriesPage } from './series-page.ts';
import { joinMetrics, type WrittenPage, writePage } from './written-page.ts';

/** Devices and containers of one snapshot, written at most once per format. */
export interface HardwarePage {
  readonly snapshot: Snapshot;
  readonly facts: PageFacts;
  /** HELP, TYPE and samples of all metrics as UTF-8, without an end mark. The same bytes each time; nobody may change them. */
  bytes(format: Format): Buffer;
}

/**
 * Writes the part of the page that is about devices and containers. From one snapshot to the next most of it stays: the same
 * series in the same order, the same labels, and metrics of which no value changed. Only the rest is written anew.
 */
export class HardwarePages {
  readonly #writer: ReadingWriter;
  #last: WrittenPage | undefined;

  constructor(writer: ReadingWriter) {
    this.#writer = writer;
  }

  of(snapshot: Snapshot): HardwarePage {
    const page = new SeriesPage();
    this.#writer.addDevices(page, snapshot);
    addContainers(page, snapshot);
    this.#writer.addContainers(page, snapshot);
    const written = writePage(page, this.#last);
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

function countSeries({ metrics }: Layout): PageFacts['series'] {
  const series = { device: 0, container: 0 };
  for (const { declared, places } of metrics) series[declared.name.startsWith('container_') ? 'container' : 'device'] += places.length;
  return series;
}
