import { deviceDirectory, type Step } from '../host/fs/read-guard.ts';
import type { Problem } from '../model/collection.ts';
import type { ProbeThread } from './probe-thread.ts';

/**
 * Threads of one family that were given up and are stuck in the kernel or in a vendor's library. A thread that is stuck in a call
 * keeps its device closed: nobody else calls there until the thread comes back.
 */
export class StuckThreads {
  readonly #steps = new Map<ProbeThread, Step | undefined>();
  readonly #cameBack: (step: Step | undefined) => void;

  /** `cameBack`: a thread was released from a step, and ended. */
  constructor(cameBack: (step: Step | undefined) => void) {
    this.#cameBack = cameBack;
  }

  /** `step`: where the thread is stuck; undefined when that is not known. */
  add(thread: ProbeThread, step: Step | undefined): void {
    this.#steps.set(thread, step);
    void thread.exited.then(() => {
      if (this.#steps.delete(thread)) this.#cameBack(step);
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

  /** Calls that hang. */
  get calls(): readonly Step[] {
    return [...this.#steps.values()].filter((step) => step?.kind === 'call').map((step) => step as Step);
  }

  problems(): readonly Problem[] {
    const unplaced = [...this.#steps.values()].flatMap((step) => (step === undefined ? [hungAt(undefined)] : []));
    return [...this.calls.map(({ path }) => hungAt(deviceDirectory(path))), ...unplaced];
  }
}

/** `place`: directory of the device; undefined when it is not known which one hangs. */
export function hungAt(place: string | undefined): Problem {
  return {
    code: 'probe-hung',
    message: place === undefined ? 'a run of the probe has not come back' : `a read below ${place} has not come back`,
  };
}
