import { type FSWatcher, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { type Clock, untilNext } from '../clock.ts';

/** Poll interval without file system events. */
const POLL_MS = 500;
/**
 * Poll interval with events, for changes that cause no event. It is long because waking the process costs more than a check. A caller that
 * runs more often calls `look` itself.
 */
const POLL_WITH_EVENTS_MS = 15_000;

export interface EntryWatch {
  /** Checks now and restarts the poll interval. */
  look(): void;
  close(): void;
}

/**
 * Watches one name in a directory. It watches the directory, because files and sockets are replaced by renaming. While the directory is
 * absent, it watches the nearest existing parent. It also polls, for moved directories and for file systems without events. It calls
 * `onChange` when the result of `fingerprint` changes.
 */
export function watchEntry(path: string, fingerprint: () => string, onChange: () => void, clock: Clock): EntryWatch {
  const watch = new Watch(path, fingerprint, onChange, clock);
  watch.look();
  return watch;
}

class Watch implements EntryWatch {
  readonly #directory: string;
  readonly #name: string;
  readonly #fingerprint: () => string;
  readonly #onChange: () => void;
  readonly #clock: Clock;
  #watcher: FSWatcher | undefined;
  /** Directory of the watcher. */
  #watched: WatchedPath | undefined;
  #last: string;
  #cancelLook = (): void => {};
  #closed = false;

  constructor(path: string, fingerprint: () => string, onChange: () => void, clock: Clock) {
    this.#directory = dirname(path);
    this.#name = basename(path);
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
    if (this.#closed) return;
    const delayMs = this.#watcher === undefined ? POLL_MS : untilNext(this.#clock, POLL_WITH_EVENTS_MS);
    this.#cancelLook = this.#clock.after(delayMs, () => this.look());
  }

  #compare(): void {
    const now = this.#fingerprint();
    if (now === this.#last) return;
    this.#last = now;
    this.#onChange();
  }

  /**
   * Handles an event. Node reports the removal of the directory itself as `rename` of the directory's own name. Events of other names
   * cost no system call, because every writer of the directory can cause any number of them.
   */
  #received(event: string, name: string | null): void {
    if (this.#closed || this.#watched === undefined) return;
    const { path, identity, next } = this.#watched;
    if (name !== null && name !== (next ?? this.#name) && name !== basename(path)) return;
    const isOther = event === 'rename' && directoryIdentity(path) !== identity;
    if (isOther || (next !== undefined && (name === null || name === next))) this.look();
    else if (next === undefined) this.#compare();
  }

  /** Moves the watcher to the directory, or to the parent in which it must appear first. */
  #follow(): void {
    let present = nearest(this.#directory);
    // A directory that appears before the watcher starts causes no event, so the loop checks again.
    while (present.identity !== this.#watched?.identity && this.#watch(present)) present = nearest(this.#directory);
  }

  #watch(place: WatchedPath): boolean {
    this.#stopWatching();
    if (place.identity === undefined) return false;
    try {
      this.#watcher = watch(place.path, { persistent: false }, (event, name) => this.#received(event, name));
      this.#watcher.on('error', () => {
        this.#stopWatching();
        this.#lookLater();
      });
      this.#watched = place;
      return true;
    } catch {
      // No inotify watch is left, or the directory was removed again: polling continues.
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
  /** Undefined when even the root directory is inaccessible. */
  readonly identity: string | undefined;
  /** The name that must appear in it; undefined for the requested directory itself. */
  readonly next?: string;
}

/** The directory, or its nearest existing parent. */
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
