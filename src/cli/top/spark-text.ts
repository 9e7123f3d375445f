import { highest } from '../../board/spark.ts';
import type { Trend } from '../../board/trend.ts';

/** Signs for one to eight eighths of a cell's height. */
const LEVELS = '▁▂▃▄▅▆▇█';

/** A trend in `cells` signs, the present at the right end. What was not read is a gap, and 0 the lowest sign. `full`: the value of the highest one. */
export function sparkText(trend: Trend, full: number | undefined, cells: number): string {
  const last = trend.slice(-cells);
  const most = full ?? highest(last);
  const sign = (value: number | null): string => {
    if (value === null) return ' ';
    const share = most > 0 ? Math.max(0, Math.min(1, value / most)) : 0;
    return LEVELS[Math.min(LEVELS.length - 1, Math.floor(share * LEVELS.length))] as string;
  };
  return last.map(sign).join('').padStart(cells);
}

/** The whole trend in `cells` values, each the mean of what was read in its time. */
export function shrunk(trend: Trend, cells: number): Trend {
  return Array.from({ length: cells }, (_none, cell) => {
    const [from, until] = [cell, cell + 1].map((at) => Math.round((at * trend.length) / cells));
    const read = trend.slice(from, until).filter((value) => value !== null);
    return read.length === 0 ? null : read.reduce((sum, value) => sum + value, 0) / read.length;
  });
}
