const CAPACITY = 4_096;

/**
 * Shared note between a probe's thread and its supervisor: which path is being read right now. A read that hangs in the
 * kernel cannot report itself; the supervisor finds the path here, and the thread's successor is told to stay away from it.
 */
export class ReadGuard {
  readonly shared: SharedArrayBuffer;
  readonly #length: Int32Array;
  readonly #bytes: Buffer;
  readonly #quarantined: readonly string[];

  constructor(quarantined: readonly string[] = [], shared: SharedArrayBuffer = new SharedArrayBuffer(4 + CAPACITY)) {
    this.shared = shared;
    this.#length = new Int32Array(shared, 0, 1);
    this.#bytes = Buffer.from(shared, 4);
    this.#quarantined = quarantined;
  }

  /** False when the path lies where an earlier read still hangs. */
  enter(path: string): boolean {
    if (this.#quarantined.length > 0 && this.#quarantined.some((place) => path === place || path.startsWith(`${place}/`))) return false;
    const length = this.#bytes.write(path, 0, CAPACITY, 'utf8');
    Atomics.store(this.#length, 0, length);
    return true;
  }

  leave(): void {
    Atomics.store(this.#length, 0, 0);
  }

  /** The path under read at this moment, as seen from another thread. */
  underRead(): string | undefined {
    const length = Atomics.load(this.#length, 0);
    return length === 0 ? undefined : this.#bytes.toString('utf8', 0, length);
  }
}

/**
 * The directory of the device that a sysfs path belongs to: when one of its files hangs, the others hang with it.
 * `…/class/infiniband/mlx5_0/ports/1/state` gives `…/class/infiniband/mlx5_0`; a path of another shape gives itself.
 */
export function deviceDirectory(path: string): string {
  return /^(.*?\/(?:class\/[^/]+|bus\/[^/]+\/devices)\/[^/]+)(?:\/|$)/.exec(path)?.[1] ?? path;
}
