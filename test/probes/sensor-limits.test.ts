import { describe, expect, it } from 'vitest';
import { CredibleLimits } from '../../src/probes/kit/temperature.ts';

describe('a critical limit', () => {
  it('that a cool part exceeds at first sight is none, also when the part gets warm', () => {
    const known = new CredibleLimits();
    expect([38, 75, 38].map((value) => known.has('s', value, 17.5))).toEqual([false, false, false]);
  });

  it('that a hot part exceeds at first sight is one', () => {
    expect(new CredibleLimits().has('s', 101.5, 100)).toBe(true);
  });

  it('counts again after a reading below it, and when it changes', () => {
    const known = new CredibleLimits();
    expect([58, 54, 56].map((value) => known.has('s', value, 55))).toEqual([false, true, true]);
    expect(known.has('t', 58, 17.5)).toBe(false);
    expect(known.has('t', 58, 100)).toBe(true);
  });

  it('that the device says to be reached is compared with the temperature', () => {
    const known = new CredibleLimits();
    expect(known.has('a', 38, 93, true)).toBe(false);
    expect(known.has('b', 93, 93, true)).toBe(true);
    expect([known.has('c', 38, 93, false), known.has('c', 68, 93, true)]).toEqual([true, true]);
  });
});
