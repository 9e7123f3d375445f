import { readdir, rename } from 'node:fs/promises';
import { basename, dirname } from 'node:path';

/** A state is set aside once for each downgrade, so more names are a fault that repeats. */
const MOST_KEPT = 9;

/** `health.json.unused`, `health.json.unused-2`, … */
const keptName = (path: string, number: number): string => `${path}.unused${number === 1 ? '' : `-${number}`}`;

const NUMBERS = Array.from({ length: MOST_KEPT }, (_, at) => at + 1);

/** Files that agents set aside, by their numbers. None when the directory cannot be listed. */
export async function keptFiles(path: string): Promise<readonly string[]> {
  const present = new Set(await readdir(dirname(path)).catch(() => []));
  return NUMBERS.map((number) => keptName(path, number)).filter((kept) => present.has(basename(kept)));
}

/**
 * Gives a file that this agent cannot use a name under which no write destroys it, and which no kept file has; with {@link MOST_KEPT} of
 * them, the last one is replaced. Resolves to the new path; undefined when the file cannot be renamed.
 */
export async function setAside(path: string): Promise<string | undefined> {
  const taken = new Set(await keptFiles(path));
  const kept = NUMBERS.map((number) => keptName(path, number)).find((name) => !taken.has(name)) ?? keptName(path, MOST_KEPT);
  return await rename(path, kept).then(
    () => kept,
    () => undefined,
  );
}
