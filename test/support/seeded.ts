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

/** A text with some letters replaced, by what breaks a number or a line. */
export function mutatedText(text: string, random: Choose): string {
  const letters = [...text];
  for (let n = random(6); n >= 0; n -= 1) {
    const at = random(letters.length + 1);
    const letter = ['\0', '\n', ':', ' ', '-', 'x', '9', '99999999999999999999', 'é', '\u{1f4a3}', '', '.5'][random(12)] as string;
    letters.splice(at, random(3), letter);
  }
  return letters.join('');
}
