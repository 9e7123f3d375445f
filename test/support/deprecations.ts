import { compareVersions } from './changelog.ts';

/** Minor versions for which what is marked stays: what 0.2 marks is in 0.3 and 0.4, and gone in 0.5. */
const STAYS_FOR = 2;

/** `0.2` of `0.2.7`. */
export const minorOf = (version: string): string => version.split('.').slice(0, 2).join('.');

/**
 * Minor versions after `since` up to the one that is being worked on. `released`: names of released versions, such as `0.2.7`; `working`: what
 * the program calls itself.
 */
export function minorsAfter(since: string, released: readonly string[], working: string): number {
  return new Set([...released, working].map(minorOf).filter((minor) => compareVersions(minor, since) > 0)).size;
}

/** Whether what `since` marked has stayed long enough: it may be removed, and must be. */
export const isOver = (since: string, released: readonly string[], working: string): boolean =>
  minorsAfter(since, released, working) > STAYS_FOR;

/** What is wrong with a mark; undefined when nothing is. */
export function markProblem(since: string, released: readonly string[], working: string): string | undefined {
  if (!/^(?:0|[1-9]\d*)\.(?:0|[1-9]\d*)$/.test(since)) return `"${since}" is no minor version such as 0.2`;
  const known = [...released, working].map(minorOf);
  // After a release the next version is not in package.json yet.
  const [major = 0, minor = 0] = minorOf(working).split('.').map(Number);
  const isNext = [`${major}.${minor + 1}`, `${major + 1}.0`].includes(since);
  if (!known.includes(since) && !isNext) return `there is no version ${since}`;
  return isOver(since, released, working) ? `it was marked in ${since}, stayed for ${STAYS_FOR} minor versions, and must go` : undefined;
}
