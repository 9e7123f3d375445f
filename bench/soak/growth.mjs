// Whether a figure keeps growing over the rows of a long run.

/** At most this many rows are the warm-up: pools fill, bounded lists reach their bounds, most code is compiled. */
const WARM_UP_ROWS = 10;

/**
 * Splits the rows after the warm-up into three parts and compares the first with the last. Memory grows when both its lowest and its
 * highest value rise by more than the limit, because a disturbance changes single rows by more than a slow growth does. A count grows when
 * each row of the last part is above all earlier rows. `memory` has the limit of each figure. Returns one line per figure that grows.
 */
export function growing(rows, { memory, counts }) {
  const warmUp = Math.min(WARM_UP_ROWS, Math.ceil(rows.length / 3));
  const steady = rows.slice(warmUp);
  const third = Math.floor(steady.length / 3);
  if (third === 0) return [`${rows.length} rows are too few to tell whether something grows`];
  const range = (part, name) => {
    const values = part.map((row) => row[name]).filter((value) => value !== undefined);
    return values.length === 0 ? undefined : [Math.min(...values), Math.max(...values)];
  };
  const [first, last, earlier] = [steady.slice(0, third), steady.slice(-third), steady.slice(0, -third)];
  const told = [];
  for (const [name, most] of Object.entries(memory)) {
    const [before, after] = [range(first, name), range(last, name)];
    if (before === undefined || after === undefined) continue;
    const rise = Math.min(after[0] - before[0], after[1] - before[1]);
    if (rise > most) told.push(`${name}: from ${before.join('-')} to ${after.join('-')}, more than ${most} above`);
  }
  for (const name of counts) {
    const [before, after] = [range(earlier, name), range(last, name)];
    if (before === undefined || after === undefined) continue;
    if (after[0] > before[1]) told.push(`${name}: at least ${after[0]} at the end, never more than ${before[1]} before`);
  }
  return told;
}
