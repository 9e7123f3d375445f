import type { Snapshot } from '../model/snapshot.ts';
import type { PageFacts } from './agent-metrics.ts';
import { HardwareSections } from './hardware-sections.ts';
import type { Layout } from './layout.ts';
import type { Catalogue } from './reading-metrics.ts';
import type { Format } from './render.ts';
import { droppedOf } from './section.ts';
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
  readonly #sections: HardwareSections;
  #last: { readonly written: WrittenPage; readonly series: PageFacts['series'] } | undefined;

  constructor(catalogue: Catalogue) {
    this.#sections = new HardwareSections(catalogue);
  }

  of(snapshot: Snapshot): HardwarePage {
    const written = writePage(this.#sections.of(snapshot), this.#last?.written);
    const { layout, sections } = written;
    const series = this.#last?.written.layout === layout ? this.#last.series : countSeries(layout);
    this.#last = { written, series };
    const pages = new Map<Format, Buffer>();
    return {
      snapshot,
      facts: { series, dropped: droppedOf(sections, layout.duplicates) },
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
  for (const { declared, names } of metrics) series[declared.name.startsWith('container_') ? 'container' : 'device'] += names.length;
  return series;
}
