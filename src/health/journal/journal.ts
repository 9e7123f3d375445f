import { type Clock, endsWithin, systemClock } from '../../host/clock.ts';
import { SingleFlight } from '../../host/single-flight.ts';
import type { HealthEvent } from '../../model/events.ts';
import type { HealthEngine, Judgement } from '../engine/engine.ts';
import type { StateFile } from './state-file.ts';

export interface JournalOptions {
  readonly engine: Pick<HealthEngine, 'state' | 'hasNews' | 'announce'>;
  /** Absent: no state survives a restart, and events are announced at once. */
  readonly file?: Pick<StateFile, 'write'>;
  /** Called once for each event, in order. This holds across restarts of the agent while the file can be written. */
  announced(event: HealthEvent): void;
  /** Called after each write with the error message, or undefined when the write succeeded. */
  written?(error: string | undefined): void;
  readonly clock?: Clock;
  /** Longest time between writes of counter baselines and pending conditions. Default 30 s. */
  readonly everyMs?: number;
}

/** How long a write may take before events are announced without it. */
const WRITE_TIMEOUT_MS = 5_000;
/** Longest time between writes while only the read times of the devices change. */
const QUIET_MS = 300_000;

export interface Journal {
  /** Must be called after each judgement. Never throws. The caller need not await it: a verdict never waits for the disk. */
  record(judgement: Pick<Judgement, 'events' | 'isOtherSet'>, nowMs: number): Promise<void>;
  /** Writes now: for state outside of judgements that must survive a restart. */
  save(): Promise<void>;
  /** Performs the last write at shutdown. */
  close(): Promise<void>;
}

/**
 * Writes events before it announces them. After a kill in between, the API shows the event, but the event is not announced again. When
 * a write fails or times out, events are still announced, because they matter more than announcing each one only once.
 */
export function createJournal(options: JournalOptions): Journal {
  const { engine, file, clock = systemClock, everyMs = 30_000 } = options;
  let queue = Promise.resolve();
  let latest = engine.state();
  let writtenAtMs: number | undefined;
  let waiting = false;
  let hasFailed = false;
  const report = (error: string | undefined): void => {
    hasFailed = error !== undefined;
    options.written?.(error);
  };

  /** Runs one write at a time: no new write starts while the disk has not answered the last one. */
  const writes = new SingleFlight(async () => report(await file?.write(latest)));
  const write = async (): Promise<void> => {
    const isStuck = writes.running !== undefined;
    if (isStuck || !(await endsWithin(writes.join(), WRITE_TIMEOUT_MS, clock))) report('the disk has not answered for 5 s');
  };
  const save = async (): Promise<void> => {
    waiting = false;
    const state = engine.state();
    latest = state;
    if (file !== undefined) await write();
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
