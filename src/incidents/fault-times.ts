import { wallClockOf } from '../model/clock-step.ts';
import type { Fault, SavedFaults } from '../model/fault.ts';

/** The same fault with times on the wall clock as it is set now: it came before the clock was set, or is read after that. */
export function atPresent(fault: Fault, now: Parameters<typeof wallClockOf>[2]): Fault {
  if (fault.lastMs === undefined) return fault;
  const lastMs = wallClockOf(fault.lastMs, fault.lastMonotonicMs, now);
  if (lastMs === fault.lastMs) return fault;
  return { ...fault, lastMs, ...(fault.timeMs !== undefined && { timeMs: fault.timeMs + lastMs - fault.lastMs }) };
}

/** All times, moved by a step of the wall clock. */
export function shifted(saved: SavedFaults, byMs: number): SavedFaults {
  const { byEvents, held, repeats = {}, answeredAtMs } = saved;
  const mapped = <T, R>(lists: Readonly<Record<string, readonly T[]>>, change: (one: T) => R): Record<string, readonly R[]> =>
    Object.fromEntries(Object.entries(lists).map(([key, list]) => [key, list.map(change)]));
  return {
    ...saved,
    byEvents: mapped(byEvents, ([from, until]) => [from + byMs, until + byMs] as const),
    held: mapped(held, ({ fromMs, untilMs, ...span }) => ({
      ...{ ...span, fromMs: fromMs + byMs },
      ...(untilMs !== undefined && { untilMs: untilMs + byMs }),
    })),
    repeats: mapped(repeats, ({ seen, ...repeat }) => ({
      ...repeat,
      seen: seen.map(([atMs, distinct]) => [atMs + byMs, distinct] as const),
    })),
    ...(answeredAtMs !== undefined && { answeredAtMs: answeredAtMs + byMs }),
  };
}
