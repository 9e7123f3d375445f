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
 * closed; where there is none, it is refused. Limit 0: no limit.
 */
export class Admission {
  readonly #shares: Shares;
  readonly #patienceMs: number;
  readonly #clock: Clock;
  readonly #waiting = new Set<Entrant>();
  /** In the order in which they were admitted. */
  readonly #underWay = new Set<Entrant>();

  constructor(limit: number, patienceMs: number, clock: Clock) {
    this.#shares = new Shares(limit === 0 ? Number.POSITIVE_INFINITY : limit);
    this.#patienceMs = patienceMs;
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
    if (this.#shares.take(entrant.client)) this.#admit(entrant);
    else {
      this.#waiting.add(entrant);
      cancel = this.#clock.after(this.#patienceMs, () => this.#losePatience(entrant));
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
    const slow = this.#slowest(entrant);
    if (slow === undefined) {
      this.#waiting.delete(entrant);
      entrant.tell(false);
      return;
    }
    this.#underWay.delete(slow);
    this.#shares.pass(slow.client, entrant.client);
    this.#admit(entrant);
    slow.connection.destroy();
  }

  /** Of the client that has most answers under way the oldest. Of clients that have equally many, the one that waits gives way. */
  #slowest(entrant: Entrant): Entrant | undefined {
    const rank = ({ client }: Entrant): number => this.#shares.held(client) + (client === entrant.client ? 0.5 : 0);
    const latestMs = this.#clock.monotonic() - this.#patienceMs;
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
