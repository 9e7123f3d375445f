import { minutes } from '../../../model/duration.ts';
import type { LinkSample } from '../sample.ts';

const WINDOW_MS = minutes(1);

/**
 * Counts the minutes in which the links of a GPU had new errors. A burst is one minute: a link that fails has errors again and again,
 * days before a program dies of it.
 */
export class LinkErrors {
  readonly #totals = new Map<number, number>();
  readonly #minutesOf = new Map<number, number>();
  #minutes = 0;
  #lastWindow: number | undefined;

  /** Takes a read of the links. `nowMs`: monotonic clock. */
  take(links: readonly LinkSample[], nowMs: number): void {
    const window = Math.floor(nowMs / WINDOW_MS);
    const grown = links.filter(({ number, errors }) => this.#hasGrown(number, errors));
    if (grown.length === 0) return;
    for (const { number } of grown) this.#minutesOf.set(number, (this.#minutesOf.get(number) ?? 0) + 1);
    if (window !== this.#lastWindow) this.#minutes += 1;
    this.#lastWindow = window;
  }

  /** Number of minutes in which at least one link had new errors. It never falls. */
  get minutes(): number {
    return this.#minutes;
  }

  /** Links that had new errors, those with the most first. */
  get faulty(): readonly number[] {
    return [...this.#minutesOf].sort(([, a], [, b]) => b - a).map(([number]) => number);
  }

  /** The first read gives the base, because the time of its errors is unknown. */
  #hasGrown(number: number, errors: LinkSample['errors'] = {}): boolean {
    const counts = Object.values(errors);
    if (counts.length === 0) return false;
    const total = counts.reduce((sum, count) => sum + count, 0);
    const before = this.#totals.get(number);
    this.#totals.set(number, total);
    return before !== undefined && total > before;
  }
}
