import { describe, expect, it } from 'vitest';
import { lineForm } from '../../../src/probes/declared/line-form.ts';

/** The same form as a regular expression, which takes exponential time. */
function expression(form: string): RegExp {
  const source = form.replace(/\{([A-Za-z][A-Za-z0-9]*)\}|[\\^$.*+?()[\]{}|#/]/g, (sign, word: string | undefined) => {
    if (word !== undefined) return `(?<${word}>[^\\s,;:()]{1,64})`;
    return sign === '*' ? '.{0,200}?' : sign === '#' ? '\\d{1,20}' : `\\${sign}`;
  });
  return new RegExp(`^${source}`);
}

const told = (found: { readonly groups?: object | undefined } | null) => (found === null ? undefined : { ...found.groups });

/** Numbers that are the same in each run. */
function* numbers(seed: number): Generator<number, never> {
  for (let state = seed; ; ) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    yield state >>> 8;
  }
}

describe('the form of a line', () => {
  it.each<[string, string, object | undefined]>([
    ['firmware dead, code {code}: *', 'firmware dead, code 0x7: halted', { code: '0x7' }],
    ['a {b}x', 'a xxx', { b: 'xx' }],
    ['a # b', 'a 123456789012345678901 b', undefined],
    ['a*b', `a${'-'.repeat(200)}b`, {}],
    ['a*b', `a${'-'.repeat(201)}b`, undefined],
    ['a*b*c', `ab${'-'.repeat(150)}b${'-'.repeat(100)}c`, {}],
    ['{a}: {b}', `${'w'.repeat(65)}: x`, undefined],
    ['a.c {x', 'a.c {x and more', {}],
    ['a.c', 'abc', undefined],
  ])('%s of %s', (form, text, groups) => {
    expect(told(lineForm(form).exec(text))).toEqual(groups);
    expect(told(expression(form).exec(text))).toEqual(groups);
  });

  it('says the same as a regular expression of any form and text', () => {
    const next = numbers(7);
    const pick = <T>(list: readonly T[]): T => list[next.next().value % list.length] as T;
    let fitting = 0;
    for (let round = 0; round < 20_000; round += 1) {
      const words = ['{a}', '{b}', '{c}'];
      const signs = Array.from({ length: 1 + (next.next().value % 4) }, () => pick(['*', '#', words.shift() ?? '*']));
      const form = signs.map((sign) => pick(['', 'x', 'y', '1', ' ', '.']) + sign + pick(['x', '1', ' ', 'xy'])).join('');
      const text = Array.from({ length: next.next().value % 14 }, () => pick(['x', 'y', '1', '2', ' ', '.', ':'])).join('');
      const expected = told(expression(form).exec(text));
      expect(told(lineForm(form).exec(text)), `${form} of ${text}`).toEqual(expected);
      if (expected !== undefined) fitting += 1;
    }
    expect(fitting).toBeGreaterThan(200);
  });

  it.each([
    ['eight wildcards', `${'*a'.repeat(8)}!`, 'a'],
    ['eight numbers', `${'#1'.repeat(8)}!`, '1'],
    ['eight words', `${[...'abcdefgh'].map((name) => `{${name}}a`).join('')}!`, 'a'],
    ['wildcards and words', `*a{b}a*a{c}a*a{d}a*a{e}a!`, 'a'],
  ])('ends with %s on the longest record', (_, form, letter) => {
    expect(lineForm(form).exec(letter.repeat(8_192))).toBeNull();
    expect(lineForm(form).exec(`${letter.repeat(100)}!`)).not.toBeNull();
  });
});
