import { deviceDirectory } from '../host/read-guard.ts';
import type { Problem } from '../model/collection.ts';
import { ProbeThread, type ThreadSettings } from './probe-thread.ts';
import { endThreads } from './thread-end.ts';
import type { FromThread } from './worker-messages.ts';

export interface ThreadEvents {
  /** The current thread is about to tell its first collection. */
  renewed(): void;
  /** From the current thread. */
  received(message: FromThread): void;
  /** A thread ended with an error; `isCurrent` is false for one that had been replaced. */
  crashed(message: string, isCurrent: boolean): void;
  /** The current thread ended by itself. */
  lost(): void;
  /** A thread that was given up has come back from where it hung, and ended. */
  returned(): void;
}

/** The threads of one family: the one that reads, those that were given up and hang, and those that are told to end. */
export class FamilyThreads {
  readonly #settings: ThreadSettings;
  readonly #events: ThreadEvents;
  /** Given up, with the directory of the device that each was reading. */
  readonly #hanging = new Map<ProbeThread, string | undefined>();
  readonly #leaving = new Set<ProbeThread>();
  #current: ProbeThread | undefined;
  /** The current one stays away from a place that answers again. */
  #isOutdated = false;

  constructor(settings: ThreadSettings, events: ThreadEvents) {
    this.#settings = settings;
    this.#events = events;
  }

  /** How many hang. */
  get hanging(): number {
    return this.#hanging.size;
  }

  /** The one that reads, started if need be. Throws where the system has no room for another thread. */
  reader(): ProbeThread {
    if (this.#isOutdated) this.dismiss();
    this.#isOutdated = false;
    this.#current ??= this.#start();
    return this.#current;
  }

  /** The current one is to end when it can. */
  dismiss(): void {
    if (this.#current === undefined) return;
    this.#leaving.add(this.#current);
    this.#current.tell({ type: 'close' });
    this.#current = undefined;
  }

  /** The current one is ended, whatever it does. */
  discard(): void {
    this.#current?.terminate();
    this.#current = undefined;
  }

  /** The current one hangs: another one goes on without the device that it is reading. Undefined when there is none. */
  giveUp(): Problem | undefined {
    if (this.#current === undefined) return undefined;
    const path = this.#current.underRead();
    const place = path === undefined ? undefined : deviceDirectory(path);
    this.#hanging.set(this.#current, place);
    this.discard();
    return hungAt(place);
  }

  /** Directories in which reads hang. */
  places(): readonly string[] {
    return [...this.#hanging.values()].filter((path) => path !== undefined);
  }

  problems(): readonly Problem[] {
    return [...this.#hanging.values()].map(hungAt);
  }

  /** Ends all. False when one is stuck in a system call and keeps the process from ending by itself. */
  end(isReading: boolean, graceMs: number): Promise<boolean> {
    const threads = [...this.#hanging.keys(), ...this.#leaving, ...(this.#current === undefined ? [] : [this.#current])];
    if (isReading) this.#current?.terminate();
    else this.#current?.tell({ type: 'close' });
    return endThreads(threads, graceMs);
  }

  #start(): ProbeThread {
    let hasCollected = false;
    const thread: ProbeThread = new ProbeThread(
      this.#settings,
      this.places(),
      (message) => {
        if (thread !== this.#current) return;
        if (message.type === 'collected' && !hasCollected) this.#events.renewed();
        hasCollected ||= message.type === 'collected';
        this.#events.received(message);
      },
      (error) => this.#events.crashed(error.stack ?? error.message, thread === this.#current),
    );
    void thread.exited.then(() => this.#ended(thread));
    return thread;
  }

  #ended(thread: ProbeThread): void {
    this.#leaving.delete(thread);
    const hung = this.#hanging.delete(thread);
    if (thread === this.#current) {
      this.#current = undefined;
      this.#events.lost();
    } else if (hung) {
      // The next thread reads everything again.
      this.#isOutdated = true;
      this.#events.returned();
    }
  }
}

function hungAt(place: string | undefined): Problem {
  return {
    code: 'probe-hung',
    message: place === undefined ? 'a run of the probe has not come back' : `a read below ${place} has not come back`,
  };
}
