/** Above this number of candidate sets, a greedy search replaces the exhaustive one. Choosing 8 of 16 devices gives 12,870 sets. */
const MOST_SETS = 13_000;
const MOST_SEEDS = 64;
/** Limit of place comparisons over all seeds, so that one search blocks the event loop for some tens of milliseconds at most. */
const MOST_COMPARISONS = 2_000_000;

interface Best {
  set: readonly number[];
  inside: number;
  cut: number;
}

/**
 * Chooses `size` of `count` places, `must` included, with the largest sum of nearness over all pairs. The first tie-break is the
 * smallest nearness to the places left over, so that good groups stay together; the second is order. Returns ascending indices.
 */
export function nearestSet(count: number, must: readonly number[], size: number, near: (a: number, b: number) => number): number[] {
  const matrix = Array.from({ length: count }, (_, a) => Float64Array.from({ length: count }, (_, b) => (a === b ? 0 : near(a, b))));
  const sums = matrix.map((row) => row.reduce((sum, value) => sum + value, 0));
  const free = Array.from({ length: count }, (_, at) => at).filter((at) => !must.includes(at));
  const missing = size - must.length;
  if (missing <= 0) return [...must].sort((a, b) => a - b);
  const best = isCountable(free.length, missing)
    ? exhaustiveBest(matrix, sums, must, free, missing)
    : greedyBest(matrix, sums, must, free, missing);
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

function exhaustiveBest(matrix: Matrix, sums: readonly number[], must: readonly number[], free: readonly number[], missing: number): Best {
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

/** Greedy search from several seeds: each step adds the place with the largest gain. */
function greedyBest(matrix: Matrix, sums: readonly number[], must: readonly number[], free: readonly number[], missing: number): Best {
  let best: Best | undefined;
  const seeds = Math.max(1, Math.min(MOST_SEEDS, Math.floor(MOST_COMPARISONS / (missing * free.length))));
  for (const seed of must.length > 0 ? [undefined] : free.slice(0, seeds)) {
    const set = grown(matrix, sums, seed === undefined ? must : [seed], free, must.length + missing);
    const inside = insideOf(matrix, set);
    best = better(best, { set, inside, cut: total(set, sums) - 2 * inside });
  }
  return best as Best;
}

/** Uses plain loops over typed arrays for speed: each step scans hundreds of places, because replicas count as places. */
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

/** Returns the index, among the first `left` of `rest`, of the largest gain. Tie-breaks: smallest sum of nearness, then first place. */
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
