import type { Clock } from '../host/clock.ts';
import { type DeviceDirectory, findPaths, mergePaths, type PathState } from './device-paths.ts';

const LOOK_MS = 1_000;

export interface PathWatchParts {
  readonly globs: readonly string[];
  readonly dev: DeviceDirectory;
  readonly clock: Clock;
  /** How long a node that went away is remembered. Some names, those of USB devices for one, never come back. */
  readonly retentionMs: number;
}

/** Looks again and again for the device nodes that some globs name, and remembers those that went away. */
export class PathWatch {
  readonly #parts: PathWatchParts;
  /** When a node that is not there was last seen, by the monotonic clock. */
  readonly #seenMs = new Map<string, number>();
  #paths: readonly PathState[] = [];
  #cancel = (): void => {};

  constructor(parts: PathWatchParts) {
    this.#parts = parts;
  }

  start(onChange: () => void): void {
    const look = (): void => {
      const next = this.#look();
      const changed = JSON.stringify(next) !== JSON.stringify(this.#paths);
      this.#paths = next;
      this.#cancel = this.#parts.clock.after(LOOK_MS, look);
      if (changed) onChange();
    };
    look();
  }

  paths(): readonly PathState[] {
    return this.#paths;
  }

  stop(): void {
    this.#cancel();
  }

  #look(): readonly PathState[] {
    const { globs, dev, clock, retentionMs } = this.#parts;
    const before = dev.shortages;
    const found = findPaths(globs, dev);
    // What could not be looked into is not gone.
    if (dev.shortages !== before) return this.#paths;
    const now = clock.monotonic();
    for (const path of found) this.#seenMs.set(path, now);
    for (const [path, seenMs] of this.#seenMs) if (now - seenMs >= retentionMs) this.#seenMs.delete(path);
    return mergePaths(
      this.#paths.filter(({ path }) => this.#seenMs.has(path)),
      found,
    );
  }
}
