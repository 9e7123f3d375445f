import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../host/clock.ts';
import { deviceDirectory, type Step } from '../host/fs/step-record.ts';
import { Tree } from '../host/fs/tree.ts';
import type { Collection, DeviceReport, HungStep, Problem } from '../model/collection.ts';
import type { Device } from '../model/device.ts';
import type { ReadTimes } from '../model/device-record.ts';
import type { FaultMark } from '../model/fault.ts';
import type { Finding } from '../model/health.ts';
import type { ReadingList } from '../model/readings.ts';
import type { Release } from '../model/release.ts';
import type { FamilyState } from '../model/snapshot.ts';
import type { ReadProcess } from './isolated-reads.ts';
import type { FromThread } from './messages.ts';
import type { ReadAgain } from './posted-collection.ts';
import { type ProbeThread, type StartThread, startThread, type ThreadSettings } from './probe-thread.ts';
import { leaveOut } from './quarantine.ts';
import { RunTally } from './run-tally.ts';
import { hungAt, StuckThreads } from './stuck-threads.ts';

/** A timer fires a little early, so the time is shorter than three default refreshes. */
const ABSENT_EVERY_MS = 29_000;
/** Limit of stuck threads per family, about 9 MiB each. At the limit the family is not read until one of them returns. */
const MOST_STUCK = 16;
/** With so many, the other process keeps reading the files: a thread that reads by itself could be the next one that stays stuck. */
const MOST_STUCK_DIRECT = 4;
/** Limit of threads that are stuck at an unknown place: the next thread would block at the same place. */
const MOST_UNPLACED = 3;
/** Timeout of one file read. Reading all files of a machine takes a hundredth of it. */
const READ_STALL_MS = 1_000;
/** Timeout of one call of a vendor library while another call hangs. Otherwise a call may take the whole deadline of the run. */
const CALL_STALL_MS = 1_500;
/**
 * Least time that a thread has until its first step. A slow start on a busy machine or in a throttled container is no hang, and the next
 * thread would start as slowly.
 */
const START_MS = 10_000;
/** Interval of the checks of a thread's current step. */
const CHECK_MS = 250;
/** When a check is this late, the container or the machine was suspended, and the thread with it. That is no hang. */
const SUSPENDED_MS = 1_000;
/** After this time without a hang, the thread reads files by itself again. */
const CALM_MS = 60_000;
/** A thread needs descriptors to start and to load its code. The module loader reports the shortage in its own text. */
const SHORTAGE = /\bE[MN]FILE\b|too many open files/i;

export interface RunnerSettings extends ThreadSettings {
  readonly timeoutMs: number;
  /** Steps that hung when an earlier run of the agent ended. They are tried last. */
  readonly hung?: readonly HungStep[];
  /** An earlier run of the agent knew devices of this family. */
  readonly isExpected?: boolean;
  /** An earlier run of the agent read all of the family since the machine booted. */
  readonly wasReadCompletely?: boolean;
}

export interface RunnerEvents {
  /** The state was determined again. `isNews` is false for a collection that changes no verdict, and when there is still no hardware. */
  changed(isNews: boolean): void;
  /** The probe detected an event and requests a read soon. */
  wake(): void;
  /** The probe threw an error that differs from its last one. This is a bug in the probe. */
  crashed(family: string, message: string): void;
}

export interface RunnerDependencies {
  readonly clock: Clock;
  readonly isolated: ReadProcess;
  readonly events: RunnerEvents;
  /** Default: a worker thread. */
  readonly start?: StartThread;
  /** Whether the machine may have devices of the family. Default: true. Must return quickly. */
  readonly isPresent?: () => boolean;
  /** Known devices of the family. */
  readonly known?: () => readonly Device[];
  /** What was counted of its faults in the log. */
  readonly counted?: () => FaultMark;
}

/** One collection of a family, with its times. */
export interface TimedCollection extends ReadTimes {
  readonly collection: Collection<ReadingList>;
  /** When devices were read that were read again since, keyed by id. */
  readonly again?: ReadonlyMap<string, ReadTimes>;
}

interface Run {
  readonly id: number;
  readonly thread: ProbeThread;
  readonly startedMs: number;
  /** Monotonic clock from which the deadline of the run counts. */
  readonly timedFromMs: number;
  /** Directories in which a read hung during this run. */
  readonly unread: Set<string>;
  cancelCheck: () => void;
}

/**
 * Runs the probe of one family in its own thread. Two runs never overlap, and no run enters a step in which an earlier run is stuck.
 *
 * The first file read that hangs costs one thread. After it another process reads the files, so that any number of devices may hang while
 * the others are read. Each call of a vendor library that hangs costs one thread, and its device is left out. A family that was never on
 * this node has no thread: a thread costs 9 MiB, and 0.1 s of CPU time when it starts. A family that was on this node before is read at
 * each refresh, because its devices may return; until then they are missing.
 */
export class FamilyRunner {
  readonly family: string;
  #settings: RunnerSettings;
  readonly #clock: Clock;
  readonly #isolated: ReadProcess;
  readonly #events: RunnerEvents;
  readonly #start: StartThread;
  readonly #known: () => readonly Device[];
  readonly #counted: (() => FaultMark) | undefined;
  readonly #sys: Tree;
  readonly #isPresent: () => boolean;
  readonly #tally = new RunTally();
  readonly #stuck: StuckThreads;
  readonly #leaving = new Set<ProbeThread>();
  readonly #stopListening: () => void;
  /** Directories of this family's devices in which a read hung since the other process reads the files. */
  readonly #slow = new Set<string>();
  /** Steps that hung when an earlier run of the agent ended and that this run has not tried yet. */
  #untried: readonly HungStep[];
  #thread: ProbeThread | undefined;
  /** The thread still avoids a place that no longer hangs. */
  #isOutdated = false;
  #isIsolated = false;
  #calmSinceMs = 0;
  #refresh: { readonly done: Promise<void>; readonly isOfSome: boolean; settle(): void } | undefined;
  #run: Run | undefined;
  #nextRun = 1;
  #latest: TimedCollection | undefined;
  /** The family has or had devices on this node. */
  #isKnown: boolean;
  /** Monotonic clock of the last look that found no hardware; undefined when it may be there. */
  #absentAtMs: number | undefined;
  /** The last refresh found no hardware and made no run. */
  #isSkipped = false;
  #wasReadCompletely: boolean;
  /** Why the last run failed. */
  #fault: Problem | undefined;
  #lastCrash: string | undefined;
  /** The last request to close the driver. The probe itself decides when it is over. */
  #release: Release | undefined;
  #isClosed = false;

  constructor(
    settings: RunnerSettings,
    { clock, isolated, events, start = startThread, isPresent = () => true, known = () => [], counted }: RunnerDependencies,
  ) {
    this.family = settings.family;
    this.#settings = settings;
    this.#clock = clock;
    this.#isolated = isolated;
    this.#events = events;
    this.#start = start;
    this.#known = known;
    this.#counted = counted;
    this.#sys = new Tree(settings.roots.sysfs);
    this.#isPresent = isPresent;
    this.#isKnown = settings.isExpected ?? false;
    this.#wasReadCompletely = settings.wasReadCompletely ?? false;
    this.#stuck = new StuckThreads((step) => this.#released(step));
    this.#stopListening = isolated.onChange(() => this.#hangsChanged());
    this.#untried = settings.hung ?? [];
  }

  /** Other options take effect in a new thread, at the next run. Equal options keep the thread. */
  configure({ options, timeoutMs }: Pick<RunnerSettings, 'options' | 'timeoutMs'>): void {
    const isOther = !isDeepStrictEqual(options, this.#settings.options);
    this.#settings = { ...this.#settings, options, timeoutMs };
    this.#isOutdated ||= isOther;
    // A run in progress still has the old options.
    if (isOther && this.isReading) void this.refresh().then(() => this.refresh());
  }

  /** The latest finished collection. */
  latest(): TimedCollection | undefined {
    return this.#latest;
  }

  /** The last run failed, so the latest collection says nothing about the present. */
  get isBlind(): boolean {
    return this.#fault !== undefined;
  }

  /** Whether a refresh is in progress. */
  get isReading(): boolean {
    return this.#refresh !== undefined;
  }

  /** Hanging steps, to be saved for a later run of the agent. */
  get hung(): readonly HungStep[] {
    const files = this.#isolated.hungPaths.filter((path) => this.#slow.has(deviceDirectory(path)));
    const calls = this.#stuck.calls.map(({ path }) => path);
    return [
      ...this.#untried,
      ...files.map((path): HungStep => ({ kind: 'file', path })),
      ...calls.map((path): HungStep => ({ kind: 'call', path })),
    ];
  }

  state(): FamilyState {
    const read = this.#latest?.collection.problems ?? [];
    const hanging = [...this.#hungDirectories.map(hungAt), ...this.#stuck.problems(), ...this.#stuckProcesses()];
    const problems = [...read, ...hanging, ...(this.#fault === undefined ? [] : [this.#fault])];
    const state = this.#tally.state(this.family, withoutRepetition(problems), hanging.length > 0);
    // A read without any device says only that there is none at present: a driver can load later.
    const isNone = this.#latest !== undefined && this.#fault === undefined && isWhole(this.#latest.collection);
    return this.#wasReadCompletely || this.#isSkipped || isNone ? { ...state, readCompletely: true } : state;
  }

  /** A read since the boot reached all of the family and found devices. */
  get wasReadCompletely(): boolean {
    return this.#wasReadCompletely;
  }

  /**
   * Refreshes once; resolves when the refresh has succeeded or failed. Joins a refresh in progress. `ids`: devices that are enough, if the
   * last refresh read all of the family.
   */
  refresh(ids?: ReadonlySet<string>): Promise<void> {
    const running = this.#refresh;
    if (running !== undefined) return ids === undefined && running.isOfSome ? running.done.then(() => this.refresh()) : running.done;
    if (this.#isClosed || this.#stuck.size >= MOST_STUCK || this.#stuck.unplaced >= MOST_UNPLACED) return Promise.resolve();
    if (!this.#isKnown && this.#isAbsent()) {
      this.#skip();
      return Promise.resolve();
    }
    this.#isSkipped = false;
    this.#isolateUntried();
    this.#readDirectlyWhenCalm();
    let settle = (): void => {};
    const done = new Promise<void>((resolve) => {
      settle = resolve;
    });
    this.#refresh = { done, isOfSome: ids !== undefined, settle };
    this.#startRun(this.#isIsolated || this.#fault !== undefined || this.#latest?.collection.listing !== 'complete' ? undefined : ids);
    return done;
  }

  /**
   * Lets the probe close the driver until the release ends, or open it again. Resolves to the number of calls that hang in the driver. Their
   * threads keep the driver open.
   */
  async release(release: Release | undefined): Promise<number> {
    this.#release = release;
    this.#thread?.send({ type: 'release', release });
    // A refresh in progress may have begun before.
    if (this.isReading) await this.refresh();
    await this.refresh();
    return this.#stuck.calls.length;
  }

  /** Ends all threads. Resolves to false when one is stuck in a system call, so that the process cannot end by itself. */
  async close(graceMs: number): Promise<boolean> {
    this.#isClosed = true;
    this.#stopListening();
    const threads = [...this.#stuck.threads, ...this.#leaving, ...(this.#thread === undefined ? [] : [this.#thread])];
    if (this.#run !== undefined) this.#thread?.terminate();
    else this.#thread?.send({ type: 'close' });
    const hasEnded = await endThreads(threads, graceMs);
    this.#endRefresh();
    if (this.#isIsolated) this.#isolated.release();
    return hasEnded;
  }

  /** Hardware that is not there is looked for twice a minute at most. */
  #isAbsent(): boolean {
    const nowMs = this.#clock.monotonic();
    if (this.#absentAtMs !== undefined && nowMs - this.#absentAtMs < ABSENT_EVERY_MS) return true;
    this.#absentAtMs = this.#isPresent() ? undefined : nowMs;
    return this.#absentAtMs !== undefined;
  }

  /** Ends a refresh without a run: the family has and had no devices. */
  #skip(): void {
    this.#dismiss();
    this.#latest = undefined;
    this.#fault = undefined;
    this.#tally.skipped(this.#clock.now());
    const isNews = !this.#isSkipped;
    this.#isSkipped = true;
    this.#events.changed(isNews);
  }

  #startRun(ids?: ReadonlySet<string>): void {
    const thread = this.#reader();
    if (thread === undefined) {
      this.#endRefresh();
      return;
    }
    const id = this.#nextRun++;
    const startedMs = this.#clock.monotonic();
    this.#run = { id, thread, startedMs, timedFromMs: this.#clock.monotonic(), unread: new Set(), cancelCheck: () => {} };
    this.#watch(this.#run, undefined);
    thread.send({ type: 'collect', run: id, ids });
  }

  /** The current thread, or a new one. Undefined when the system refuses another thread; the run has then failed. */
  #reader(): ProbeThread | undefined {
    if (this.#isOutdated) this.#dismiss();
    this.#isOutdated = false;
    if (this.#thread !== undefined) return this.#thread;
    try {
      const context = {
        known: this.#known(),
        counted: this.#counted?.(),
        isIsolated: this.#isIsolated,
        quarantined: this.#closedPlaces,
        release: this.#release,
      };
      const thread: ProbeThread = this.#start(this.#settings, context, {
        received: (message) => thread === this.#thread && this.#received(message),
        read: (path, limit) => this.#read(path, limit),
        failed: (error) => this.#crashed(error.stack ?? error.message, thread === this.#thread),
      });
      void thread.exited.then(() => this.#ended(thread));
      this.#thread = thread;
      return thread;
    } catch (error) {
      this.#failed({ code: 'thread-refused', message: `a thread cannot be started: ${(error as Error).message}` });
      return undefined;
    }
  }

  async #read(path: string, limit: number): Promise<Uint8Array | string> {
    const run = this.#run;
    const answer = await this.#isolated.read(path, limit);
    if (answer === 'EHUNG') {
      run?.unread.add(deviceDirectory(path));
      this.#slow.add(deviceDirectory(path));
    }
    return answer;
  }

  /** Checks the thread's step every {@link CHECK_MS}. `before`: its step at the last check, and the time of the first check in it. */
  #watch(run: Run, before: { readonly step: Step; readonly sinceMs: number } | undefined): void {
    const dueMs = this.#clock.monotonic() + CHECK_MS;
    run.cancelCheck = this.#clock.after(CHECK_MS, () => {
      if (this.#run !== run) return;
      const nowMs = this.#clock.monotonic();
      if (nowMs - dueMs >= SUSPENDED_MS) {
        this.#run = { ...run, timedFromMs: nowMs };
        this.#watch(this.#run, undefined);
        return;
      }
      const step = run.thread.step();
      const isSame = step !== undefined && before?.step.number === step.number;
      const seen = step === undefined ? undefined : { step, sinceMs: isSame ? before.sinceMs : nowMs };
      if (seen !== undefined && nowMs - seen.sinceMs >= this.#stallMs(seen.step)) this.#stalled(seen.step);
      else if (nowMs - run.timedFromMs >= this.#deadlineMs(run)) this.#overdue(step);
      else this.#watch(run, seen);
    });
  }

  #deadlineMs({ thread }: Run): number {
    const { timeoutMs } = this.#settings;
    return thread.hasBegun ? timeoutMs : Math.max(timeoutMs, START_MS);
  }

  #stallMs({ kind }: Step): number {
    const { timeoutMs } = this.#settings;
    if (kind === 'file') return Math.min(READ_STALL_MS, timeoutMs);
    return this.#stuck.size > 0 ? Math.min(CALL_STALL_MS, timeoutMs) : timeoutMs;
  }

  /** One step takes too long: the run restarts without it. */
  #stalled(step: Step): void {
    this.#giveUp(step);
    if (this.#stuck.size >= MOST_STUCK) this.#endRefresh();
    else this.#startRun();
  }

  /** The run takes too long in total. */
  #overdue(step: Step | undefined): void {
    this.#giveUp(step);
    // Even if the thread returns at once, the problem lasts until a run completes.
    this.#failed(hungAt(step === undefined ? undefined : deviceDirectory(step.path)));
    this.#endRefresh();
  }

  /** Abandons the thread. The next thread avoids its current step. */
  #giveUp(step: Step | undefined): void {
    if (this.#run !== undefined) this.#stuck.add(this.#run.thread, step);
    this.#thread = undefined;
    this.#endRun();
    this.#tally.abandoned();
    if (step?.kind === 'file') this.#isolate([step.path]);
  }

  get #hungDirectories(): readonly string[] {
    return [...this.#slow].filter((directory) => this.#isolated.isHung(directory));
  }

  /** All families share the process, so each family with a hanging device reports it. */
  #stuckProcesses(): readonly Problem[] {
    const { stuckProcesses } = this.#isolated;
    if (stuckProcesses === 0 || this.#hungDirectories.length === 0) return [];
    return [{ code: 'read-process-stuck', message: `${stuckProcesses} processes that read files cannot be ended` }];
  }

  /** Places of devices that library calls must not touch. */
  get #closedPlaces(): readonly string[] {
    return [...this.#untried, ...this.#stuck.calls].map(({ path }) => deviceDirectory(path));
  }

  /** Lets only the other process read the files that hung when an earlier run of the agent ended. */
  #isolateUntried(): void {
    const files = this.#untried.filter(({ kind }) => kind === 'file').map(({ path }) => path);
    this.#untried = this.#untried.filter(({ kind }) => kind === 'call');
    if (files.length > 0) this.#isolate(files);
  }

  #isolate(paths: readonly string[]): void {
    if (!this.#isIsolated) this.#isolated.use();
    this.#isIsolated = true;
    for (const path of paths) {
      this.#slow.add(deviceDirectory(path));
      this.#isolated.markHung(path);
    }
  }

  /** A read started to hang, or a hanging read returned. */
  #hangsChanged(): void {
    this.#calmSinceMs = this.#clock.monotonic();
    if (!this.#isClosed && this.#run === undefined) this.#events.changed(true);
  }

  #readDirectlyWhenCalm(): void {
    if (
      !this.#isIsolated ||
      this.#stuck.size >= MOST_STUCK_DIRECT ||
      this.#hungDirectories.length > 0 ||
      this.#clock.monotonic() - this.#calmSinceMs < CALM_MS
    )
      return;
    this.#isIsolated = false;
    this.#slow.clear();
    this.#isolated.release();
    this.#thread?.send({ type: 'read-directly' });
  }

  #received(message: FromThread): void {
    if (message.type === 'wake') this.#events.wake();
    else if (message.run !== this.#run?.id) return;
    else if (message.type === 'failed') this.#crashed(message.message, true);
    else if (message.type === 'read-again') this.#readAgain(this.#run, message.again);
    else this.#collected(this.#run, message.collection, message.durationMs);
  }

  /** What the other devices reported stays, with the time of their read. */
  #readAgain({ startedMs }: Run, { reports, ids }: ReadAgain): void {
    const before = this.#latest as TimedCollection;
    const times = { startedMs, readAtMs: this.#clock.now(), monotonicMs: this.#clock.monotonic() };
    const collection = { ...before.collection, reports };
    this.#latest = { ...before, collection, again: new Map([...(before.again ?? []), ...ids.map((id) => [id, times] as const)]) };
    this.#endRefresh(hasNews(before.collection, collection));
  }

  #collected(run: Run, raw: Collection<ReadingList>, durationMs: number): void {
    const readAtMs = this.#clock.now();
    const isLost = raw.listing === 'absent' && this.#isKnown;
    const reported = isLost ? { ...raw, problems: [...raw.problems, NOTHING_SHOWN] } : raw;
    const collection = leaveOut(reported, [...run.unread, ...this.#hungDirectories, ...this.#closedPlaces], this.#sys);
    const isNews = this.#fault !== undefined || hasNews(this.#latest?.collection, collection);
    this.#latest = { collection, startedMs: run.startedMs, readAtMs, monotonicMs: this.#clock.monotonic() };
    this.#fault = undefined;
    this.#tally.ended(hasRead(collection) && !isLost, durationMs, readAtMs);
    this.#isKnown ||= raw.reports.length > 0;
    this.#wasReadCompletely ||= collection.reports.length > 0 && isWhole(collection);
    this.#tryOne();
    this.#endRefresh(isNews);
  }

  /** Allows one call that hung in an earlier run of the agent, after the other devices were read. */
  #tryOne(): void {
    if (this.#untried.length === 0) return;
    this.#untried = this.#untried.slice(1);
    this.#isOutdated = true;
  }

  /** A thrown error is a bug. The thread is replaced, so that no inconsistent state remains. */
  #crashed(message: string, isCurrent: boolean): void {
    const [first = '', where = ''] = message.split('\n', 2);
    const isShort = isCurrent && SHORTAGE.test(first);
    if (!isShort) this.#reportCrash(`${first}\n${where}`, message);
    if (!isCurrent) return;
    this.#failed({ code: isShort ? 'descriptors-exhausted' : 'probe-crashed', message: first });
    this.#thread?.terminate();
    this.#thread = undefined;
    this.#endRefresh();
  }

  /** `crash` identifies the error by its message and first stack line; the rest of the stack differs from run to run. */
  #reportCrash(crash: string, message: string): void {
    if (crash !== this.#lastCrash) this.#events.crashed(this.family, message);
    this.#lastCrash = crash;
  }

  #failed(fault: Problem): void {
    this.#fault = fault;
    this.#tally.failed();
  }

  /** Asks the thread to end, without waiting for it. */
  #dismiss(): void {
    if (this.#thread === undefined) return;
    this.#leaving.add(this.#thread);
    this.#thread.send({ type: 'close' });
    this.#thread = undefined;
  }

  #ended(thread: ProbeThread): void {
    this.#leaving.delete(thread);
    if (thread !== this.#thread) return;
    this.#thread = undefined;
    if (this.#isClosed) this.#endRefresh();
    else this.#crashed('the thread of the probe ended by itself', true);
  }

  /** An abandoned thread left its hanging step and ended. The next run reads everything again. */
  #released(step: Step | undefined): void {
    if (step?.kind === 'call') this.#isOutdated = true;
    if (!this.#isClosed) this.#events.changed(true);
  }

  #endRun(): void {
    this.#run?.cancelCheck();
    this.#run = undefined;
  }

  #endRefresh(isNews = true): void {
    this.#endRun();
    const refresh = this.#refresh;
    if (refresh === undefined) return;
    this.#refresh = undefined;
    refresh.settle();
    this.#events.changed(isNews);
  }
}

/** Whether a collection reached at least some of the hardware. */
const hasRead = ({ listing, reports }: Collection<unknown>): boolean =>
  listing !== 'partial' || reports.some(({ read }) => read !== undefined);

/** Whether a collection left out nothing. A problem of a family without devices can hide all of them. */
const isWhole = ({ listing, reports, problems }: Collection<unknown>): boolean =>
  listing !== 'partial' && (reports.length > 0 || problems.length === 0);

/**
 * Whether a device, a problem or a finding differs from the collection before. A counter that grew is no news: its growth is judged over
 * minutes.
 */
function hasNews(before: Collection<unknown> | undefined, now: Collection<unknown>): boolean {
  if (before === undefined || before.listing !== now.listing || before.reports.length !== now.reports.length) return true;
  if (!isDeepStrictEqual(before.problems, now.problems)) return true;
  return now.reports.some(({ device, read, outOfBand }, at) => {
    const was = before.reports[at] as DeviceReport<unknown>;
    const isSameDevice = was.device.id === device.id && was.device.identity === device.identity;
    return !isSameDevice || areOther(was.read?.findings, read?.findings) || areOther(was.outOfBand?.findings, outOfBand?.findings);
  });
}

function areOther(before: readonly Finding[] | undefined, now: readonly Finding[] | undefined): boolean {
  if (before === now || before === undefined || now === undefined) return before !== now;
  const isOther = ({ type, instance, status, level }: Finding, at: number): boolean => {
    const was = before[at] as Finding;
    return was.type !== type || was.instance !== instance || was.status !== status || was.level !== level;
  };
  return before.length !== now.length || now.some(isOther);
}

function withoutRepetition(problems: readonly Problem[]): readonly Problem[] {
  const keyOf = ({ code, message, device }: Problem): string => [code, message, device].join('\u0000');
  return [...new Map(problems.map((problem) => [keyOf(problem), problem])).values()];
}

const NOTHING_SHOWN: Problem = { code: 'nothing-shown', message: 'the machine shows no trace of the devices that it had' };

/** Waits for ending threads, then terminates them. False when one is still stuck in a system call. Takes at most twice `graceMs`. */
async function endThreads(threads: readonly ProbeThread[], graceMs: number): Promise<boolean> {
  const exited = Promise.all(threads.map((thread) => thread.exited));
  if (!(await isWithin(exited, graceMs))) {
    for (const thread of threads) thread.terminate();
    await isWithin(exited, graceMs);
  }
  return threads.every((thread) => thread.hasExited);
}

async function isWithin(done: Promise<unknown>, graceMs: number): Promise<boolean> {
  let cancel = (): void => {};
  const late = new Promise<false>((resolve) => {
    const timer = setTimeout(() => resolve(false), graceMs);
    cancel = () => clearTimeout(timer);
  });
  const isDone = await Promise.race([done.then(() => true), late]);
  cancel();
  return isDone;
}
