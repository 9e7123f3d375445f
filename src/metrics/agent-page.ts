import type { Clock } from '../host/clock.ts';
import type { AgentStats } from '../model/agent-stats.ts';
import { addAgent } from './agent-metrics.ts';
import type { HardwarePage } from './hardware-pages.ts';
import { ProcessFiles } from './process-files.ts';
import { END, type Format, renderPage } from './render.ts';
import { SeriesPage } from './series-page.ts';
import { joinMetrics, LINE_FEED, type WrittenPage, writePage } from './written-page.ts';

/** Scrapes no further apart than this are shown the same numbers: they would not tell them apart from a slower answer. */
const TOGETHER_MS = 100;

interface Written {
  /** Monotonic. */
  readonly atMs: number;
  readonly bytes: Promise<Buffer>;
}

/** Writes what the page says of the agent itself, at its end: once for all scrapes that come at the same time. */
export class AgentPage {
  readonly #stats: () => AgentStats;
  readonly #clock: Clock;
  readonly #own = new ProcessFiles();
  readonly #written = new Map<Format, Written>();
  /** The page that those are the end of. */
  #shown: HardwarePage | undefined;
  /** The latest page, from which one with the same series is made. */
  #series: WrittenPage | undefined;

  constructor(stats: () => AgentStats, clock: Clock) {
    this.#stats = stats;
    this.#clock = clock;
  }

  /** UTF-8, from the blank line after `shown` on; the same buffer for scrapes that come together. Nobody may change it. */
  after(shown: HardwarePage | undefined, format: Format): Promise<Buffer> {
    if (shown !== this.#shown) {
      this.#shown = shown;
      this.#written.clear();
    }
    const atMs = this.#clock.monotonic();
    const last = this.#written.get(format);
    if (last !== undefined && atMs - last.atMs < TOGETHER_MS) return last.bytes;
    const written: Written = { atMs, bytes: this.#write(shown, format) };
    this.#written.set(format, written);
    // A failure is not kept.
    written.bytes.catch(() => {
      if (this.#written.get(format) === written) this.#written.delete(format);
    });
    return written.bytes;
  }

  async #write(shown: HardwarePage | undefined, format: Format): Promise<Buffer> {
    const page = new SeriesPage();
    addAgent(page, this.#stats(), this.#own, shown);
    const last = this.#series;
    const sections = [page.section(last?.sections[0])];
    const written = writePage(sections, last);
    this.#series = written;
    const isKnown = written.layout === last?.layout;
    const bytes = isKnown ? framed(joinMetrics(written, format), format) : Buffer.from(await renderPage(sections, format));
    // In the text format a blank line stands between any two metrics.
    const isFollowing = shown !== undefined && shown.pieces(format).length > 0;
    return format === 'text' && isFollowing ? Buffer.concat([LINE_FEED, bytes]) : bytes;
  }
}

/** As the registry frames it. */
function framed(metrics: Buffer, format: Format): Buffer {
  return format === 'text' ? metrics : Buffer.concat([metrics, Buffer.from(END)]);
}
