import { minutes } from '../../../model/duration.ts';
import { INTENSE_PER_SECOND, type LinkErrorMinutes, type LinkSample } from '../sample.ts';

const WINDOW_MS = minutes(1);
const MS_PER_SECOND = 1_000;
const RECOVERIES: ReadonlySet<string> = new Set(['recovery', 'recovery_failed']);
/** A sound link has such errors: a retransmission repairs them. */
const NORMAL: ReadonlySet<string> = new Set(['effective']);

/**
 * Counts the minutes in which each link of a GPU had new errors. A burst is one minute: a link that fails has errors again and again, days
 * before a program dies of it. A minute with so many errors that they are a fault of their own does not count.
 */
export class LinkErrors {
  readonly #links = new Map<number, LinkCounts>();

  /** Takes a read of the links. `nowMs`: monotonic clock. */
  take(links: readonly LinkSample[], nowMs: number): void {
    const minute = Math.floor(nowMs / WINDOW_MS);
    for (const { number, errors = {} } of links) {
      if (hasCounters(errors)) this.#links.set(number, countsOf(this.#links.get(number), errors, minute, nowMs));
    }
  }

  /** Undefined for a link whose errors were not read. */
  of({ number, errors = {} }: LinkSample): LinkErrorMinutes | undefined {
    const counts = hasCounters(errors) ? this.#links.get(number) : undefined;
    return (
      counts && {
        minutes: counts.all?.count,
        recoveryMinutes: counts.recoveries?.count,
        kinds: counts.kinds,
        ...(counts.perSecond !== undefined && { perSecond: counts.perSecond }),
      }
    );
  }
}

/** A board that does not count errors gives an empty list. */
const hasCounters = (errors: object): boolean => Object.keys(errors).length > 0;

interface LinkCounts {
  /** Counters of the last read, keyed by kind. */
  readonly counters: Readonly<Record<string, number>>;
  readonly atMs: number;
  /** Kinds of the latest new errors. */
  readonly kinds: readonly string[];
  /** New errors a second of the most frequent kind between the last two reads. */
  readonly perSecond: number | undefined;
  readonly all: Minutes | undefined;
  readonly recoveries: Minutes | undefined;
}

/** Number of minutes with new errors, and the last of them. */
interface Minutes {
  readonly count: number;
  readonly last: number | undefined;
}

/** The first read of a counter is its base, because the time of its errors is unknown. */
function countsOf(before: LinkCounts | undefined, counters: LinkCounts['counters'], minute: number, atMs: number): LinkCounts {
  const kinds = Object.keys(counters).filter((kind) => !NORMAL.has(kind) && counters[kind] !== 0);
  const isNew = (kind: string): boolean => (counters[kind] as number) > (before?.counters[kind] ?? Number.POSITIVE_INFINITY);
  const grown = kinds.filter(isNew);
  const perSecond = before === undefined || atMs <= before.atMs ? undefined : mostNew(before, counters, kinds, atMs);
  const isIntense = (perSecond ?? 0) >= INTENSE_PER_SECOND;
  const minutesOf = (among: readonly string[], known: Minutes | undefined): Minutes | undefined => {
    if (among.length === 0) return known;
    const { count, last } = known ?? { count: 0, last: undefined };
    return !isIntense && among.some(isNew) && last !== minute ? { count: count + 1, last: minute } : { count, last };
  };
  return {
    counters,
    atMs,
    perSecond,
    kinds: grown.length === 0 ? (before?.kinds ?? []) : grown,
    all: minutesOf(kinds, before?.all),
    recoveries: minutesOf(
      kinds.filter((kind) => RECOVERIES.has(kind)),
      before?.recoveries,
    ),
  };
}

function mostNew(before: LinkCounts, counters: LinkCounts['counters'], kinds: readonly string[], atMs: number): number {
  const grown = kinds.map((kind) => (counters[kind] as number) - (before.counters[kind] ?? Number.POSITIVE_INFINITY));
  return (Math.max(0, ...grown) * MS_PER_SECOND) / (atMs - before.atMs);
}
