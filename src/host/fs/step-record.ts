/** Longest path in bytes. */
const CAPACITY = 4_096;
/** Indexes of the shared header: number of steps so far, and where the current one is written; 0 without a step. */
const [COUNT, AT] = [0, 1];
const HEADER = 8;
/** Before each path: the kind of the step, and the length of the path in two bytes. */
const ENTRY = 3;
/** The first entry is for the steps that do not come again. It is followed by the files that are read again and again. */
const FIRST_PLACE = HEADER + ENTRY + CAPACITY;
/** Enough for 40,000 paths of sysfs. The system gives memory only for what is written. */
const SIZE = 4 << 20;
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

/** Where the shared memory has the path of a file that is read again and again; absent before the first such read. */
export interface StepPlace {
  stepAt?: number;
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
  #end = FIRST_PLACE;
  readonly #quarantined: readonly string[];

  /** `quarantined`: places that calls must not touch, because an earlier call still hangs. */
  constructor(quarantined: readonly string[] = [], shared: SharedArrayBuffer = new SharedArrayBuffer(SIZE)) {
    this.shared = shared;
    this.#note = new Int32Array(shared, 0, 2);
    this.#bytes = Buffer.from(shared);
    this.#quarantined = quarantined;
  }

  /**
   * Begins a step. Returns false without beginning it when the path lies in a quarantined place. `place`: of this path, which comes again. It
   * is then written once, because writing a path costs as much as reading a file.
   */
  enter(path: string, kind: StepKind = 'file', place?: StepPlace): boolean {
    if (this.#isQuarantined(path)) return false;
    const at = place?.stepAt ?? this.#write(path, kind, place);
    Atomics.add(this.#note, COUNT, 1);
    Atomics.store(this.#note, AT, at);
    return true;
  }

  leave(): void {
    Atomics.store(this.#note, AT, 0);
  }

  #write(path: string, kind: StepKind, place: StepPlace | undefined): number {
    const isKept = place !== undefined && this.#end + ENTRY + CAPACITY <= SIZE;
    const at = isKept ? this.#end : HEADER;
    const length = this.#bytes.write(path, at + ENTRY, CAPACITY, 'utf8');
    this.#bytes.writeUInt8(KINDS.indexOf(kind), at);
    this.#bytes.writeUInt16LE(length, at + 1);
    if (isKept) {
      place.stepAt = at;
      this.#end = at + ENTRY + length;
    }
    return at;
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
    const at = Atomics.load(this.#note, AT);
    if (at === 0) return undefined;
    const [kind, begin] = [KINDS[this.#bytes.readUInt8(at)] ?? 'file', at + ENTRY];
    const path = this.#bytes.toString('utf8', begin, begin + this.#bytes.readUInt16LE(at + 1));
    return { number: Atomics.load(this.#note, COUNT), kind, path };
  }

  #isQuarantined(path: string): boolean {
    return this.#quarantined.length > 0 && this.#quarantined.some((place) => path === place || path.startsWith(`${place}/`));
  }
}

/**
 * The directory of the device that a sysfs path belongs to: when one of its files hangs, the other files hang too.
 * `…/class/net/eth0/statistics/rx_bytes` gives `…/class/net/eth0`, and a device below `bus` the same way; any other path is returned unchanged.
 */
export function deviceDirectory(path: string): string {
  return /^(.*?\/(?:class\/[^/]+|bus\/[^/]+\/devices)\/[^/]+)(?:\/|$)/.exec(path)?.[1] ?? path;
}
