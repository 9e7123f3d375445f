import { closeSync, openSync, readdirSync, readSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { hours } from '../model/duration.ts';

/** Where the last messages of a kernel that crashed are: pstore, and the folder into which systemd moves them at the next start. */
export const crashFolders = (sysfs: string): readonly string[] => [
  join(sysfs, 'fs/pstore'),
  join(dirname(sysfs), 'var/lib/systemd/pstore'),
];

/** Only an incident soon after the start can follow from a crash, and older files are of other crashes. */
const AFTER_START_MS = hours(1);
const BEFORE_START_MS = hours(24);
const MOST_FILES = 64;
const MOST_BYTES = 1_048_576;
/** systemd makes a folder for each crash, and on some machines folders in it. */
const DEEPEST = 3;

/** Lines of the kernel that crashed before the present start, with its own time stamps: `[ 8130.123456] …`. */
export function crashLines(folders: readonly string[], bootTimeMs: number | undefined, nowMs: number): readonly string[] {
  if (bootTimeMs === undefined || nowMs - bootTimeMs > AFTER_START_MS) return [];
  const files = folders.flatMap((folder) => filesIn(folder, DEEPEST)).slice(0, MOST_FILES);
  const recent = files.filter((path) => (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) > bootTimeMs - BEFORE_START_MS);
  // systemd keeps the parts and a file of all of them, so a line can be there twice. A file has the last part first.
  const lines = new Set(recent.flatMap((path) => readLines(path)));
  return [...lines].sort((a, b) => stampOf(a) - stampOf(b));
}

function filesIn(folder: string, depth: number): readonly string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) return depth > 1 ? filesIn(path, depth - 1) : [];
      return entry.isFile() && /^dmesg.*(?<!\.z)$/.test(entry.name) ? [path] : [];
    });
  } catch {
    return [];
  }
}

function readLines(path: string): readonly string[] {
  try {
    const file = openSync(path, 'r');
    try {
      const bytes = Buffer.alloc(MOST_BYTES);
      const text = bytes.toString('utf8', 0, readSync(file, bytes, 0, MOST_BYTES, 0));
      return text.split('\n').flatMap((line) => /^(?:<\d+>)?(\[ *\d+\.\d+\].*)$/.exec(line)?.[1] ?? []);
    } finally {
      closeSync(file);
    }
  } catch {
    return [];
  }
}

const stampOf = (line: string): number => Number(/\d+\.\d+/.exec(line)?.[0]);
