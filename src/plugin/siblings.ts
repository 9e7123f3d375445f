import { dirname } from 'node:path';
import type { Clock } from '../host/clock.ts';
import { type EntryWatch, watchEntry } from '../host/fs/entry-watch.ts';
import { otherSockets, removeDeadSockets } from './socket-name.ts';

export interface SiblingsParts {
  readonly ownSocket: string;
  readonly resource: string;
  readonly clock: Clock;
  /** Time between two looks whether a sibling still listens: nothing tells of one that was killed. */
  readonly lookMs: number;
  /** How long there must be none: one that registers again has a new socket after a while. */
  readonly aloneMs: number;
  /** There were siblings, and the last one is gone. */
  onAlone(): void;
}

/**
 * Watches for other processes that serve the same resource. When the one goes that registered last, kubelets take the resource for gone, though
 * the stream of the one before it stays open: only a new registration brings it back (kubernetes#127803).
 */
export class Siblings {
  readonly #parts: SiblingsParts;
  readonly #watch: EntryWatch;
  #hadSome = false;
  #aloneSinceMs: number | undefined;
  /** Number of the look that counts. */
  #looks = 0;
  #isClosed = false;
  #cancel = (): void => {};

  constructor(parts: SiblingsParts) {
    this.#parts = parts;
    this.#watch = watchEntry(
      parts.ownSocket,
      () => this.#paths().join(),
      () => void this.#look(),
      parts.clock,
    );
    void this.#look();
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
    this.#watch.close();
  }

  #paths(): string[] {
    return otherSockets(dirname(this.#parts.ownSocket), this.#parts.resource, this.#parts.ownSocket);
  }

  async #look(): Promise<void> {
    this.#looks += 1;
    const look = this.#looks;
    const isOneAlive = await removeDeadSockets(this.#paths());
    if (this.#isClosed || look !== this.#looks) return;
    this.#cancel();
    if (isOneAlive) {
      this.#hadSome = true;
      this.#aloneSinceMs = undefined;
      this.#lookAfter(this.#parts.lookMs);
    } else if (this.#hadSome) {
      this.#alone();
    }
  }

  #alone(): void {
    const { clock, aloneMs, onAlone } = this.#parts;
    const now = clock.monotonic();
    this.#aloneSinceMs ??= now;
    const restMs = this.#aloneSinceMs + aloneMs - now;
    if (restMs > 0) this.#lookAfter(restMs);
    else onAlone();
  }

  #lookAfter(delayMs: number): void {
    this.#cancel = this.#parts.clock.after(delayMs, () => void this.#look());
  }
}
