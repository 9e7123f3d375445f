const MOST_LINES = 200;

/** Series of a page without comments, sorted. */
export function seriesOf(page: string): readonly string[] {
  return page
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .sort();
}

/** Lines that differ, `-` expected and `+` found; empty when the pages are equal. Comments do not count. */
export function pageDifference(expected: string, found: string): readonly string[] {
  const [before, after] = [seriesOf(expected), seriesOf(found)];
  const [inBefore, inAfter] = [new Set(before), new Set(after)];
  const lines = [
    ...before.filter((line) => !inAfter.has(line)).map((line) => `-${line}`),
    ...after.filter((line) => !inBefore.has(line)).map((line) => `+${line}`),
  ];
  lines.sort((a, b) => (a.slice(1) < b.slice(1) ? -1 : 1));
  return lines.length <= MOST_LINES ? lines : [...lines.slice(0, MOST_LINES), `… ${lines.length - MOST_LINES} more lines`];
}
