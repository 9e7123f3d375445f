import { closeSync, fstatSync, openSync, type Stats, statSync } from 'node:fs';

/** A directory that changed as lately as this may change again without a later time of change: clocks of file systems tick coarsely. */
const YOUNG_MS = 100;

/**
 * What a directory looked like when it was last looked at. Names that came, went or were replaced since then show in its times,
 * another directory under its name in its number. Not so in sysfs, where the times of a directory stand still.
 */
export class DirectoryMark {
  readonly #path: string;
  #descriptor: number | undefined;
  #device = 0;
  #inode = 0;
  #modifiedMs = 0;
  #changedMs = 0;
  #isYoung = true;

  /**
   * `isKept`: the directory is kept open, which makes looking several times cheaper. It then shows when it is itself renamed or
   * removed, but not when a directory above it is: that one needs a mark of its own.
   */
  constructor(path: string, isKept = false) {
    this.#path = path;
    this.#descriptor = isKept ? opened(path) : undefined;
    this.renew();
  }

  /** Looks anew; true when something changed since the last look, or may have. */
  renew(): boolean {
    const now = this.#stat();
    const { dev = 0, ino = 0, mtimeMs = 0, ctimeMs = 0 } = now ?? {};
    const isSame =
      ino === this.#inode && mtimeMs === this.#modifiedMs && ctimeMs === this.#changedMs && dev === this.#device && !this.#isYoung;
    if (isSame) return false;
    this.#device = dev;
    this.#inode = ino;
    this.#modifiedMs = mtimeMs;
    this.#changedMs = ctimeMs;
    this.#isYoung = now !== undefined && Math.abs(Date.now() - Math.max(mtimeMs, ctimeMs)) < YOUNG_MS;
    return true;
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  #stat(): Stats | undefined {
    try {
      return this.#descriptor === undefined ? statSync(this.#path, { throwIfNoEntry: false }) : fstatSync(this.#descriptor);
    } catch {
      return undefined;
    }
  }
}

function opened(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch {
    return undefined;
  }
}
