import type { Clock } from '../host/clock.ts';
import { deviceDirectory, type Step } from '../host/fs/read-guard.ts';
import { Tree } from '../host/fs/tree.ts';
import type { Collection, HungStep, Problem } from '../model/collection.ts';
import type { Device } from '../model/device.ts';
import type { FamilyState } from '../model/snapshot.ts';
import type { ReadProcess } from './isolated-reads.ts';
import type { FromThread } from './messages.ts';
import { type ProbeThread, type StartThread, startThread, type ThreadSettings } from './probe-thread.ts';
import { leaveOut } from './quarantine.ts';
import { RunTally } from './run-tally.ts';
import { hungAt, StuckThreads } from './stuck-threads.ts';
import { endThreads } from './thread-end.ts';

/** Threads of one family that may be stuck in calls at the same time, each of some 9 MiB. Beyond it the family waits for one to come back. */
const MOST_STUCK = 16;
/** Of them, those of which nobody knows where they are stuck: the next thread would go there again. */
const MOST_UNPLACED = 3;
/** How long one read of a file may take. Whole sweeps of a machine take a hundredth of it. */
const READ_STALL_MS = 1_000;
/** How long one call of a vendor's library may take while another one hangs already; before that it has the whole deadline. */
const CALL_STALL_MS = 1_500;
/** Between two looks at what a thread is doing. */
const LOOK_MS = 250;
/** A look that comes so late: container or machine stood still, and so did the thread. Nothing hangs for that. */
const STOOD_STILL_MS = 1_000;
/** How long nothing may have hung until the thread reads files by itself again. */
const CALM_MS = 60_000;
/** A thread needs descriptors to start, and its code is read from files, whose loader has words of its own for it. */
const SHORTAGE = /\bE[MN]FILE\b|too many open files/i;

export interface RunnerSettings extends ThreadSettings {
  readonly timeoutMs: number;
  /** Steps that hung when an earlier run of the agent ended. They are tried last. */
  readonly hung?: readonly HungStep[];
  /** An earlier run of the agent knew devices of this family. */
  readonly isExpected?: boolean;
}

export interface RunnerEvents {
  /** The state changed: new collection, failure, hang. */
  changed(): void;
  /** The probe saw something happen and wants to be read soon. */
  wake(): void;
  /** A bug in the probe, when it is another one than the last. */
  crashed(family: string, message: string): void;
}

export interface RunnerParts {
  readonly clock: Clock;
  readonly isolated: ReadProcess;
  readonly events: RunnerEvents;
  /** Default: a worker thread. */
  readonly start?: StartThread;
  /** Whether the machine may have devices of the family. Default: it may. Never takes long. */
  readonly isPresent?: () => boolean;
  /** Devices of the family that are known now. */
  readonly known?: () => readonly Device[];
}

/** One look at the family: what it told, and when. */
export interface Look {
  readonly collection: Collection;
  /** Monotonic clock of its begin: nothing in it is older. */
  readonly startedMs: number;
  /** Wall and monotonic clock of its end. */
  readonly readAtMs: number;
  readonly monotonicMs: number;
}

interface Run {
  readonly id: number;
  readonly thread: ProbeThread;
  readonly startedMs: number;
  /** From then on its deadline counts. */
  readonly timedFromMs: number;
  /** Directories in which a read did not come back during this run. */
  readonly unread: Set<string>;
  cancelLook: () => void;
}

/**
 * Runs one family's probe in a thread of its own: never two runs at once, and never a run where an earlier one is stuck.
 *
 * A read of a file that does not come back costs one thread. From then on another process reads the files, so that any number of devices
 * may hang while the others are read. A call of a vendor's library that does not come back costs one thread each, and its device is left
 * out. A family that is not on this node has no thread: a thread costs 9 MiB, and a tenth of a second of CPU when it starts. One that
 * was here once is read at each refresh: it may come back, and is missed meanwhile.
 */
export class FamilyRunner {
  readonly family: string;
  readonly #settings: RunnerSettings;
  readonly #clock: Clock;
  readonly #isolated: ReadProcess;
  readonly #events: RunnerEvents;
  readonly #start: StartThread;
  readonly #known: () => readonly Device[];
  readonly #sys: Tree;
  readonly #isPresent: () => boolean;
  readonly #tally = new RunTally();
  readonly #stuck: StuckThreads;
  readonly #leaving = new Set<ProbeThread>();
  readonly #stopListening: () => void;
  /** Directories of this family's devices in which a read has hung since the reads are isolated. */
  readonly #slow = new Set<string>();
  /** Steps that hung when an earlier run of the agent ended, and were not tried since. */
  #untried: readonly HungStep[];
  #thread: ProbeThread | undefined;
  /** The thread stays away from a place that is open again. */
  #isOutdated = false;
  #isIsolated = false;
  #calmSinceMs = 0;
  #refresh: { readonly done: Promise<void>; settle(): void } | undefined;
  #run: Run | undefined;
  #nextRun = 1;
  #latest: Look | undefined;
  /** The family has, or ever had, devices on this node. */
  #isKnown: boolean;
  /** Why the last run came to nothing. */
  #fault: Problem | undefined;
  #lastCrash: string | undefined;
  #isClosed = false;

  constructor(
    settings: RunnerSettings,
    { clock, isolated, events, start = startThread, isPresent = () => true, known = () => [] }: RunnerParts,
  ) {
    this.family = settings.family;
    this.#settings = settings;
    this.#clock = clock;
    this.#isolated = isolated;
    this.#events = events;
    this.#start = start;
    this.#known = known;
    this.#sys = new Tree(settings.roots.sysfs);
    this.#isPresent = isPresent;
    this.#isKnown = settings.isExpected ?? false;
    this.#stuck = new StuckThreads((step) => this.#cameBack(step));
    this.#stopListening = isolated.onChange(() => this.#hangsChanged());
    this.#untried = settings.hung ?? [];
  }

  /** The last look that came to an end. */
  latest(): Look | undefined {
    return this.#latest;
  }

  /** The last run came to nothing: what the look before it told says nothing about now. */
  get isBlind(): boolean {
    return this.#fault !== undefined;
  }

  /** Whether a run is under way. */
  get isReading(): boolean {
    return this.#refresh !== undefined;
  }

  /** Steps that hang, for a later run of the agent. */
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
    const hanging = [...this.#hungDirectories.map(hungAt), ...this.#stuck.problems()];
    const problems = [...read, ...hanging, ...(this.#fault === undefined ? [] : [this.#fault])];
    return this.#tally.state(this.family, withoutRepetition(problems), hanging.length > 0);
  }

  /** One refresh; resolves when it ended in whatever way. Joins the one in progress, if any. */
  refresh(): Promise<void> {
    if (this.#refresh !== undefined) return this.#refresh.done;
    if (this.#isClosed || this.#stuck.size >= MOST_STUCK || this.#stuck.unplaced >= MOST_UNPLACED) return Promise.resolve();
    if (!this.#isKnown && !this.#isPresent()) {
      this.#rest();
      return Promise.resolve();
    }
    this.#isolateUntried();
    this.#readDirectlyWhenCalm();
    let settle = (): void => {};
    const done = new Promise<void>((resolve) => {
      settle = resolve;
    });
    this.#refresh = { done, settle };
    this.#startRun();
    return done;
  }

  /** Ends the thread. False when one is stuck in a system call and keeps the process from ending by itself. */
  async close(graceMs: number): Promise<boolean> {
    this.#isClosed = true;
    this.#stopListening();
    const threads = [...this.#stuck.threads, ...this.#leaving, ...(this.#thread === undefined ? [] : [this.#thread])];
    if (this.#run !== undefined) this.#thread?.terminate();
    else this.#thread?.tell({ type: 'close' });
    const hasEnded = await endThreads(threads, graceMs);
    this.#endRefresh();
    if (this.#isIsolated) this.#isolated.release();
    return hasEnded;
  }

  /** There is nothing to read, and never was. */
  #rest(): void {
    this.#dismiss();
    this.#latest = undefined;
    this.#fault = undefined;
    this.#tally.rested(this.#clock.now());
    this.#events.changed();
  }

  #startRun(): void {
    const thread = this.#reader();
    if (thread === undefined) {
      this.#endRefresh();
      return;
    }
    const id = this.#nextRun++;
    const startedMs = this.#clock.monotonic();
    this.#run = { id, thread, startedMs, timedFromMs: startedMs, unread: new Set(), cancelLook: () => {} };
    this.#watch(this.#run, undefined);
    thread.tell({ type: 'collect', run: id });
  }

  /** Undefined, and the run has failed, where the system has no room for another thread. */
  #reader(): ProbeThread | undefined {
    if (this.#isOutdated) this.#dismiss();
    this.#isOutdated = false;
    if (this.#thread !== undefined) return this.#thread;
    try {
      const care = { known: this.#known(), isIsolated: this.#isIsolated, quarantined: this.#closedPlaces };
      const thread: ProbeThread = this.#start(this.#settings, care, {
        said: (message) => thread === this.#thread && this.#said(message),
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

  /** Looks every now and then at what the thread is doing. `before`: the step that it was in at the last look, and since when. */
  #watch(run: Run, before: { readonly step: Step; readonly sinceMs: number } | undefined): void {
    const dueMs = this.#clock.monotonic() + LOOK_MS;
    run.cancelLook = this.#clock.after(LOOK_MS, () => {
      if (this.#run !== run) return;
      const nowMs = this.#clock.monotonic();
      if (nowMs - dueMs >= STOOD_STILL_MS) {
        this.#run = { ...run, timedFromMs: nowMs };
        this.#watch(this.#run, undefined);
        return;
      }
      const step = run.thread.step();
      const isSame = step !== undefined && before?.step.number === step.number;
      const seen = step === undefined ? undefined : { step, sinceMs: isSame ? before.sinceMs : nowMs };
      if (seen !== undefined && nowMs - seen.sinceMs >= this.#stallMs(seen.step)) this.#stalled(seen.step);
      else if (nowMs - run.timedFromMs >= this.#settings.timeoutMs) this.#overdue(step);
      else this.#watch(run, seen);
    });
  }

  #stallMs({ kind }: Step): number {
    const { timeoutMs } = this.#settings;
    if (kind === 'file') return Math.min(READ_STALL_MS, timeoutMs);
    return this.#stuck.size > 0 ? Math.min(CALL_STALL_MS, timeoutMs) : timeoutMs;
  }

  /** One step takes too long: the run begins anew without it. */
  #stalled(step: Step): void {
    this.#giveUp(step);
    if (this.#stuck.size >= MOST_STUCK) this.#endRefresh();
    else this.#startRun();
  }

  /** The run as a whole takes too long. */
  #overdue(step: Step | undefined): void {
    this.#giveUp(step);
    // Also when the thread comes back at once: what hung is not over before a run has come through.
    this.#failed(hungAt(step === undefined ? undefined : deviceDirectory(step.path)));
    this.#endRefresh();
  }

  /** The thread is given up, and its successor stays away from what it is doing. */
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

  /** Devices whose library must not be called. */
  get #closedPlaces(): readonly string[] {
    return [...this.#untried, ...this.#stuck.calls].map(({ path }) => deviceDirectory(path));
  }

  /** Files that hung when an earlier run of the agent ended are tried by the other process, and by it alone. */
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

  /** A read came back, or hangs since now. */
  #hangsChanged(): void {
    this.#calmSinceMs = this.#clock.monotonic();
    if (!this.#isClosed && this.#run === undefined) this.#events.changed();
  }

  #readDirectlyWhenCalm(): void {
    if (!this.#isIsolated || this.#hungDirectories.length > 0 || this.#clock.monotonic() - this.#calmSinceMs < CALM_MS) return;
    this.#isIsolated = false;
    this.#slow.clear();
    this.#isolated.release();
    this.#thread?.tell({ type: 'read-directly' });
  }

  #said(message: FromThread): void {
    if (message.type === 'wake') this.#events.wake();
    else if (message.run !== this.#run?.id) return;
    else if (message.type === 'failed') this.#crashed(message.message, true);
    else this.#collected(this.#run, message.collection, message.durationMs);
  }

  #collected(run: Run, raw: Collection, durationMs: number): void {
    const readAtMs = this.#clock.now();
    const isGone = raw.listing === 'absent' && this.#isKnown;
    const told = isGone ? { ...raw, problems: [...raw.problems, NOTHING_SHOWN] } : raw;
    const collection = leaveOut(told, [...run.unread, ...this.#hungDirectories, ...this.#closedPlaces], this.#sys);
    this.#latest = { collection, startedMs: run.startedMs, readAtMs, monotonicMs: this.#clock.monotonic() };
    this.#fault = undefined;
    this.#tally.ended(couldLook(collection) && !isGone, durationMs, readAtMs);
    this.#isKnown ||= raw.reports.length > 0;
    this.#tryOne();
    this.#endRefresh();
  }

  /** A call that hung before the agent was started is tried once the others were read. */
  #tryOne(): void {
    if (this.#untried.length === 0) return;
    this.#untried = this.#untried.slice(1);
    this.#isOutdated = true;
  }

  /** A throw is a bug: the thread is replaced, so that no half-made state stays. */
  #crashed(message: string, isCurrent: boolean): void {
    const [first = '', where = ''] = message.split('\n', 2);
    const isShort = isCurrent && SHORTAGE.test(first);
    if (!isShort) this.#tellCrash(`${first}\n${where}`, message);
    if (!isCurrent) return;
    this.#failed({ code: isShort ? 'descriptors-exhausted' : 'probe-crashed', message: first });
    this.#thread?.terminate();
    this.#thread = undefined;
    this.#endRefresh();
  }

  /** What was thrown and where tells one from another; how the call came there differs from run to run. */
  #tellCrash(crash: string, message: string): void {
    if (crash !== this.#lastCrash) this.#events.crashed(this.family, message);
    this.#lastCrash = crash;
  }

  #failed(fault: Problem): void {
    this.#fault = fault;
    this.#tally.failed();
  }

  /** The thread is to end when it can. */
  #dismiss(): void {
    if (this.#thread === undefined) return;
    this.#leaving.add(this.#thread);
    this.#thread.tell({ type: 'close' });
    this.#thread = undefined;
  }

  #ended(thread: ProbeThread): void {
    this.#leaving.delete(thread);
    if (thread !== this.#thread) return;
    this.#thread = undefined;
    if (this.#isClosed) this.#endRefresh();
    else this.#crashed('the thread of the probe ended by itself', true);
  }

  /** A thread that was given up has come back from where it was stuck, and ended. The next run reads everything again. */
  #cameBack(step: Step | undefined): void {
    if (step?.kind === 'call') this.#isOutdated = true;
    if (!this.#isClosed) this.#events.changed();
  }

  #endRun(): void {
    this.#run?.cancelLook();
    this.#run = undefined;
  }

  #endRefresh(): void {
    this.#endRun();
    const refresh = this.#refresh;
    if (refresh === undefined) return;
    this.#refresh = undefined;
    refresh.settle();
    this.#events.changed();
  }
}

/** Whether a look reached the hardware, if not all of it. */
const couldLook = ({ listing, reports }: Collection): boolean => listing !== 'partial' || reports.some(({ read }) => read !== undefined);

function withoutRepetition(problems: readonly Problem[]): readonly Problem[] {
  const keyOf = ({ code, message, device }: Problem): string => [code, message, device].join('\u0000');
  return [...new Map(problems.map((problem) => [keyOf(problem), problem])).values()];
}

const NOTHING_SHOWN: Problem = { code: 'nothing-shown', message: 'the machine shows no trace of the devices that it had' };
