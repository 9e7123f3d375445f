import { readdir, rename } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { isSpecial } from './replace-file.ts';

/** Each downgrade keeps one file. More files come from a fault that repeats. */
const MOST_KEPT = 9;

/** `health.json.unused`, `health.json.unused-2`, … */
const keptName = (path: string, number: number): string => `${path}.unused${number === 1 ? '' : `-${number}`}`;

const NUMBERS = Array.from({ length: MOST_KEPT }, (_, at) => at + 1);

/**
 * Renames a file that this agent cannot use, so that no later write destroys it. No other kept file has the new name. When there are
 * {@link MOST_KEPT} of them, it replaces the last one. Resolves to the new path; undefined when the file cannot be renamed, as a device, a pipe
 * or a socket, which is none of the agent's.
 */
export async function setAside(path: string): Promise<string | undefined> {
  if (await isSpecial(path)) return undefined;
  const taken = new Set(await readdir(dirname(path)).catch(() => []));
  const kept = NUMBERS.map((number) => keptName(path, number)).find((name) => !taken.has(basename(name))) ?? keptName(path, MOST_KEPT);
  return await rename(path, kept).then(
    () => kept,
    () => undefined,
  );
}
