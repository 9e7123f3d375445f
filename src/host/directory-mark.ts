import { closeSync, fstatSync, openSync, type Stats, statSync } from 'node:fs';
import type { DirectoryState, NativeFiles, NativeMemory } from './native-files.ts';

/** A directory that changed as lately as this may change again without a later time of change: clocks of file systems tick coarsely. */
const YOUNG_MS = 100;

export interface MarkSettings {
  /**
   * The directory is kept open, which makes looking cheaper. It then shows when it is itself renamed or removed, but not when a
   * directory above it is: that one needs a mark of its own.
   */
  readonly isKept?: boolean;
  /** The cheap way to look, where there is one. */
  readonly native?: NativeFiles | undefined;
}

/**
 * What a directory looked like when it was last looked at. Names that came, went or were replaced since then show in its times,
 * another directory under its name in its number. Not so in sysfs, where the times of a directory stand still.
 */
export class DirectoryMark {
  readonly #path: string;
  readonly #native: { readonly files: NativeFiles; readonly state: DirectoryState; readonly place: number | NativeMemory } | undefined;
  #descriptor: number | undefined;
  #seen: Seen = ABSENT;
  #isYoung = true;

  constructor(path: string, { isKept = false, native }: MarkSettings = {}) {
    this.#path = path;
    this.#descriptor = isKept ? opened(path) : undefined;
    this.#native = native && { files: native, state: native.newState(), place: this.#descriptor ?? native.path(path) };
    this.renew();
  }

  /** Looks anew; true when something changed since the last look, or may have. */
  renew(): boolean {
    const differs = this.#native === undefined ? this.#look() : this.#native.files.look(this.#native.place, this.#native.state);
    if (!differs && !this.#isYoung) return false;
    const changedAtMs = this.#native?.files.changedAtMs() ?? Math.max(this.#seen.mtimeMs, this.#seen.ctimeMs);
    this.#isYoung = Math.abs(Date.now() - changedAtMs) < YOUNG_MS;
    return true;
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  /** As {@link NativeFiles.look}. */
  #look(): boolean {
    const before = this.#seen;
    const now = this.#stat();
    this.#seen = now;
    return now.ino !== before.ino || now.mtimeMs !== before.mtimeMs || now.ctimeMs !== before.ctimeMs || now.dev !== before.dev;
  }

  #stat(): Seen {
    try {
      return (this.#descriptor === undefined ? statSync(this.#path, { throwIfNoEntry: false }) : fstatSync(this.#descriptor)) ?? ABSENT;
    } catch {
      return ABSENT;
    }
  }
}

type Seen = Pick<Stats, 'dev' | 'ino' | 'mtimeMs' | 'ctimeMs'>;

const ABSENT: Seen = { dev: 0, ino: 0, mtimeMs: 0, ctimeMs: 0 };

function opened(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch {
    return undefined;
  }
}
