import { type FSWatcher, statSync, watch } from 'node:fs';
import type { Clock } from '../../host/clock.ts';
import { type EntryWatch, watchEntry } from '../../host/fs/entry-watch.ts';
import { errnoName } from '../../host/fs/tree.ts';

/** A driver writes a claim's spec shortly before the kubelet lists the claim. The second time is for drivers that take longer to return. */
const DELAYS_MS = [50, 500];

/**
 * Calls `onChange` shortly after a file appeared in or vanished from a directory of CDI specs, because drivers write one for each claim. A
 * directory that is absent is looked for at each `look`.
 */
export function watchSpecs(directory: string, onChange: () => void, clock: Clock): EntryWatch {
  const watched = new SpecWatch(directory, onChange, clock);
  watched.look();
  return watched;
}

class SpecWatch implements EntryWatch {
  readonly #directory: string;
  readonly #onChange: () => void;
  readonly #clock: Clock;
  readonly #delays = new Map<number, () => void>();
  #watcher: FSWatcher | undefined;
  #identity: string | undefined;
  #isClosed = false;

  constructor(directory: string, onChange: () => void, clock: Clock) {
    this.#directory = directory;
    this.#onChange = onChange;
    this.#clock = clock;
  }

  look(): void {
    const identity = identityOf(this.#directory);
    if (this.#isClosed || (identity === this.#identity && this.#watcher !== undefined)) return;
    this.#stop();
    if (identity === undefined) return;
    try {
      this.#watcher = watch(this.#directory, { persistent: false }, () => this.#changed());
      this.#watcher.on('error', () => this.#stop());
      this.#identity = identity;
    } catch {
      // No inotify watch is left: claims are seen at the next refresh.
    }
  }

  close(): void {
    this.#isClosed = true;
    this.#stop();
    for (const cancel of this.#delays.values()) cancel();
  }

  /** A delay that runs is not begun again, so that a storm of writes causes few calls. */
  #changed(): void {
    for (const delayMs of DELAYS_MS) {
      if (this.#delays.has(delayMs)) continue;
      const cancel = this.#clock.after(delayMs, () => {
        this.#delays.delete(delayMs);
        this.#onChange();
      });
      this.#delays.set(delayMs, cancel);
    }
  }

  #stop(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }
}

function identityOf(directory: string): string | undefined {
  try {
    const { dev, ino } = statSync(directory);
    return `${dev}:${ino}`;
  } catch {
    return undefined;
  }
}

/** One admission writes the checkpoint once per container and resource; writes within this time count as one change. */
const SETTLE_MS = 30;

/** Calls `onChange` after the kubelet wrote its device checkpoint. The directory can be absent or be replaced later. */
export function watchCheckpoint(path: string, onChange: () => void, clock: Clock): EntryWatch {
  let cancel: (() => void) | undefined;
  const settle = (): void => {
    cancel ??= clock.after(SETTLE_MS, () => {
      cancel = undefined;
      onChange();
    });
  };
  const watch = watchEntry(path, () => fileMark(path), settle, clock);
  return {
    look: () => watch.look(),
    close: () => {
      watch.close();
      cancel?.();
    },
  };
}

/** Returns a text that changes with the file's metadata, without reading the file; the errno name when `stat` fails. */
function fileMark(path: string): string {
  try {
    const { dev, ino, mtimeMs, size } = statSync(path);
    return `${dev}:${ino}:${mtimeMs}:${size}`;
  } catch (error) {
    return errnoName(error);
  }
}
