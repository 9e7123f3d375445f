import type { Snapshot } from '../model/snapshot.ts';
import type { PageFacts } from './agent-metrics.ts';
import { HardwareSections } from './hardware-sections.ts';
import type { Layout } from './layout.ts';
import { PagePieces } from './page-pieces.ts';
import type { Catalogue } from './reading-metrics.ts';
import type { Format } from './render.ts';
import { droppedOf } from './section.ts';
import { type WrittenPage, writePage } from './written-page.ts';

/** Devices and containers of one snapshot, written at most once per format. */
export interface HardwarePage {
  readonly snapshot: Snapshot;
  readonly facts: PageFacts;
  /**
   * HELP, TYPE and samples of all metrics as UTF-8, without an end mark, in pieces: the same list each time. A piece in which nothing
   * changed is the same buffer as in the page of the snapshot before. Nobody may change them.
   */
  pieces(format: Format): readonly Buffer[];
}

/**
 * Writes the part of the page that is about devices and containers. From one snapshot to the next most of it stays: the same
 * series in the same order, the same labels, and metrics of which no value changed. Only the rest is written anew.
 */
export class HardwarePages {
  readonly #sections: HardwareSections;
  readonly #pieces = new PagePieces();
  #last: { readonly written: WrittenPage; readonly series: PageFacts['series'] } | undefined;

  constructor(catalogue: Catalogue) {
    this.#sections = new HardwareSections(catalogue);
  }

  of(snapshot: Snapshot): HardwarePage {
    const written = writePage(this.#sections.of(snapshot), this.#last?.written);
    const { layout, sections } = written;
    const series = this.#last?.written.layout === layout ? this.#last.series : countSeries(layout);
    this.#last = { written, series };
    const pages = new Map<Format, readonly Buffer[]>();
    return {
      snapshot,
      facts: { series, dropped: droppedOf(sections, layout.duplicates) },
      pieces: (format) => {
        const pieces = pages.get(format) ?? this.#pieces.of(written, format);
        pages.set(format, pieces);
        return pieces;
      },
    };
  }
}

function countSeries({ metrics }: Layout): PageFacts['series'] {
  const series = { device: 0, container: 0 };
  for (const { declared, names } of metrics) series[declared.name.startsWith('container_') ? 'container' : 'device'] += names.length;
  return series;
}
