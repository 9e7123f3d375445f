import { statSync } from 'node:fs';
import type { Clock } from '../host/clock.ts';
import { errnoName } from '../host/fs/tree.ts';

/** Times of files are taken from a clock that stands still for some milliseconds: two changes within that time look like one. */
const SETTLED_MS = 1_000;

/** What tells one state of a file or directory from another without reading it; of one that cannot be looked at, the errno name. */
export function fileMark(path: string): string {
  return markOf(path).text;
}

/** The same where the next change is certain to give another mark; undefined for what has just changed or cannot be looked at. */
export function settledMark(path: string, clock: Clock): string | undefined {
  const { text, changedMs } = markOf(path);
  return changedMs !== undefined && clock.now() - changedMs > SETTLED_MS ? text : undefined;
}

function markOf(path: string): { readonly text: string; readonly changedMs?: number } {
  try {
    // The number has more digits than the clock of the file system ticks.
    const { dev, ino, mtimeMs, size } = statSync(path);
    return { text: `${dev}:${ino}:${mtimeMs}:${size}`, changedMs: mtimeMs };
  } catch (error) {
    return { text: errnoName(error) };
  }
}
