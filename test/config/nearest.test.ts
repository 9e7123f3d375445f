import { describe, expect, it } from 'vitest';
import { editDistance, nearest } from '../../src/config/nearest.ts';

describe('nearest name', () => {
  it.each([
    ['', '', 0],
    ['abc', 'abc', 0],
    ['abc', 'acb', 1],
    ['abc', 'ab', 1],
    ['abc', '', 3],
    ['kitten', 'sitting', 3],
  ])('%j and %j are %i apart', (a, b, distance) => {
    expect(editDistance(a, b)).toBe(distance);
    expect(editDistance(b, a)).toBe(distance);
  });

  it.each([
    ['levle', 'level'],
    ['LEVEL', 'level'],
    ['intervall', 'interval'],
    ['zzz', undefined],
    ['', undefined],
  ])('%j was meant as %j', (name, expected) => {
    expect(nearest(name, ['level', 'interval', 'format'])).toBe(expected);
  });
});
