import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../src/host/clock.ts';
import { ProbeMemory } from '../../../src/probes/fpga/memory.ts';

const COOL = 70;

describe('a critical limit', () => {
  const memory = (): ProbeMemory => new ProbeMemory(systemClock);

  it('that a cool part exceeds at first sight is none, also when the part gets warm', () => {
    const known = memory();
    expect([38, 75, 38].map((value) => known.isLimit('s', value, 17.5, COOL))).toEqual([false, false, false]);
  });

  it('that a hot part exceeds at first sight is one', () => {
    expect(memory().isLimit('s', 101.5, 100, COOL)).toBe(true);
  });

  it('counts again after a reading below it, and when it changes', () => {
    const known = memory();
    expect([58, 54, 56].map((value) => known.isLimit('s', value, 55, COOL))).toEqual([false, true, true]);
    expect(known.isLimit('t', 58, 17.5, COOL)).toBe(false);
    expect(known.isLimit('t', 58, 100, COOL)).toBe(true);
  });
});
