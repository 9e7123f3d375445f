const CAPACITY = 4_096;
const HEADER = 12;
/** Indexes of the shared header: number of steps so far, length of the path, kind of the step. */
const [COUNT, LENGTH, KIND] = [0, 1, 2];
const KINDS = ['file', 'call'] as const;

/** A step that can hang: a read of a file, or a call of a vendor library. */
export type StepKind = (typeof KINDS)[number];

/** The current step of a thread. */
export interface Step {
  /** Grows with each step, so that a long step differs from a repeated one. */
  readonly number: number;
  readonly kind: StepKind;
  /** Path of the file; for a call the place of the device and the name of the function. */
  readonly path: string;
}

/** Reads files without system calls of the calling thread. Returns after a bounded time. */
export interface IsolatedReader {
  /** At most `limit` bytes from the beginning of a file, or the errno name; `EHUNG` when a read hangs. */
  read(path: string, limit: number): Buffer | string;
}

/**
 * Shared memory of a probe's thread and its supervisor that holds the current step of the thread. A thread that hangs in the kernel
 * cannot report its step. The supervisor reads the step here, and the next thread avoids it.
 */
export class StepRecord {
  readonly shared: SharedArrayBuffer;
  /** When present, it reads the files and the thread itself does not. */
  isolatedReader: IsolatedReader | undefined;
  readonly #note: Int32Array;
  readonly #bytes: Buffer;
  readonly #quarantined: readonly string[];

  /** `quarantined`: places that calls must not touch, because an earlier call still hangs. */
  constructor(quarantined: readonly string[] = [], shared: SharedArrayBuffer = new SharedArrayBuffer(HEADER + CAPACITY)) {
    this.shared = shared;
    this.#note = new Int32Array(shared, 0, 3);
    this.#bytes = Buffer.from(shared, HEADER, CAPACITY);
    this.#quarantined = quarantined;
  }

  /** Begins a step. Returns false without beginning it when the path lies in a quarantined place. */
  enter(path: string, kind: StepKind = 'file'): boolean {
    if (this.#isQuarantined(path)) return false;
    Atomics.store(this.#note, KIND, KINDS.indexOf(kind));
    Atomics.add(this.#note, COUNT, 1);
    Atomics.store(this.#note, LENGTH, this.#bytes.write(path, 0, CAPACITY, 'utf8'));
    return true;
  }

  leave(): void {
    Atomics.store(this.#note, LENGTH, 0);
  }

  /** Whether a path lies in a quarantined place. */
  isClosed(path: string): boolean {
    return this.#isQuarantined(path);
  }

  /** Whether the thread has begun a step since it exists; may be called from another thread. */
  get hasBegun(): boolean {
    return Atomics.load(this.#note, COUNT) > 0;
  }

  /** The current step of the thread; may be called from another thread. */
  current(): Step | undefined {
    const length = Atomics.load(this.#note, LENGTH);
    if (length === 0) return undefined;
    const kind = KINDS[Atomics.load(this.#note, KIND)] ?? 'file';
    return { number: Atomics.load(this.#note, COUNT), kind, path: this.#bytes.toString('utf8', 0, length) };
  }

  #isQuarantined(path: string): boolean {
    return this.#quarantined.length > 0 && this.#quarantined.some((place) => path === place || path.startsWith(`${place}/`));
  }
}

/**
 * The directory of the device that a sysfs path belongs to: when one of its files hangs, the other files hang too.
 * `…/class/net/eth0/statistics/rx_bytes` gives `…/class/net/eth0`; any other path is returned unchanged.
 */
export function deviceDirectory(path: string): string {
  return /^(.*?\/(?:class\/[^/]+|bus\/[^/]+\/devices)\/[^/]+)(?:\/|$)/.exec(path)?.[1] ?? path;
}
