import type { Clock } from '../host/clock.ts';
import type { Collection, Problem } from '../model/collection.ts';
import type { FamilyState } from '../model/snapshot.ts';
import { Absence } from './absence.ts';
import { FamilyThreads } from './family-threads.ts';
import { PatientAlarm } from './patient-alarm.ts';
import type { ProbeThread, ThreadSettings } from './probe-thread.ts';
import { leaveOut } from './quarantine.ts';
import { RunTally } from './run-tally.ts';
import type { Latest } from './seating.ts';
import type { FromThread } from './worker-messages.ts';

/** Given-up threads of one family that may be stuck at the same time; beyond it the family waits for one to come back. */
const MOST_ABANDONED = 3;
/** A thread needs descriptors to start, and its code is read from files, whose loader has words of its own for it. */
const SHORTAGE = /\bE[MN]FILE\b|too many open files/i;
/** A deadline noticed so late: container or machine stood still, and what the thread said meanwhile was not heard. Nothing hangs for that. */
const STOOD_STILL_MS = 1_000;
const NO_PROBLEMS: readonly Problem[] = [];

export interface RunnerSettings extends ThreadSettings {
  readonly timeoutMs: number;
}

export interface RunnerEvents {
  /** The state changed: new collection, failure, hang. */
  changed(): void;
  /** The first collection of another thread is next: what the one before kept in mind is gone. */
  renewed?(family: string): void;
  /** The probe saw something happen and wants to be read soon. */
  wake(): void;
  /** A bug in the probe, when it is another one than the last. */
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
  readonly #threads: FamilyThreads;
  readonly #deadline: PatientAlarm;
  readonly #absence: Absence;
  readonly #tally = new RunTally();
  #run: Run | undefined;
  #nextRun = 1;
  #latest: Latest | undefined;
  /** Why the last run came to nothing. */
  #fault: Problem | undefined;
  #lastCrash: string | undefined;
  #closed = false;

  /** `look` tells what hardware or a driver that comes changes on the machine. */
  constructor(settings: RunnerSettings, clock: Clock, events: RunnerEvents, look: () => string = () => '') {
    this.family = settings.family;
    this.#settings = settings;
    this.#clock = clock;
    this.#events = events;
    this.#absence = new Absence(clock, look);
    this.#deadline = new PatientAlarm(clock, (lateMs) => this.#overdue(lateMs));
    const { family, options, roots } = settings;
    this.#threads = new FamilyThreads(
      { family, options, roots },
      {
        renewed: () => events.renewed?.(family),
        received: (message) => this.#received(message),
        crashed: (message, isCurrent) => this.#crashed(message, isCurrent),
        lost: () => (this.#closed ? this.#endRun() : this.#crashed('the thread of the probe ended by itself', true)),
        returned: () => this.#closed || events.changed(),
      },
    );
  }

  /** The last collection, without devices at which a read hangs. */
  latest(): Latest | undefined {
    return this.#latest;
  }

  /** Whether a run is under way that has not been given up. */
  get isReading(): boolean {
    return this.#run !== undefined;
  }

  state(): FamilyState {
    const read = this.#latest?.collection.problems ?? NO_PROBLEMS;
    const hung = this.#threads.hanging > 0;
    if (!hung && this.#fault === undefined) return this.#tally.state(this.family, read, hung);
    const hanging = this.#threads.problems();
    const isTold = this.#fault === undefined || hanging.some(({ message }) => message === this.#fault?.message);
    return this.#tally.state(this.family, [...read, ...hanging, ...(isTold ? [] : [this.#fault as Problem])], hung);
  }

  /** One run; resolves when it ended in whatever way. Joins the run in progress, if any. */
  refresh(): Promise<void> {
    if (this.#run !== undefined) return this.#run.done;
    if (this.#closed || this.#threads.hanging >= MOST_ABANDONED) return Promise.resolve();
    const isResting = this.#absence.isResting();
    if (isResting) this.#tally.rested(this.#clock.now());
    const thread = isResting ? undefined : this.#reader();
    if (thread === undefined) {
      this.#events.changed();
      return Promise.resolve();
    }
    this.#absence.begins();
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
    const ended = await this.#threads.end(this.isReading, graceMs);
    this.#endRun();
    return ended;
  }

  /** Undefined, and the run has failed, where the system has no room for another thread. */
  #reader(): ProbeThread | undefined {
    try {
      return this.#threads.reader();
    } catch (error) {
      this.#failed({ code: 'thread-refused', message: `a thread cannot be started: ${(error as Error).message}` });
      return undefined;
    }
  }

  #received(message: FromThread): void {
    if (message.type === 'wake') this.#events.wake();
    else if (message.run !== this.#run?.id) return;
    else if (message.type === 'failed') this.#crashed(message.message, true);
    else this.#collected(message.collection, message.durationMs);
  }

  #collected(raw: Collection, durationMs: number): void {
    const readAtMs = this.#clock.now();
    const collection = this.#threads.hanging === 0 ? raw : leaveOut(raw, this.#threads.places());
    this.#latest = { collection, readAtMs, monotonicMs: this.#clock.monotonic() };
    this.#fault = undefined;
    this.#tally.ended(collection.complete !== false, durationMs, readAtMs);
    if (this.#absence.saw(raw)) this.#threads.dismiss();
    this.#endRun();
  }

  /** A throw is a bug: the thread is replaced, so that no half-made state stays. */
  #crashed(message: string, isCurrent: boolean): void {
    const [first = '', where = ''] = message.split('\n', 2);
    const isShort = isCurrent && SHORTAGE.test(first);
    if (!isShort) this.#tellCrash(`${first}\n${where}`, message);
    if (!isCurrent) return;
    this.#failed({ code: isShort ? 'descriptors-exhausted' : 'probe-crashed', message: first });
    this.#threads.discard();
    this.#endRun();
  }

  /** What was thrown and where tells one from another; how the call came there differs from run to run. */
  #tellCrash(crash: string, message: string): void {
    if (crash !== this.#lastCrash) this.#events.crashed(this.family, message);
    this.#lastCrash = crash;
  }

  #failed(fault: Problem): void {
    this.#fault = fault;
    this.#tally.crashed();
  }

  /** `lateMs` after the deadline. */
  #overdue(lateMs: number): void {
    if (lateMs >= STOOD_STILL_MS) {
      this.#deadline.set(this.#settings.timeoutMs);
      return;
    }
    const hung = this.#run === undefined ? undefined : this.#threads.giveUp();
    if (hung === undefined) return;
    // Also when the thread is gone at once: what hung is not over before a run has come through.
    this.#fault = hung;
    this.#tally.givenUp();
    this.#endRun();
  }

  #endRun(): void {
    const run = this.#run;
    if (run === undefined) return;
    this.#run = undefined;
    this.#deadline.unset();
    run.settle();
    this.#events.changed();
  }
}
