import type { Clock } from '../host/clock.ts';

/** One thing to be done later; setting it again moves it. */
export class Alarm {
  readonly #clock: Clock;
  readonly #ring: () => void;
  #cancel: (() => void) | undefined;

  constructor(clock: Clock, ring: () => void) {
    this.#clock = clock;
    this.#ring = ring;
  }

  get isSet(): boolean {
    return this.#cancel !== undefined;
  }

  set(delayMs: number): void {
    this.cancel();
    this.#cancel = this.#clock.after(delayMs, () => {
      this.#cancel = undefined;
      this.#ring();
    });
  }

  cancel(): void {
    this.#cancel?.();
    this.#cancel = undefined;
  }
}
