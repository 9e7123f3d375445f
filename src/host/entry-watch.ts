import { type FSWatcher, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from './clock.ts';

/** Time between two looks where nothing tells of changes: the directory is absent or cannot be watched. */
const UNTOLD_MS = 500;
/** And where the system does. Each look wakes the process, which costs more than the look; it is for what the system does not tell of. */
const TOLD_MS = 10_000;

export interface EntryWatch {
  close(): void;
}

/**
 * Watches one name in a directory. The directory is watched, since files and sockets are replaced by renaming; a poll stands behind
 * it, for directories that are absent, made anew or moved, or on file systems without events. `fingerprint` is what must differ for
 * `onChange` to be called.
 */
export function watchEntry(path: string, fingerprint: () => string, onChange: () => void, clock: Clock): EntryWatch {
  const watch = new Watch(path, fingerprint, onChange, clock);
  watch.poll();
  return watch;
}

class Watch implements EntryWatch {
  readonly #directory: string;
  readonly #fingerprint: () => string;
  readonly #onChange: () => void;
  readonly #clock: Clock;
  #watcher: FSWatcher | undefined;
  /** Identity of the directory that the watcher is on. */
  #watched: string | undefined;
  #last: string;
  #cancelPoll = (): void => {};
  #closed = false;

  constructor(path: string, fingerprint: () => string, onChange: () => void, clock: Clock) {
    this.#directory = dirname(path);
    this.#fingerprint = fingerprint;
    this.#onChange = onChange;
    this.#clock = clock;
    this.#last = fingerprint();
  }

  poll(): void {
    this.#follow();
    this.#look();
    this.#pollLater();
  }

  close(): void {
    this.#closed = true;
    this.#cancelPoll();
    this.#stopWatching();
  }

  #pollLater(): void {
    this.#cancelPoll();
    if (!this.#closed) this.#cancelPoll = this.#clock.after(this.#watcher === undefined ? UNTOLD_MS : TOLD_MS, () => this.poll());
  }

  #look(): void {
    if (this.#closed) return;
    const now = this.#fingerprint();
    if (now === this.#last) return;
    this.#last = now;
    this.#onChange();
  }

  /** The end of the directory itself is told as a renaming, like that of any name in it. */
  #told(event: string): void {
    if (this.#closed) return;
    if (event === 'rename' && directoryIdentity(this.#directory) !== this.#watched) this.poll();
    else this.#look();
  }

  /** Puts the watcher on the directory that is there now. */
  #follow(): void {
    const present = directoryIdentity(this.#directory);
    if (present === this.#watched) return;
    this.#stopWatching();
    if (present === undefined) return;
    try {
      this.#watcher = watch(this.#directory, { persistent: false }, (event) => this.#told(event));
      this.#watcher.on('error', () => {
        this.#stopWatching();
        this.#pollLater();
      });
      this.#watched = present;
    } catch {
      // Out of inotify watches, or the directory went away again: the poll goes on.
    }
  }

  #stopWatching(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#watched = undefined;
  }
}

function directoryIdentity(directory: string): string | undefined {
  try {
    const { dev, ino, birthtimeNs } = statSync(directory, { bigint: true });
    return `${dev}:${ino}:${birthtimeNs}`;
  } catch {
    return undefined;
  }
}
