import type { Clock } from '../host/clock.ts';
import { type DeviceDirectory, findPaths, mergePaths, type PathState } from './device-paths.ts';

const LOOK_MS = 1_000;

/** Looks again and again for the device nodes that some globs name, and remembers those that went away. */
export class PathWatch {
  readonly #globs: readonly string[];
  readonly #dev: DeviceDirectory;
  readonly #clock: Clock;
  #paths: readonly PathState[] = [];
  #cancel = (): void => {};

  constructor(globs: readonly string[], dev: DeviceDirectory, clock: Clock) {
    this.#globs = globs;
    this.#dev = dev;
    this.#clock = clock;
  }

  start(onChange: () => void): void {
    const look = (): void => {
      const next = mergePaths(this.#paths, findPaths(this.#globs, this.#dev));
      const changed = JSON.stringify(next) !== JSON.stringify(this.#paths);
      this.#paths = next;
      this.#cancel = this.#clock.after(LOOK_MS, look);
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
}
