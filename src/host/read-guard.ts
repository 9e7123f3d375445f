const CAPACITY = 4_096;
/** Room for the names of some ten thousand files that are read again and again; more are noted the slow way. */
const NAMES = 1_048_576;
const HEADER = 8;

/**
 * Shared note between a probe's thread and its supervisor: which path is being read right now. A read that hangs in the
 * kernel cannot report itself; the supervisor finds the path here, and the thread's successor is told to stay away from it.
 *
 * A file that is read at every turn gets a number once ({@link name}); noting the number costs nanoseconds.
 */
export class ReadGuard {
  readonly shared: SharedArrayBuffer;
  /** Length of the path under read, and number of the named file under read; 0 each when there is none. */
  readonly #note: Int32Array;
  readonly #bytes: Buffer;
  readonly #names: Buffer;
  readonly #quarantined: readonly string[];
  readonly #named = new Map<string, number>();
  #nextName = 0;

  constructor(quarantined: readonly string[] = [], shared: SharedArrayBuffer = new SharedArrayBuffer(HEADER + CAPACITY + NAMES)) {
    this.shared = shared;
    this.#note = new Int32Array(shared, 0, 2);
    this.#bytes = Buffer.from(shared, HEADER, CAPACITY);
    this.#names = Buffer.from(shared, HEADER + CAPACITY, NAMES);
    this.#quarantined = quarantined;
  }

  /** False when the path lies where an earlier read still hangs. */
  enter(path: string): boolean {
    if (this.#isQuarantined(path)) return false;
    const length = this.#bytes.write(path, 0, CAPACITY, 'utf8');
    Atomics.store(this.#note, 0, length);
    return true;
  }

  leave(): void {
    Atomics.store(this.#note, 0, 0);
  }

  /** A number for {@link enterNamed}; undefined when there is no room for the name, or the path must not be read. */
  name(path: string): number | undefined {
    const known = this.#named.get(path);
    if (known !== undefined) return known;
    const start = this.#nextName;
    const length = Buffer.byteLength(path);
    if (start + 2 + length > NAMES || length > CAPACITY || this.#isQuarantined(path)) return undefined;
    this.#names.writeUInt16LE(length, start);
    this.#names.write(path, start + 2, 'utf8');
    this.#nextName = start + 2 + length;
    this.#named.set(path, start + 1);
    return start + 1;
  }

  enterNamed(name: number): void {
    Atomics.store(this.#note, 1, name);
  }

  leaveNamed(): void {
    Atomics.store(this.#note, 1, 0);
  }

  /** The path under read at this moment, as seen from another thread. */
  underRead(): string | undefined {
    const length = Atomics.load(this.#note, 0);
    if (length > 0) return this.#bytes.toString('utf8', 0, length);
    const name = Atomics.load(this.#note, 1);
    if (name === 0) return undefined;
    return this.#names.toString('utf8', name + 1, name + 1 + this.#names.readUInt16LE(name - 1));
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
