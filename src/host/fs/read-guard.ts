const CAPACITY = 4_096;
const HEADER = 12;
/** Words of the note: how many steps were noted so far, length of the note, kind of the step. */
const [COUNT, LENGTH, KIND] = [0, 1, 2];
const KINDS = ['file', 'call'] as const;

/** A step that can hang: a read of a file, or a call of a vendor's library. */
export type StepKind = (typeof KINDS)[number];

/** The step that a thread is in. */
export interface Step {
  /** Grows with each step, so that a step that lasts differs from one that is repeated. */
  readonly number: number;
  readonly kind: StepKind;
  /** Path of the file; for a call the place of the device and the name of the function. */
  readonly path: string;
}

/** Reads files by another way than the calling thread's own system calls. Never takes long. */
export interface ForeignReads {
  /** At most `limit` bytes from the beginning of a file, or the errno name; `EHUNG` where a read does not come back. */
  read(path: string, limit: number): Buffer | string;
}

/**
 * Shared note between a probe's thread and its supervisor: which step the thread is in. A step that hangs in the kernel cannot report
 * itself. The supervisor finds it here, and keeps the thread's successor away from it.
 */
export class ReadGuard {
  readonly shared: SharedArrayBuffer;
  /** When present, files are read through it and not by the thread itself. */
  foreign: ForeignReads | undefined;
  readonly #note: Int32Array;
  readonly #bytes: Buffer;
  readonly #quarantined: readonly string[];

  /** `quarantined`: places whose calls must not be made, since an earlier one still hangs. */
  constructor(quarantined: readonly string[] = [], shared: SharedArrayBuffer = new SharedArrayBuffer(HEADER + CAPACITY)) {
    this.shared = shared;
    this.#note = new Int32Array(shared, 0, 3);
    this.#bytes = Buffer.from(shared, HEADER, CAPACITY);
    this.#quarantined = quarantined;
  }

  /** Begins a step. False, and no step has begun, when the path lies in a place where an earlier step hangs. */
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

  /** Whether a path lies in a place where an earlier step hangs. */
  isClosed(path: string): boolean {
    return this.#isQuarantined(path);
  }

  /** The step that the thread is in, as seen from another thread. */
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
 * The directory of the device that a sysfs path belongs to: when one of its files hangs, the others hang with it.
 * `…/class/infiniband/mlx5_0/ports/1/state` gives `…/class/infiniband/mlx5_0`; a path of another shape gives itself.
 */
export function deviceDirectory(path: string): string {
  return /^(.*?\/(?:class\/[^/]+|bus\/[^/]+\/devices)\/[^/]+)(?:\/|$)/.exec(path)?.[1] ?? path;
}
