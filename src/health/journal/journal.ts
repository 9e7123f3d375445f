import { type Clock, systemClock } from '../../host/clock.ts';
import { endsWithin } from '../../host/ends-within.ts';
import type { HealthEvent } from '../../model/events.ts';
import type { HealthEngine, Judgement } from '../engine/engine.ts';
import type { HealthMemory } from '../engine/memory.ts';
import type { StateFile } from './state-file.ts';

export interface JournalOptions {
  readonly engine: Pick<HealthEngine, 'state' | 'hasNews' | 'announce'>;
  /** Absent: nothing survives a restart, events are announced at once. */
  readonly file?: Pick<StateFile, 'write'>;
  /** Called for each event, in order, exactly once over all restarts of the agent as long as the file can be written. */
  announced(event: HealthEvent): void;
  /** Called after each write: the error's message, or undefined when it went well. */
  written?(error: string | undefined): void;
  readonly clock?: Clock;
  /** Longest time for which counters' baselines and pending conditions are only in memory. Default 30 s. */
  readonly everyMs?: number;
}

/** How long a write may take before events are announced without it. */
const PATIENCE_MS = 5_000;
/** Longest time for which it is only in memory when devices that said the same all along were last read. */
const QUIET_MS = 300_000;

export interface Journal {
  /** To be called after each judgement; does not throw. Judging goes on meanwhile: a verdict never waits for the disk. */
  record(judgement: Pick<Judgement, 'events' | 'isOtherSet'>, nowMs: number): Promise<void>;
  /** Writes now, for what is no judgement and has to survive a restart all the same. */
  save(): Promise<void>;
  /** Last write, for an orderly end. */
  close(): Promise<void>;
}

/**
 * Writes before it announces: killed in between, an event was written and is shown by the API, but is not told a second
 * time. If the disk refuses, or does not answer, events are announced all the same, for they matter more than the promise to tell
 * them once.
 */
export function createJournal(options: JournalOptions): Journal {
  const { engine, file, clock = systemClock, everyMs = 30_000 } = options;
  let queue = Promise.resolve();
  let writtenAtMs: number | undefined;
  let waiting = false;
  let underWay: Promise<void> | undefined;
  let hasFailed = false;
  const told = (error: string | undefined): void => {
    hasFailed = error !== undefined;
    options.written?.(error);
  };

  /** One at a time: a disk that does not answer is not asked again before it has. */
  const write = async (state: HealthMemory, to: Pick<StateFile, 'write'>): Promise<void> => {
    const isStuck = underWay !== undefined;
    underWay ??= to.write(state).then((error) => {
      underWay = undefined;
      told(error);
    });
    if (isStuck || !(await endsWithin(underWay, PATIENCE_MS, clock))) told('the disk has not answered for 5 s');
  };
  const save = async (): Promise<void> => {
    waiting = false;
    const state = engine.state();
    if (file !== undefined) await write(state, file);
    for (const event of engine.announce(state.lastEventId)) options.announced(event);
  };
  const enqueue = (): Promise<void> => {
    if (!waiting) queue = queue.then(save, save);
    waiting = true;
    return queue;
  };

  const isDue = (nowMs: number): boolean => {
    if (file === undefined) return false;
    const mostMs = hasFailed || engine.hasNews() ? everyMs : Math.max(everyMs, QUIET_MS);
    return writtenAtMs === undefined || Math.abs(nowMs - writtenAtMs) >= mostMs;
  };

  return {
    record({ events, isOtherSet }, nowMs) {
      if (events.length === 0 && !isOtherSet && !isDue(nowMs)) return queue;
      writtenAtMs = nowMs;
      return enqueue();
    },
    save: enqueue,
    close: enqueue,
  };
}
