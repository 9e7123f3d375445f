import { statSync } from 'node:fs';
import type { Clock } from '../../host/clock.ts';
import { type EntryWatch, watchEntry } from '../../host/fs/entry-watch.ts';
import { errnoName } from '../../host/fs/tree.ts';

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
