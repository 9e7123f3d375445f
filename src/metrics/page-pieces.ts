import type { Format } from './render.ts';
import { joinMetrics, type WrittenPage } from './written-page.ts';

/** Metrics that stand still between others are a piece of their own from this size on. */
const WORTH_A_PIECE_BYTES = 65_536;

/** A metric that did not change in so many pages is one that stands still: errors come once and then not for weeks. */
const STANDS_AFTER_PAGES = 30;

/** A format that so many pages were not written in is asked for no more: somebody had a look once. */
const FORGOTTEN_AFTER_PAGES = 30;

/** Metrics from one place to another. */
interface Piece {
  readonly from: number;
  readonly to: number;
  readonly bytes: Buffer;
}

interface Cut {
  readonly page: WrittenPage;
  readonly pieces: readonly Piece[];
  /** The number of the page. */
  readonly count: number;
}

/**
 * Cuts pages into pieces, so that what was made of a piece, as its compressed form, serves for the next page too: where nothing in it
 * changed it is the same buffer. A page has mostly metrics that stand still for days, and the few that move are apart from them.
 */
export class PagePieces {
  /** By the name of a metric the number of the page in which it was last seen to change. */
  readonly #changedAt = new Map<string, number>();
  #count = 0;
  readonly #latest = new Map<Format, Cut>();

  /** HELP, TYPE and samples of all metrics as UTF-8, in order. Nobody may change them. */
  of(page: WrittenPage, format: Format): readonly Buffer[] {
    const last = this.#latest.get(format);
    this.#count += 1;
    if (last?.page.layout === page.layout) this.#compare(page, last.page);
    const pieces = this.#cut(page).map(({ from, to }) => {
      const known = last?.pieces.find((piece) => piece.from === from && piece.to === to && areSame(page, last.page, piece));
      return known ?? { from, to, bytes: joinMetrics(page, format, from, to) };
    });
    this.#latest.set(format, { page, pieces, count: this.#count });
    for (const [other, { count }] of this.#latest) if (this.#count - count > FORGOTTEN_AFTER_PAGES) this.#latest.delete(other);
    return pieces.map(({ bytes }) => bytes);
  }

  #compare({ samples, layout }: WrittenPage, before: WrittenPage): void {
    for (const [at, { declared }] of layout.metrics.entries()) {
      if (samples[at] !== before.samples[at]) this.#changedAt.set(declared.name, this.#count);
    }
  }

  #cut({ samples, layout: { metrics } }: WrittenPage): Omit<Piece, 'bytes'>[] {
    const changedAt = (at: number): number => this.#changedAt.get(metrics[at]?.declared.name as string) ?? -Infinity;
    const stands = (at: number): boolean => at < metrics.length && this.#count - changedAt(at) > STANDS_AFTER_PAGES;
    const cuts = [0];
    for (let at = 0; at < metrics.length; at += 1) {
      const from = at;
      let size = 0;
      for (; stands(at); at += 1) size += samples[at]?.bytes.length as number;
      if (size >= WORTH_A_PIECE_BYTES) cuts.push(from, at);
    }
    cuts.push(metrics.length);
    return cuts.flatMap((from, at) => {
      const to = cuts[at + 1] ?? from;
      return from < to ? [{ from, to }] : [];
    });
  }
}

function areSame(page: WrittenPage, before: WrittenPage, { from, to }: Omit<Piece, 'bytes'>): boolean {
  if (page.layout !== before.layout) return false;
  for (let at = from; at < to; at += 1) if (page.samples[at] !== before.samples[at]) return false;
  return true;
}
