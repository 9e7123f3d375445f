import { type FSWatcher, statSync, watch } from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from './clock.ts';

/** Time between two looks where events are missed or the directory cannot be watched. */
const POLL_MS = 500;

export interface EntryWatch {
  close(): void;
}

/**
 * Watches one name in a directory. The directory is watched, since files and sockets are replaced by renaming; a slow poll
 * stands behind it, for directories that are absent, made anew or on file systems without events. `fingerprint` is what
 * must differ for `onChange` to be called.
 */
export function watchEntry(path: string, fingerprint: () => string, onChange: () => void, clock: Clock): EntryWatch {
  const directory = dirname(path);
  let watcher: FSWatcher | undefined;
  let watched: string | undefined;
  let last = fingerprint();
  let closed = false;
  let cancelPoll = (): void => {};

  const look = (): void => {
    if (closed) return;
    const now = fingerprint();
    if (now === last) return;
    last = now;
    onChange();
  };

  const stopWatching = (): void => {
    watcher?.close();
    watcher = undefined;
    watched = undefined;
  };

  const watchDirectory = (): void => {
    const present = directoryIdentity(directory);
    if (present === watched) return;
    stopWatching();
    if (present === undefined) return;
    try {
      watcher = watch(directory, { persistent: false }, look);
      watcher.on('error', stopWatching);
      watched = present;
    } catch {
      // Out of inotify watches, or the directory went away again: the poll goes on.
    }
  };

  const poll = (): void => {
    watchDirectory();
    look();
    if (!closed) cancelPoll = clock.after(POLL_MS, poll);
  };

  poll();
  return {
    close: () => {
      closed = true;
      cancelPoll();
      stopWatching();
    },
  };
}

function directoryIdentity(directory: string): string | undefined {
  try {
    const { dev, ino, birthtimeNs } = statSync(directory, { bigint: true });
    return `${dev}:${ino}:${birthtimeNs}`;
  } catch {
    return undefined;
  }
}
