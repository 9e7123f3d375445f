import type { DeviceFiles } from '../kit/device-files.ts';

/** Returns the names in the directory that match, sorted by the numbers in them. */
export const numbered = (files: DeviceFiles, pattern: RegExp): readonly string[] =>
  files
    .names()
    .filter((name) => pattern.test(name))
    .sort(byNumbers);

/**
 * Orders names by the numbers in them: `dfl-fme.2` comes before `dfl-fme.10`. Comparison by locale gives the same order, but loads
 * some MiB of locale data into memory.
 */
export function byNumbers(a: string, b: string): number {
  const [left, right] = [a.split(/(\d+)/), b.split(/(\d+)/)];
  for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
    const [one, other] = [left[at] as string, right[at] as string];
    // Text and digits alternate, so the digits are at odd indices in both names.
    const difference = at % 2 === 1 ? Number(one) - Number(other) : byUnits(one, other);
    if (difference !== 0) return difference;
  }
  return left.length - right.length || byUnits(a, b);
}

/** Orders texts by UTF-16 code units. */
export function byUnits(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
