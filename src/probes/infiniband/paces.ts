import type { Millis } from '../../model/duration.ts';
import type { InfinibandOptions } from './options.ts';

/** How often each class of files is read. 0: at every refresh. */
export interface Paces {
  /** `state`, `phys_state`, `rate`: three firmware commands per port. */
  readonly levelMs: Millis;
  /** Counters: one firmware command for all of `hw_counters`, one for each file of `counters`. */
  readonly countersMs: Millis;
  /** Firmware version, GUIDs, interfaces, character devices, lists of files. */
  readonly factsMs: Millis;
}

export function pacesOf(options: InfinibandOptions): Paces {
  return {
    levelMs: options['state-interval'],
    countersMs: options['counter-interval'],
    factsMs: options['facts-interval'],
  };
}

/** Refreshes do not come to the millisecond: one that comes this early is on time. */
const EARLY_MS = 50;

export function isDue(readAtMs: number, everyMs: number, nowMs: number): boolean {
  return nowMs - readAtMs >= everyMs - EARLY_MS;
}
