import type { Clock } from '../host/clock.ts';
import type { Step } from '../host/fs/step-guard.ts';
import type { Collection } from '../model/collection.ts';
import type { ReadingList } from '../model/readings.ts';
import type { Collect, FromReader, ProbeStart, Reader, ReaderEnd, StartReader } from './messages.ts';
import { CollectionReceiver, type ReadAgain } from './posted-collection.ts';
import { startReader } from './reader-process.ts';

/**
 * Limit of one read of a file, usually and while another place of the family is left out. In the second case many places may hang, and the other devices wait for each of them.
 * Reading all files of a machine takes a hundredth of the first. A reader that only waits for a processor always has the first limit.
 */
const READ_MS = { usual: 1_000, whileOthersHang: 250 };
/**
 * Limit of one call while other families wait for the reader, or while another place of the family is left out. Otherwise a call may take the whole
 * deadline of the run.
 */
const CALL_MS = 1_500;
/** A probe has at least this time until its first step. A slow start on a busy machine is no hang, and the next reader would start as slowly. */
const START_MS = 10_000;
/** Interval of the checks of a reader's current step. */
const CHECK_MS = 250;
/** When a check is this late, the machine was suspended, and the reader with it. That is no hang. */
const SUSPENDED_MS = 1_000;
/** A killed reader that has not ended after this time sleeps in the kernel. */
const REAP_MS = 2_000;
/** Limit of readers that cannot be ended. At the limit, no family that has one of them is read. */
const MOST_STUCK = 8;
/** The reader of all families without a reader of their own. */
const SHARED = '';

/** One collection of a family. */
export interface Job extends Pick<Collect, 'family' | 'ids' | 'leftOut' | 'release'> {
  /** The family has a reader of its own, because its steps may be slow, hang, or end the reader. */
  readonly isApart: boolean;
  /** A place that was left out is tried, in another reader beside that of the family. */
  readonly isTrial?: boolean;
  /** The probe must be made anew. */
  readonly isFresh: boolean;
  readonly timeoutMs: number;
  start(): ProbeStart;
  /** The probe asks for a read. */
  wake(): void;
  /** An error between two runs: of the probe, or the end of its reader. */
  erred(message: string): void;
}

/** How a job ended. `step`: where the reader was. */
export type Outcome = { readonly startedMs: number } & (
  | { readonly end: 'collected'; readonly collection: Collection<ReadingList>; readonly durationMs: number }
  | { readonly end: 'partial'; readonly again: ReadAgain }
  | { readonly end: 'failed'; readonly message: string }
  /** `isRunOverdue`: the whole run took too long, and not this step. */
  | { readonly end: 'hung'; readonly step: Step | undefined; readonly isRunOverdue: boolean }
  | { readonly end: 'died'; readonly step: Step | undefined; readonly by: ReaderEnd }
  | { readonly end: 'closed' }
);
export type OutcomeOf<End extends Outcome['end']> = Extract<Outcome, { readonly end: End }>;
type Result = Outcome extends infer Each ? (Each extends Outcome ? Omit<Each, 'startedMs'> : never) : never;

/** A killed reader that sleeps in the kernel. */
export interface StuckReader {
  readonly family: string;
  readonly pid: number | undefined;
  readonly path: string | undefined;
}

interface Task {
  readonly job: Job;
  settle(outcome: Outcome): void;
}

interface Run extends Task {
  readonly id: number;
  readonly startedMs: number;
  /** Monotonic clock from which the deadline of the run counts. */
  timedFromMs: number;
  /** Writes of the reader before it began to make the probe; undefined once the probe has begun a step. */
  writesBefore?: number | undefined;
  cancelCheck(): void;
}

/** A reader and its work. */
interface ReaderSlot {
  readonly name: string;
  reader?: Reader | undefined;
  /** Families whose probe the reader has. */
  readonly hosted: Map<string, { readonly receiver: CollectionReceiver; job: Job }>;
  readonly queue: Task[];
  run?: Run | undefined;
}

/** The processes that read hardware. A reader whose position does not change in time is killed. */
export class ReaderPool {
  readonly #clock: Clock;
  readonly #start: StartReader;
  readonly #slots = new Map<string, ReaderSlot>();
  /** The latest job of each family. */
  readonly #jobs = new Map<string, Job>();
  readonly #leaving = new Set<Reader>();
  readonly #stuck = new Map<Reader, StuckReader>();
  readonly #listeners = new Set<(one: StuckReader, hasEnded: boolean) => void>();
  #whenLeft = (): void => {};
  #nextRun = 1;
  #isClosed = false;

  constructor(clock: Clock, start: StartReader = startReader) {
    this.#clock = clock;
    this.#start = start;
  }

  /** Calls the listener when a reader gets stuck, or when a stuck one ends. */
  onChange(listener: (one: StuckReader, hasEnded: boolean) => void): void {
    this.#listeners.add(listener);
  }

  stuck(family: string): readonly StuckReader[] {
    return [...this.#stuck.values()].filter((one) => one.family === family);
  }

  /** No further reader of this family may get stuck. */
  isAtLimit(family: string): boolean {
    return this.#stuck.size >= MOST_STUCK && this.stuck(family).length > 0;
  }

  /** Collects once, after the other families of the same reader. */
  run(job: Job): Promise<Outcome> {
    const name = job.isTrial === true ? `${job.family} again` : job.isApart ? job.family : SHARED;
    if (job.isTrial !== true) {
      this.#jobs.set(job.family, job);
      for (const other of [SHARED, job.family]) if (other !== name) this.#leave(this.#slots.get(other), job.family);
    }
    const slot: ReaderSlot = this.#slots.get(name) ?? { name, hosted: new Map(), queue: [] };
    this.#slots.set(name, slot);
    return new Promise((resolve) => {
      slot.queue.push({ job, settle: resolve });
      this.#next(slot);
    });
  }

  /** The family is not read any more. */
  leave(family: string): void {
    for (const slot of this.#slots.values()) this.#leave(slot, family);
  }

  /** Ends all readers. Resolves after `graceMs` at the latest: a reader that sleeps in the kernel ends after the agent. */
  async close(graceMs: number): Promise<void> {
    this.#isClosed = true;
    for (const slot of this.#slots.values()) {
      for (const { settle } of slot.queue.splice(0)) settle({ end: 'closed', startedMs: 0 });
      const { reader, run } = slot;
      if (run !== undefined) this.#settle(slot, { end: 'closed' });
      slot.reader = undefined;
      if (reader === undefined) continue;
      this.#leaving.add(reader);
      if (run === undefined) reader.end();
      else reader.kill();
    }
    await new Promise<void>((resolve) => {
      this.#whenLeft = resolve;
      if (this.#leaving.size === 0) resolve();
      else setTimeout(resolve, graceMs).unref();
    });
    for (const reader of this.#leaving) reader.kill();
  }

  #leave(slot: ReaderSlot | undefined, family: string): void {
    if (slot?.hosted.delete(family) !== true) return;
    const { reader } = slot;
    if (reader === undefined) return;
    if (slot.hosted.size > 0) reader.send({ family });
    else {
      slot.reader = undefined;
      this.#dismiss(reader);
    }
  }

  /** Lets a reader close its probes and end. */
  #dismiss(reader: Reader): void {
    this.#leaving.add(reader);
    reader.end();
    this.#clock.after(REAP_MS, () => {
      if (!reader.hasExited) reader.kill();
    });
  }

  #next(slot: ReaderSlot): void {
    const task = slot.run === undefined && !this.#isClosed ? slot.queue.shift() : undefined;
    if (task === undefined) return;
    const { job } = task;
    const nowMs = this.#clock.monotonic();
    const run: Run = { ...task, id: this.#nextRun++, startedMs: nowMs, timedFromMs: nowMs, cancelCheck: () => {} };
    slot.run = run;
    let reader: Reader;
    try {
      reader = slot.reader ??= this.#started(slot);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      this.#settle(slot, { end: 'died', step: undefined, by: { how: message, isFromOutside: true, refused: code ?? message } });
      return;
    }
    const before = job.isFresh ? undefined : slot.hosted.get(job.family);
    const start = before === undefined ? job.start() : undefined;
    if (start !== undefined) run.writesBefore = reader.position().writes;
    slot.hosted.set(job.family, { receiver: before?.receiver ?? new CollectionReceiver(), job });
    this.#watch(slot, run, reader, undefined);
    reader.send({ family: job.family, run: run.id, start, ids: job.ids, leftOut: job.leftOut, release: job.release });
  }

  #started(slot: ReaderSlot): Reader {
    const reader: Reader = this.#start({
      received: (message) => this.#received(slot, reader, message),
      ended: (end) => this.#ended(slot, reader, end),
    });
    return reader;
  }

  /** Checks the step of the reader every {@link CHECK_MS}. `before`: the number of its writes at the last check, and the time of the first check that found this number. */
  #watch(slot: ReaderSlot, run: Run, reader: Reader, before: { readonly writes: number; readonly sinceMs: number } | undefined): void {
    const dueMs = this.#clock.monotonic() + CHECK_MS;
    run.cancelCheck = this.#clock.after(CHECK_MS, () => {
      const nowMs = this.#clock.monotonic();
      if (nowMs - dueMs >= SUSPENDED_MS) {
        run.timedFromMs = nowMs;
        this.#watch(slot, run, reader, undefined);
        return;
      }
      const { writes, step } = reader.position();
      const seen = step === undefined ? undefined : writes === before?.writes ? before : { writes, sinceMs: nowMs };
      const isStalled = step !== undefined && seen !== undefined && nowMs - seen.sinceMs >= stallMs(step, run.job, reader);
      if (run.writesBefore !== undefined && writes > run.writesBefore) {
        run.writesBefore = undefined;
        run.timedFromMs = nowMs;
      }
      const limitMs = run.writesBefore === undefined ? run.job.timeoutMs : Math.max(run.job.timeoutMs, START_MS);
      if (!isStalled && nowMs - run.timedFromMs < limitMs) this.#watch(slot, run, reader, seen);
      // This process may have been busy: first it takes the messages that wait.
      else
        reader.hear(() => {
          if (slot.run !== run || slot.reader !== reader) return;
          if (isStalled && reader.position().writes !== writes) this.#watch(slot, run, reader, undefined);
          else this.#giveUp(slot, reader, { end: 'hung', step, isRunOverdue: !isStalled });
        });
    });
  }

  #giveUp(slot: ReaderSlot, reader: Reader, hung: Extract<Result, { end: 'hung' }>): void {
    const { family } = (slot.run as Run).job;
    slot.reader = undefined;
    slot.hosted.clear();
    this.#leaving.add(reader);
    reader.kill();
    this.#clock.after(REAP_MS, () => {
      if (reader.hasExited) return;
      const stuck = { family, pid: reader.pid, path: hung.step?.path };
      this.#stuck.set(reader, stuck);
      for (const listener of this.#listeners) listener(stuck, false);
    });
    this.#settle(slot, hung);
  }

  #received(slot: ReaderSlot, reader: Reader, message: FromReader): void {
    if (message.kind === 'failed' && message.run === undefined) this.#jobs.get(message.family)?.erred(message.message);
    if (slot.reader !== reader) return;
    if (message.kind === 'wake') slot.hosted.get(message.family)?.job.wake();
    const receiver = slot.run && slot.hosted.get(slot.run.job.family)?.receiver;
    if (receiver === undefined || !('run' in message) || message.run !== slot.run?.id) return;
    if (message.kind === 'failed') this.#settle(slot, { end: 'failed', message: message.message });
    else if (message.kind === 'partial') this.#settle(slot, { end: 'partial', again: receiver.decodeReads(message.reads) });
    else this.#settle(slot, { end: 'collected', collection: receiver.decode(message.collection), durationMs: message.durationMs });
  }

  #ended(slot: ReaderSlot, reader: Reader, by: ReaderEnd): void {
    this.#leaving.delete(reader);
    if (this.#leaving.size === 0) this.#whenLeft();
    const stuck = this.#stuck.get(reader);
    this.#stuck.delete(reader);
    if (stuck !== undefined) for (const listener of this.#listeners) listener(stuck, true);
    if (slot.reader !== reader) return;
    slot.reader = undefined;
    const jobs = [...slot.hosted.values()].map(({ job }) => job);
    slot.hosted.clear();
    const { step } = reader.position();
    const where = step === undefined ? '' : ` in ${step.path}`;
    if (slot.run !== undefined) this.#settle(slot, { end: 'died', step, by });
    else for (const job of jobs) job.erred(`the reader ended${where}: ${by.how}`);
  }

  #settle(slot: ReaderSlot, result: Result): void {
    const run = slot.run as Run;
    run.cancelCheck();
    slot.run = undefined;
    if (run.job.isTrial === true) this.#leave(slot, run.job.family);
    run.settle({ ...result, startedMs: run.startedMs } as Outcome);
    this.#next(slot);
  }
}

function stallMs({ kind }: Step, { timeoutMs, leftOut, isApart, isTrial }: Job, reader: Reader): number {
  const isFurther = leftOut.length > 0 && isTrial !== true;
  if (kind === 'file') return Math.min(isFurther && reader.isAsleep() ? READ_MS.whileOthersHang : READ_MS.usual, timeoutMs);
  return isApart && !isFurther ? timeoutMs : Math.min(CALL_MS, timeoutMs);
}
