// Whether a figure keeps growing over the rows of a long run.
import { median } from '../parts/measure.mjs';

/** At most this many rows are the warm-up: code is compiled, pools fill, bounded lists reach their bounds. */
const WARM_UP_ROWS = 10;
/** Memory may rise by this between the first and the last part. */
const MOST_RISE_MIB = 2;

/**
 * Splits the rows after the warm-up into three parts and compares the first with the last. Memory grows when the median rises by more than
 * the limit and each row of the last part is above each row of the first part. A count grows when its median in the last part is above
 * all earlier rows. Returns one line per figure that grows.
 */
export function growing(rows, { memory, counts }) {
  const warmUp = Math.min(WARM_UP_ROWS, Math.ceil(rows.length / 3));
  const steady = rows.slice(warmUp);
  const third = Math.floor(steady.length / 3);
  if (third === 0) return [`${rows.length} rows are too few to tell whether something grows`];
  const of = (part, name) => part.map((row) => row[name]).filter((value) => value !== undefined);
  const [first, last, earlier] = [steady.slice(0, third), steady.slice(-third), steady.slice(0, -third)];
  const told = [];
  for (const name of memory) {
    const [before, after] = [of(first, name), of(last, name)];
    const rise = median(after) - median(before);
    if (rise > MOST_RISE_MIB && Math.min(...after) > Math.max(...before))
      told.push(`${name}: the median rose by ${rise.toFixed(1)}, from ${median(before).toFixed(1)} to ${median(after).toFixed(1)}`);
  }
  for (const name of counts) {
    const [highest, after] = [Math.max(...of(earlier, name)), median(of(last, name))];
    if (after > highest) told.push(`${name}: ${after} at the end, never more than ${highest} before`);
  }
  return told;
}
