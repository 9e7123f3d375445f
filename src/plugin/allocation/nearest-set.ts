/** Beyond this many sets, the best one is approached instead of proven: 16 devices, 8 of them, are 12,870. */
const MOST_SETS = 13_000;
const MOST_SEEDS = 64;
/** Looks at places, of all first choices together: nobody may hold the event loop for longer than some tens of milliseconds. */
const MOST_LOOKS = 2_000_000;

interface Best {
  set: readonly number[];
  inside: number;
  cut: number;
}

/**
 * The `size` of `count` places, `must` included, that are nearest to each other: largest sum of nearness over all pairs; among equals
 * the one that is least near to what stays behind, so that good groups remain whole; among equals the first. Indices, ascending.
 */
export function nearestSet(count: number, must: readonly number[], size: number, near: (a: number, b: number) => number): number[] {
  const matrix = Array.from({ length: count }, (_, a) => Float64Array.from({ length: count }, (_, b) => (a === b ? 0 : near(a, b))));
  const sums = matrix.map((row) => row.reduce((sum, value) => sum + value, 0));
  const free = Array.from({ length: count }, (_, at) => at).filter((at) => !must.includes(at));
  const missing = size - must.length;
  if (missing <= 0) return [...must].sort((a, b) => a - b);
  const best = isCountable(free.length, missing)
    ? proven(matrix, sums, must, free, missing)
    : approached(matrix, sums, must, free, missing);
  return [...best.set].sort((a, b) => a - b);
}

function isCountable(n: number, k: number): boolean {
  let sets = 1;
  for (let at = 0; at < Math.min(k, n - k); at += 1) {
    sets = (sets * (n - at)) / (at + 1);
    if (sets > MOST_SETS) return false;
  }
  return true;
}

type Matrix = readonly Float64Array[];

function proven(matrix: Matrix, sums: readonly number[], must: readonly number[], free: readonly number[], missing: number): Best {
  let best: Best | undefined;
  const set = [...must];
  const extend = (from: number, left: number, inside: number, reach: number): void => {
    if (left === 0) {
      best = better(best, { set, inside, cut: reach - 2 * inside });
      return;
    }
    for (let at = from; at <= free.length - left; at += 1) {
      const place = free[at] as number;
      const gain = gainOf(matrix, place, set);
      set.push(place);
      extend(at + 1, left - 1, inside + gain, reach + (sums[place] as number));
      set.pop();
    }
  };
  extend(0, missing, insideOf(matrix, must), total(must, sums));
  return best as unknown as Best;
}

/** From each of several first choices on, always the place that adds most. */
function approached(matrix: Matrix, sums: readonly number[], must: readonly number[], free: readonly number[], missing: number): Best {
  let best: Best | undefined;
  const seeds = Math.max(1, Math.min(MOST_SEEDS, Math.floor(MOST_LOOKS / (missing * free.length))));
  for (const seed of must.length > 0 ? [undefined] : free.slice(0, seeds)) {
    const set = grown(matrix, sums, seed === undefined ? must : [seed], free, must.length + missing);
    const inside = insideOf(matrix, set);
    best = better(best, { set, inside, cut: total(set, sums) - 2 * inside });
  }
  return best as Best;
}

/** Plain loops over numbers: hundreds of places, replicas of devices, are gone through for each one that is chosen. */
function grown(matrix: Matrix, sums: readonly number[], first: readonly number[], free: readonly number[], size: number): number[] {
  const set = [...first];
  const gains = Float64Array.from(matrix, (_, place) => gainOf(matrix, place, set));
  const rest = Int32Array.from(free.filter((place) => !set.includes(place)));
  for (let left = rest.length; set.length < size; left -= 1) {
    const at = bestAt(rest, left, gains, sums);
    const next = rest[at] as number;
    set.push(next);
    rest[at] = rest[left - 1] as number;
    const row = matrix[next] as Float64Array;
    for (let place = 0; place < gains.length; place += 1) gains[place] = (gains[place] as number) + (row[place] as number);
  }
  return set;
}

/** Among the first `left` of the rest: the place that adds most, among equals the one that is least near to all, then the first. */
function bestAt(rest: Int32Array, left: number, gains: Float64Array, sums: readonly number[]): number {
  let best = 0;
  let [place, gain, sum] = [-1, Number.NEGATIVE_INFINITY, 0];
  for (let at = 0; at < left; at += 1) {
    const other = rest[at] as number;
    const more = (gains[other] as number) - gain;
    if (more < 0) continue;
    const less = sum - (sums[other] as number);
    if (more === 0 && (less < 0 || (less === 0 && other > place))) continue;
    [best, place, gain, sum] = [at, other, gains[other] as number, sums[other] as number];
  }
  return best;
}

function better(best: Best | undefined, next: Best): Best {
  const wins = best === undefined || next.inside > best.inside || (next.inside === best.inside && next.cut < best.cut);
  return wins ? { ...next, set: [...next.set] } : best;
}

const gainOf = (matrix: Matrix, place: number, set: readonly number[]): number =>
  set.reduce((sum, other) => sum + ((matrix[place] as Float64Array)[other] as number), 0);

const insideOf = (matrix: Matrix, set: readonly number[]): number => set.reduce((sum, place) => sum + gainOf(matrix, place, set), 0) / 2;

const total = (set: readonly number[], sums: readonly number[]): number => set.reduce((sum, place) => sum + (sums[place] as number), 0);
