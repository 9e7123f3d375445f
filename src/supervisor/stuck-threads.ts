import { deviceDirectory, type Step } from '../host/fs/step-record.ts';
import type { Problem } from '../model/collection.ts';
import type { ProbeThread } from './probe-thread.ts';

/**
 * Abandoned threads of one family that are stuck in the kernel or in a vendor library. While a thread is stuck in a call, no other
 * thread may call the same device.
 */
export class StuckThreads {
  readonly #steps = new Map<ProbeThread, Step | undefined>();
  readonly #onReleased: (step: Step | undefined) => void;

  /** `onReleased`: called when a thread left its hanging step and ended. */
  constructor(onReleased: (step: Step | undefined) => void) {
    this.#onReleased = onReleased;
  }

  /** `step`: where the thread is stuck; undefined when that is unknown. */
  add(thread: ProbeThread, step: Step | undefined): void {
    this.#steps.set(thread, step);
    void thread.exited.then(() => {
      if (this.#steps.delete(thread)) this.#onReleased(step);
    });
    thread.terminate();
  }

  get size(): number {
    return this.#steps.size;
  }

  get unplaced(): number {
    return [...this.#steps.values()].filter((step) => step === undefined).length;
  }

  get threads(): readonly ProbeThread[] {
    return [...this.#steps.keys()];
  }

  /** Hanging calls. */
  get calls(): readonly Step[] {
    return [...this.#steps.values()].filter((step) => step?.kind === 'call').map((step) => step as Step);
  }

  problems(): readonly Problem[] {
    const unplaced = [...this.#steps.values()].flatMap((step) => (step === undefined ? [hungAt(undefined)] : []));
    return [...this.calls.map(({ path }) => hungAt(deviceDirectory(path))), ...unplaced];
  }
}

/** `place`: directory of the device; undefined when the hanging device is unknown. */
export function hungAt(place: string | undefined): Problem {
  return {
    code: 'probe-hung',
    message: place === undefined ? 'a run of the probe has not returned' : `a read below ${place} has not returned`,
  };
}
