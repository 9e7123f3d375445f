import type { Clock } from '../../host/clock.ts';

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 122_000;

interface State {
  readonly isPending: boolean;
  readonly failedAtMs: number;
  readonly waitMs: number;
}

/**
 * Runs things by name, one of a name at a time. After a failure the next of that name is passed over until a wait is up, each twice as
 * long as the one before; a success forgets them. Source of the waits: util/goroutinemap of Kubernetes 1.36.3.
 */
export class BackedOff {
  readonly #clock: Clock;
  readonly #states = new Map<string, State>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  run(name: string, operation: () => Promise<void>): void {
    const before = this.#states.get(name) ?? { isPending: false, failedAtMs: 0, waitMs: 0 };
    if (before.isPending || (before.waitMs > 0 && this.#clock.monotonic() - before.failedAtMs <= before.waitMs)) return;
    this.#states.set(name, { ...before, isPending: true });
    operation().then(
      () => this.#states.delete(name),
      () => {
        const waitMs = before.waitMs === 0 ? FIRST_WAIT_MS : Math.min(2 * before.waitMs, LONGEST_WAIT_MS);
        this.#states.set(name, { isPending: false, failedAtMs: this.#clock.monotonic(), waitMs });
      },
    );
  }
}
