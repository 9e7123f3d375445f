/** Scrapes closer to each other than this count as one: several scrapers of the same kind come together. */
const TOGETHER_MS = 250;
/** A scraper that stayed away for so many of its intervals will not come back soon. */
const MOST_MISSED = 3;

/**
 * Tells whether the snapshot of this moment is likely to be scraped, so that only such a one is prepared: an agent that reads
 * more often than it is asked would otherwise write most of its pages for nobody.
 */
export class ScrapeForecast {
  #lastScrapeMs: number | undefined;
  #scrapeGapMs: number | undefined;
  #lastSnapshotMs: number | undefined;
  #snapshotGapMs = 0;

  scraped(nowMs: number): void {
    const gapMs = this.#lastScrapeMs === undefined ? undefined : nowMs - this.#lastScrapeMs;
    if (gapMs !== undefined && gapMs < TOGETHER_MS) return;
    this.#lastScrapeMs = nowMs;
    this.#scrapeGapMs = gapMs;
  }

  /** A refresh makes several snapshots in short order, so that the longer gaps are the ones that count. */
  snapshotTaken(nowMs: number): void {
    if (this.#lastSnapshotMs !== undefined) this.#snapshotGapMs = Math.max(nowMs - this.#lastSnapshotMs, this.#snapshotGapMs * 0.8);
    this.#lastSnapshotMs = nowMs;
  }

  /** False until two scrapes told how often they come. */
  isExpected(nowMs: number): boolean {
    if (this.#lastScrapeMs === undefined || this.#scrapeGapMs === undefined) return false;
    const dueMs = this.#lastScrapeMs + this.#scrapeGapMs;
    return dueMs - nowMs <= this.#snapshotGapMs * 1.2 && nowMs - dueMs <= this.#scrapeGapMs * MOST_MISSED;
  }
}
