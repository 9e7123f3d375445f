import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { Clock } from '../clock.ts';

/** Time between two looks where the system cannot tell of changes. */
const UNTOLD_MS = 500;
/**
 * And where it does, for what it does not tell of. Each look wakes the process, which costs more than the look: whoever is awake at a
 * shorter interval anyway looks himself.
 */
const TOLD_MS = 15_000;

export interface EntryWatch {
  /** Looks now, and puts off the look that would have come by itself. */
  look(): void;
  close(): void;
}

/**
 * Watches one name in a directory. The directory is watched, since files and sockets are replaced by renaming, and while it is absent the
 * nearest one above it; a poll stands behind it, for directories that are moved, or on file systems without events. `fingerprint` is
 * what must differ for `onChange` to be called.
 */
export function watchEntry(path: string, fingerprint: () => string, onChange: () => void, clock: Clock): EntryWatch {
  const watch = new Watch(path, fingerprint, onChange, clock);
  watch.look();
  return watch;
}

class Watch implements EntryWatch {
  readonly #directory: string;
  readonly #fingerprint: () => string;
  readonly #onChange: () => void;
  readonly #clock: Clock;
  #watcher: FSWatcher | undefined;
  /** What the watcher is on. */
  #watched: WatchedPath | undefined;
  #last: string;
  #cancelLook = (): void => {};
  #closed = false;

  constructor(path: string, fingerprint: () => string, onChange: () => void, clock: Clock) {
    this.#directory = dirname(path);
    this.#fingerprint = fingerprint;
    this.#onChange = onChange;
    this.#clock = clock;
    this.#last = fingerprint();
  }

  look(): void {
    if (this.#closed) return;
    this.#follow();
    this.#compare();
    this.#lookLater();
  }

  close(): void {
    this.#closed = true;
    this.#cancelLook();
    this.#stopWatching();
  }

  #lookLater(): void {
    this.#cancelLook();
    if (!this.#closed) this.#cancelLook = this.#clock.after(this.#watcher === undefined ? UNTOLD_MS : TOLD_MS, () => this.look());
  }

  #compare(): void {
    const now = this.#fingerprint();
    if (now === this.#last) return;
    this.#last = now;
    this.#onChange();
  }

  /** The end of a directory itself is told as a renaming, like that of any name in it. */
  #told(event: string, name: string | null): void {
    if (this.#closed || this.#watched === undefined) return;
    const { path, identity, next } = this.#watched;
    const isOther = event === 'rename' && directoryIdentity(path) !== identity;
    if (isOther || (next !== undefined && (name === null || name === next))) this.look();
    else if (next === undefined) this.#compare();
  }

  /** Puts the watcher on the directory that is there now, or on the one in which it has to appear first. */
  #follow(): void {
    let present = nearest(this.#directory);
    // What appears before the watcher is on its place is not told.
    while (present.identity !== this.#watched?.identity && this.#watch(present)) present = nearest(this.#directory);
  }

  #watch(place: WatchedPath): boolean {
    this.#stopWatching();
    if (place.identity === undefined) return false;
    try {
      this.#watcher = watch(place.path, { persistent: false }, (event, name) => this.#told(event, name));
      this.#watcher.on('error', () => {
        this.#stopWatching();
        this.#lookLater();
      });
      this.#watched = place;
      return true;
    } catch {
      // Out of inotify watches, or the directory went away again: the looks go on.
      return false;
    }
  }

  #stopWatching(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
    this.#watched = undefined;
  }
}

interface WatchedPath {
  readonly path: string;
  /** Undefined where not even the root can be looked at. */
  readonly identity: string | undefined;
  /** The name that has to appear in it; undefined for the directory that was asked for. */
  readonly next?: string;
}

/** The directory, or the nearest one above it that is there. */
function nearest(directory: string): WatchedPath {
  let place: WatchedPath = { path: directory, identity: directoryIdentity(directory) };
  while (place.identity === undefined && dirname(place.path) !== place.path) {
    const path = dirname(place.path);
    place = { path, identity: directoryIdentity(path), next: basename(place.path) };
  }
  return place;
}

function directoryIdentity(directory: string): string | undefined {
  try {
    const { dev, ino, birthtimeNs } = statSync(directory, { bigint: true });
    return `${dev}:${ino}:${birthtimeNs}`;
  } catch {
    return undefined;
  }
}
