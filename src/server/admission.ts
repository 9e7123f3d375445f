import type { Socket } from 'node:net';
import type { Clock } from '../host/clock.ts';
import { clientOf, Shares } from './shares.ts';

/** One request's way to a place among the answers under way. */
export interface Turn {
  /** Whether it has a place. It is not to be answered before. */
  readonly admitted: Promise<boolean>;
  /** It has ended, or is not wanted any more. */
  leave(): void;
}

/** How long requests wait, and how long an answer must have been under way to be given up for one. */
export interface AdmissionWaits {
  readonly patienceMs: number;
  /** For a request of a client that has no place at all. */
  readonly newcomerMs: number;
}

interface Entrant {
  readonly connection: Socket;
  readonly client: string;
  /** Monotonic milliseconds. */
  admittedMs?: number;
  tell(isAdmitted: boolean): void;
}

/**
 * Lets a bounded number of answers be under way, each client having its share of them. A burst waits its turn instead of being
 * refused. Whoever has waited for `patienceMs` gets the place of an answer that has been under way as long, whose connection is
 * closed; where there is none, it is refused. A client that has no place waits for one of somebody who has several no longer than
 * until an answer of those has been under way for `newcomerMs`. Limit 0: no limit.
 */
export class Admission {
  readonly #shares: Shares;
  readonly #waits: AdmissionWaits;
  readonly #clock: Clock;
  readonly #waiting = new Set<Entrant>();
  /** In the order in which they were admitted. */
  readonly #underWay = new Set<Entrant>();

  constructor(limit: number, waits: AdmissionWaits, clock: Clock) {
    this.#shares = new Shares(limit === 0 ? Number.POSITIVE_INFINITY : limit);
    this.#waits = waits;
    this.#clock = clock;
  }

  enter(connection: Socket): Turn {
    let cancel = (): void => {};
    let resolve: (isAdmitted: boolean) => void;
    const admitted = new Promise<boolean>((settle) => {
      resolve = settle;
    });
    const tell = (isAdmitted: boolean): void => {
      cancel();
      resolve(isAdmitted);
    };
    const entrant: Entrant = { connection, client: clientOf(connection), tell };
    const { newcomerMs, patienceMs } = this.#waits;
    const wait = (delayMs: number, then: () => void): void => {
      cancel = this.#clock.after(delayMs, then);
    };
    const losePatience = (): void => this.#losePatience(entrant);
    if (this.#shares.take(entrant.client)) this.#admit(entrant);
    else if (!this.#comesNewly(entrant)) {
      this.#waiting.add(entrant);
      wait(Math.min(newcomerMs, patienceMs), () => {
        if (!this.#comesNewly(entrant)) wait(Math.max(0, patienceMs - newcomerMs), losePatience);
      });
    }
    return { admitted, leave: () => this.#leave(entrant) };
  }

  #admit(entrant: Entrant): void {
    this.#waiting.delete(entrant);
    entrant.admittedMs = this.#clock.monotonic();
    this.#underWay.add(entrant);
    entrant.tell(true);
  }

  #leave(entrant: Entrant): void {
    if (this.#waiting.delete(entrant)) entrant.tell(false);
    if (!this.#underWay.delete(entrant)) return;
    this.#shares.giveBack(entrant.client);
    for (const next of this.#waiting) {
      if (!this.#shares.take(next.client)) continue;
      this.#admit(next);
      return;
    }
  }

  #losePatience(entrant: Entrant): void {
    if (this.#displaces(entrant, this.#slowest(entrant, this.#waits.patienceMs))) return;
    this.#waiting.delete(entrant);
    entrant.tell(false);
  }

  /** Whether it has got a place for being of a client that had none. */
  #comesNewly(entrant: Entrant): boolean {
    if (this.#shares.held(entrant.client) > 0) return false;
    const slow = this.#slowest(entrant, this.#waits.newcomerMs);
    return slow !== undefined && this.#shares.held(slow.client) > 1 && this.#displaces(entrant, slow);
  }

  #displaces(entrant: Entrant, slow: Entrant | undefined): boolean {
    if (slow === undefined) return false;
    this.#underWay.delete(slow);
    this.#shares.pass(slow.client, entrant.client);
    this.#admit(entrant);
    slow.connection.destroy();
    return true;
  }

  /** Of the client that has most answers under way the oldest. Of clients that have equally many, the one that waits gives way. */
  #slowest(entrant: Entrant, leastMs: number): Entrant | undefined {
    const rank = ({ client }: Entrant): number => this.#shares.held(client) + (client === entrant.client ? 0.5 : 0);
    const latestMs = this.#clock.monotonic() - leastMs;
    let slowest: Entrant | undefined;
    for (const one of this.#underWay) {
      if (one.admittedMs === undefined || one.admittedMs > latestMs) break;
      // It would lose its own connection with the answer that is before it there.
      if (one.connection === entrant.connection) continue;
      if (slowest === undefined || rank(one) > rank(slowest)) slowest = one;
    }
    return slowest;
  }
}
