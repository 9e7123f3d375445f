import { hours } from '../../model/duration.ts';
import type { ObservedSpans, TimeSpan } from '../../model/observed-spans.ts';

/** People look at the last half hour; one hour survives a step of the clock, too. */
const KEPT_MS = hours(1);
/** An agent that starts again and again fills no state file. */
const MOST_SPANS = 100;

export interface Watching {
  /** Keys of the devices that were judged. */
  readonly keys: readonly string[];
  readonly nowMs: number;
  /** A longer time between two judgements is a pause: the machine slept, for example. */
  readonly pauseMs: number;
  /** The first judgement of a run: what was before it, nobody saw. */
  readonly isFirst: boolean;
}

/** Adds one judgement. A wall clock that was set back ends spans at the present. Pure. */
export function observedAfter({ spans, since }: ObservedSpans, { keys, nowMs, pauseMs, isFirst }: Watching): ObservedSpans {
  const past = spans.filter(({ fromMs }) => fromMs <= nowMs).map(({ fromMs, untilMs }) => ({ fromMs, untilMs: Math.min(untilMs, nowMs) }));
  const last = past.at(-1);
  const goesOn = !isFirst && last !== undefined && nowMs - last.untilMs < pauseMs;
  const all: readonly TimeSpan[] = goesOn ? past.with(-1, { ...last, untilMs: nowMs }) : [...past, { fromMs: nowMs, untilMs: nowMs }];
  return {
    spans: all.filter(({ untilMs }) => nowMs - untilMs < KEPT_MS).slice(-MOST_SPANS),
    since: Object.fromEntries(keys.map((key) => [key, Math.min(since[key] ?? nowMs, nowMs)])),
  };
}
