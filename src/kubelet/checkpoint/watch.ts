import { statSync } from 'node:fs';
import type { Clock } from '../../host/clock.ts';
import { type EntryWatch, watchEntry } from '../../host/fs/entry-watch.ts';
import { errnoName } from '../../host/fs/tree.ts';

/** One admission writes the checkpoint once per container and resource: what comes within this time is one change. */
const SETTLE_MS = 30;

/** Tells that the kubelet has written its device checkpoint. The directory may be absent, or be made anew later. */
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

/** What tells one state of a file from another without reading it; of one that cannot be looked at, the errno name. */
function fileMark(path: string): string {
  try {
    const { dev, ino, mtimeMs, size } = statSync(path);
    return `${dev}:${ino}:${mtimeMs}:${size}`;
  } catch (error) {
    return errnoName(error);
  }
}
