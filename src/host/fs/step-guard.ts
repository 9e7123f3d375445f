/** A step that can hang: a read of a file, or a call of a vendor library. */
export type StepKind = 'file' | 'call';

/** Where a reader is. */
export interface Step {
  readonly kind: StepKind;
  /** The directory of the device; for a call the place of the device and the name of the function. */
  readonly path: string;
}

/** A file that is read again and again knows its place after the first read. */
export interface StepPlace {
  place?: string;
}

/** A word about the same place is repeated after this time, so that many quick reads of one device do not look like one that hangs. */
const REPEAT_MS = 100;

/**
 * Says where a reader is before each step that can hang, and keeps it out of places in which a step hung. One word is enough for all files of a
 * device, because they hang together.
 */
export class StepGuard {
  /** Places that are not entered. */
  leftOut: readonly string[];
  readonly #say: (step: Step | undefined) => void;
  #said: string | undefined;
  #saidMs = 0;
  #isLeaving = false;

  constructor(leftOut: readonly string[] = [], say: (step: Step | undefined) => void = () => {}) {
    this.leftOut = leftOut;
    this.#say = say;
  }

  /** Begins a step. Returns an errno name without beginning it when its place is left out. */
  enter(path: string, kind: StepKind = 'file', file?: StepPlace): string | undefined {
    if (this.isLeftOut(path)) return 'EHUNG';
    const place = kind === 'call' ? path : (file?.place ?? deviceDirectory(path));
    if (file !== undefined) file.place = place;
    const nowMs = Date.now();
    if (place === this.#said && Math.abs(nowMs - this.#saidMs) < REPEAT_MS) return undefined;
    this.#said = place;
    this.#saidMs = nowMs;
    this.#say({ kind, path: place });
    return undefined;
  }

  /** Ends a step. That it has ended is said when no other one follows at once. */
  leave(): void {
    if (this.#isLeaving) return;
    this.#isLeaving = true;
    setImmediate(() => {
      this.#isLeaving = false;
      this.#said = undefined;
      this.#say(undefined);
    });
  }

  isLeftOut(path: string): boolean {
    return this.leftOut.length > 0 && this.leftOut.some((place) => path === place || path.startsWith(`${place}/`));
  }
}

/**
 * The directory of the device that a path belongs to: when one of its files hangs, the other files hang too.
 * `…/class/net/eth0/statistics/rx_bytes` gives `…/class/net/eth0`, and a device below `bus` the same way. The open files of a process are one
 * directory, too. Any other path is returned unchanged.
 */
export function deviceDirectory(path: string): string {
  return /^(.*?\/(?:class\/[^/]+|bus\/[^/]+\/devices)\/[^/]+|.*\/\d+\/fdinfo)(?:\/|$)/.exec(path)?.[1] ?? path;
}
