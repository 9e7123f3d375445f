// Random inputs that a seed decides, so that a failure can be repeated.

/** A whole number from 0 to below `below`: Mulberry32. */
export function seeded(seed) {
  let state = seed | 0;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

export const pick = (choose, list) => list[choose(list.length)];

/** What breaks parsers: ends of lines and of quotes, numbers at the edges, tags, escapes, long and deep texts. */
const WORDS = [
  '',
  '\n',
  '\0',
  '"',
  "'",
  '\\',
  '<',
  '>',
  '</',
  '&lt;',
  ']]>',
  '<!--',
  '{',
  '}',
  '[',
  ']',
  ',',
  ';',
  ':',
  '=',
  '%',
  '\uFFFD',
  '\u2028',
  '💥',
  '-1',
  '0',
  '00',
  '1e309',
  'NaN',
  'Infinity',
  '0x',
  '0xffffffffffffffff',
  '18446744073709551615',
  '18446744073709551616',
  '9007199254740993',
  '4294967296',
  '1.5',
  '--',
  'N/A',
  '[Unknown Error]',
  '__proto__',
  'constructor',
  '../',
  'x'.repeat(5_000),
  '['.repeat(3_000),
];
const CONTENTS = [
  ...WORDS,
  '1\n',
  '0\n',
  '4294967295\n',
  'active\n',
  '4: ACTIVE\n',
  '100 Gb/sec (4X EDR)\n',
  '0000:00:00.0\n',
  'a b c\n',
  '\n\n\n',
];

/** A whole content in place of a file's. */
export const content = (choose) => (choose(3) === 0 ? randomText(choose, 200) : pick(choose, CONTENTS));

export function randomText(choose, most) {
  return Array.from({ length: choose(most) }, () =>
    choose(4) === 0 ? pick(choose, WORDS.slice(0, 40)) : String.fromCharCode(choose(choose(20) === 0 ? 65_536 : 128)),
  ).join('');
}

/** Changes a text at one to four places: cuts, repeats, replaces, inserts. */
export function mutate(choose, text) {
  let changed = text;
  for (let count = choose(4); count >= 0; count -= 1) {
    const [a, b] = [choose(changed.length + 1), choose(changed.length + 1)].sort((x, y) => x - y);
    const end = choose(2) === 0 ? Math.min(b, a + 1 + choose(20)) : b;
    const part = changed.slice(a, end);
    const put = [
      () => '',
      () => part.repeat(2),
      () => pick(choose, WORDS),
      () => randomText(choose, 20),
      () => part.replace(/\d+/, pick(choose, WORDS)),
    ][choose(5)]();
    changed = changed.slice(0, a) + put + changed.slice(end);
    if (changed.length > 2_000_000) return changed.slice(0, 2_000_000);
  }
  return changed;
}

export function mutateBytes(choose, bytes) {
  const changed = [...bytes];
  for (let count = choose(6); count >= 0; count -= 1) {
    const at = choose(changed.length + 1);
    [
      () => changed.splice(at, 1 + choose(8)),
      () => changed.splice(at, 0, ...Array.from({ length: 1 + choose(8) }, () => choose(256))),
      () => (changed[Math.min(at, changed.length - 1)] = choose(256)),
      () => changed.splice(at, 0, ...changed.slice(at, at + choose(40))),
    ][choose(4)]();
  }
  return Buffer.from(changed);
}
