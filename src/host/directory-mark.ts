import { type Stats, statSync } from 'node:fs';

/** A directory that changed as lately as this may change again without a later time of change: clocks of file systems tick coarsely. */
const YOUNG_MS = 100;

/**
 * What a directory looked like when it was last looked at. Names that came, went or were replaced since then show in its times,
 * another directory under its name in its number. Not so in sysfs, where the times of a directory stand still.
 */
export class DirectoryMark {
  readonly #path: string;
  #device = 0;
  #inode = 0;
  #modifiedMs = 0;
  #changedMs = 0;
  #isYoung = true;

  constructor(path: string) {
    this.#path = path;
    this.renew();
  }

  /** Looks anew; true when something changed since the last look, or may have. */
  renew(): boolean {
    const now = statOf(this.#path);
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
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
