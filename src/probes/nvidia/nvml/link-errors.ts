import { minutes } from '../../../model/duration.ts';
import type { LinkErrorMinutes, LinkSample } from '../sample.ts';

const WINDOW_MS = minutes(1);
const RECOVERIES: ReadonlySet<string> = new Set(['recovery', 'recovery_failed']);
/** A sound link has errors that the retransmission repairs. */
const NORMAL: ReadonlySet<string> = new Set(['effective']);

/**
 * Counts the minutes in which each link of a GPU had new errors. A burst is one minute: a link that fails has errors again and again, days
 * before a program dies of it.
 */
export class LinkErrors {
  readonly #links = new Map<number, Counted>();

  /** Takes a read of the links. `nowMs`: monotonic clock. */
  take(links: readonly LinkSample[], nowMs: number): void {
    const window = Math.floor(nowMs / WINDOW_MS);
    for (const { number, errors } of links)
      if (errors !== undefined) this.#links.set(number, counted(this.#links.get(number), errors, window));
  }

  /** Undefined for a link whose errors were never read. */
  of(number: number): LinkErrorMinutes | undefined {
    return this.#links.get(number);
  }
}

interface Counted extends LinkErrorMinutes {
  /** Counters of the last read, keyed by kind. */
  readonly counters: Readonly<Record<string, number>>;
  /** The last minute with new errors, and with a new recovery. */
  readonly window?: number | undefined;
  readonly recoveryWindow?: number | undefined;
}

/** The first read of a counter is its base, because the time of its errors is unknown. */
function counted(before: Counted | undefined, counters: Counted['counters'], window: number): Counted {
  if (before === undefined) return { counters, minutes: 0, recoveryMinutes: 0, kinds: [] };
  const grown = Object.keys(counters).filter(
    (kind) => !NORMAL.has(kind) && (counters[kind] as number) > (before.counters[kind] ?? Infinity),
  );
  if (grown.length === 0) return { ...before, counters };
  const isRecovery = grown.some((kind) => RECOVERIES.has(kind));
  return {
    counters,
    kinds: grown,
    window,
    minutes: before.minutes + Number(window !== before.window),
    recoveryWindow: isRecovery ? window : before.recoveryWindow,
    recoveryMinutes: before.recoveryMinutes + Number(isRecovery && window !== before.recoveryWindow),
  };
}
