import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/errors.ts';
import { countsOf, sizeText } from '../../src/sim/sizes.ts';

const SIZES = [
  { name: 'card', about: 'Acme card', default: 8, most: 64 },
  { name: 'card.part', about: 'part of a card', default: 0, most: 4_000 },
  { name: 'disk', about: 'disk', default: 1, most: 200 },
];

const problemOf = (...entries: readonly string[]): unknown => {
  try {
    return countsOf(entries, SIZES);
  } catch (error) {
    return error instanceof UserError ? error.message : error;
  }
};

describe('the numbers of simulated devices', () => {
  it('are the defaults of the families', () => {
    expect(countsOf([], SIZES)).toEqual({ card: 8, 'card.part': 0, disk: 1 });
  });

  it('are replaced one by one, or all at first, wherever that is said', () => {
    expect(countsOf(['card.part=4000', ' disk=0 '], SIZES)).toEqual({ card: 8, 'card.part': 4_000, disk: 0 });
    expect(countsOf(['disk=2', 'all=0'], SIZES)).toEqual({ card: 0, 'card.part': 0, disk: 2 });
    expect(countsOf(['all=3'], SIZES)).toEqual({ card: 3, 'card.part': 3, disk: 3 });
  });

  it.each(['card', 'card=', 'card=-1', 'card=1=2', '=1', '', 'card 1'])('are refused in the form %j', (entry) => {
    expect(problemOf(entry)).toContain('is not name=count');
  });

  it('are refused with the names that are known, and with the largest number', () => {
    expect(problemOf('crad=1')).toContain('nothing has the name crad; there are all, card, card.part, disk');
    expect(problemOf('card=65')).toContain('card must be 64 or less');
    expect(problemOf('all=100')).toContain('card must be 64 or less');
  });

  it('are told in words, without what is absent', () => {
    expect(sizeText({ card: 2, 'card.part': 0, disk: 1 }, SIZES, 12)).toBe('2 Acme cards, 1 disk and 12 pods');
    expect(sizeText({}, SIZES, 1)).toBe('1 pod');
  });
});
