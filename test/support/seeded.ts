/** A whole number from 0 to below `below`. */
export type Choose = (below: number) => number;

/** Numbers from 0 to below 1 that a seed decides, so that a failure can be repeated: Mulberry32. */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export function seeded(seed: number): Choose {
  const random = seededRandom(seed);
  return (below) => Math.floor(random() * below);
}
