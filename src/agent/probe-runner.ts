import type { Clock } from '../host/clock.ts';
import { deviceDirectory } from '../host/read-guard.ts';
import type { Collection, Problem } from '../model/collection.ts';
import type { FamilyState } from '../model/snapshot.ts';
import { Absence } from './absence.ts';
import { PatientAlarm } from './patient-alarm.ts';
import { ProbeThread, type ThreadSettings } from './probe-thread.ts';
import { leaveOut } from './quarantine.ts';
import { RunTally } from './run-tally.ts';
import type { FromThread } from './worker-messages.ts';

/** Given-up threads of one family that may be stuck at the same time; beyond it the family waits for one to come back. */
const MOST_ABANDONED = 3;
const NO_PROBLEMS: readonly Problem[] = [];

export interface RunnerSettings extends ThreadSettings {
  readonly timeoutMs: number;
}

export interface RunnerEvents {
  /** The state changed: new collection, failure, hang. */
  changed(): void;
  /** The probe saw something happen and wants to be read soon. */
  wake(): void;
  /** A bug in the probe: said once per message. */
  crashed(family: string, message: string): void;
}

interface Run {
  readonly id: number;
  readonly done: Promise<void>;
  settle(): void;
}

/**
 * Runs one family's probe in a thread of its own. A run that passes its deadline is given up: the thread is abandoned with
 * the device it was reading, and a new one goes on with the others. Never two runs at once, and never a new read where one hangs. A
 * family that is not on this node has no thread until something on the machine changes.
 */
export class ProbeRunner {
  readonly family: string;
  readonly #settings: RunnerSettings;
  readonly #clock: Clock;
  readonly #events: RunnerEvents;
  readonly #abandoned = new Map<ProbeThread, string | undefined>();
  readonly #deadline: PatientAlarm;
  readonly #absence: Absence;
  #thread: ProbeThread | undefined;
  #run: Run | undefined;
  /** The thread stays away from a place that answers again. */
  #isOutdated = false;
  #nextRun = 1;
  #latest: { readonly collection: Collection; readonly readAtMs: number } | undefined;
  readonly #tally = new RunTally();
  #crash: Problem | undefined;
  #closed = false;

  /** `look` tells what hardware or a driver that comes changes on the machine. */
  constructor(settings: RunnerSettings, clock: Clock, events: RunnerEvents, look: () => string = () => '') {
    this.family = settings.family;
    this.#settings = settings;
    this.#clock = clock;
    this.#events = events;
    this.#absence = new Absence(clock, look);
    this.#deadline = new PatientAlarm(clock, () => this.#giveUp());
  }

  /** The last collection, without devices at which a read hangs, and the wall clock of its end. */
  latest(): { readonly collection: Collection; readonly readAtMs: number } | undefined {
    return this.#latest;
  }

  /** Whether a run is under way that has not been given up. */
  get isReading(): boolean {
    return this.#run !== undefined;
  }

  state(): FamilyState {
    const read = this.#latest?.collection.problems ?? NO_PROBLEMS;
    const hung = this.#abandoned.size > 0;
    if (!hung && this.#crash === undefined) return this.#tally.state(this.family, read, hung);
    const own = this.#crash === undefined ? this.#hungProblems() : [...this.#hungProblems(), this.#crash];
    return this.#tally.state(this.family, [...read, ...own], hung);
  }

  /** One run; resolves when it ended in whatever way. Joins the run in progress, if any. */
  refresh(): Promise<void> {
    if (this.#run !== undefined) return this.#run.done;
    if (this.#closed || this.#abandoned.size >= MOST_ABANDONED) return Promise.resolve();
    if (this.#absence.isResting()) {
      this.#events.changed();
      return Promise.resolve();
    }
    this.#absence.begins();
    const thread = this.#currentThread();
    const id = this.#nextRun++;
    let settle = (): void => {};
    const done = new Promise<void>((resolve) => {
      settle = resolve;
    });
    this.#deadline.set(this.#settings.timeoutMs);
    this.#run = { id, done, settle };
    thread.tell({ type: 'collect', run: id });
    return done;
  }

  /** Ends the thread. False when one is stuck in a system call and keeps the process from ending by itself. */
  async close(graceMs: number): Promise<boolean> {
    this.#closed = true;
    this.#deadline.close();
    const threads = [...this.#abandoned.keys()];
    if (this.#thread !== undefined) threads.push(this.#thread);
    if (this.#run === undefined) this.#thread?.tell({ type: 'close' });
    else this.#thread?.terminate();
    const exited = Promise.all(threads.map((thread) => thread.exited));
    if (!(await this.#within(exited, graceMs))) {
      for (const thread of threads) thread.terminate();
      await this.#within(exited, graceMs);
    }
    this.#endRun();
    return threads.every((thread) => thread.hasExited);
  }

  #startThread(): ProbeThread {
    const quarantined = [...this.#abandoned.values()].filter((path) => path !== undefined);
    const { family, options, roots } = this.#settings;
    const thread: ProbeThread = new ProbeThread(
      { family, options, roots },
      quarantined,
      (message) => this.#received(thread, message),
      (error) => this.#crashed(error.stack ?? error.message),
    );
    void thread.exited.then(() => this.#threadEnded(thread));
    return thread;
  }

  #received(thread: ProbeThread, message: FromThread): void {
    if (thread !== this.#thread) return;
    if (message.type === 'wake') this.#events.wake();
    else if (message.type === 'failed' && message.run === this.#run?.id) this.#crashed(message.message);
    else if (message.type === 'collected' && message.run === this.#run?.id) this.#collected(message.collection, message.durationMs);
  }

  #collected(raw: Collection, durationMs: number): void {
    const readAtMs = this.#clock.now();
    const collection = this.#abandoned.size === 0 ? raw : leaveOut(raw, [...this.#abandoned.values()]);
    this.#latest = { collection, readAtMs };
    this.#crash = undefined;
    this.#tally.ended(collection.complete !== false, durationMs, readAtMs);
    if (this.#absence.saw(raw)) {
      this.#thread?.tell({ type: 'close' });
      this.#thread = undefined;
    }
    this.#endRun();
  }

  /** A throw is a bug: the thread is replaced, so that no half-made state stays. */
  #crashed(message: string): void {
    const firstLine = message.split('\n', 1)[0] ?? message;
    this.#crash = { code: 'probe-crashed', message: firstLine };
    this.#events.crashed(this.family, message);
    this.#tally.crashed();
    const thread = this.#thread;
    this.#thread = undefined;
    thread?.terminate();
    this.#endRun();
  }

  #giveUp(): void {
    const thread = this.#thread;
    if (thread === undefined || this.#run === undefined) return;
    const path = thread.underRead();
    this.#abandoned.set(thread, path === undefined ? undefined : deviceDirectory(path));
    this.#thread = undefined;
    this.#tally.givenUp();
    thread.terminate();
    this.#endRun();
  }

  #threadEnded(thread: ProbeThread): void {
    const wasAbandoned = this.#abandoned.delete(thread);
    if (thread === this.#thread) {
      this.#thread = undefined;
      this.#endRun();
    } else if (wasAbandoned && !this.#closed) {
      // What hung has come back: the next thread reads everything again.
      this.#isOutdated = true;
      this.#events.changed();
    }
  }

  #currentThread(): ProbeThread {
    if (this.#isOutdated) {
      this.#thread?.tell({ type: 'close' });
      this.#thread = undefined;
      this.#isOutdated = false;
    }
    this.#thread ??= this.#startThread();
    return this.#thread;
  }

  #endRun(): void {
    const run = this.#run;
    if (run === undefined) return;
    this.#run = undefined;
    this.#deadline.unset();
    run.settle();
    this.#events.changed();
  }

  #hungProblems(): Problem[] {
    return [...this.#abandoned.values()].map((path) => ({
      code: 'probe-hung',
      message: path === undefined ? 'a run of the probe has not come back' : `a read below ${path} has not come back`,
    }));
  }

  async #within(done: Promise<unknown>, graceMs: number): Promise<boolean> {
    let cancel = (): void => {};
    const late = new Promise<false>((resolve) => {
      const timer = setTimeout(() => resolve(false), graceMs);
      cancel = () => clearTimeout(timer);
    });
    const result = await Promise.race([done.then(() => true), late]);
    cancel();
    return result;
  }
}
