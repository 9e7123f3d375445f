import type { Clock } from '../host/clock.ts';
import { type EntryWatch, watchEntry } from '../host/fs/entry-watch.ts';
import { fileMark } from './file-mark.ts';

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
