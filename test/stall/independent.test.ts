// Project: programs. It checks the input of another test, and makes all of it.
import { describe, expect, it } from 'vitest';
import { histories as sources } from './corpus/independent.ts';
import type { StallHistory } from './history.ts';

const KINDS =
  'training checkpoint evaluation compile starvation dead-rank hang idle-inference bursty-inference nvlink-only shared straggler slow unread restart'.split(
    ' ',
  );
const made = new Map<string, StallHistory>();
/** Each is made once: that takes most of the time. */
const histories = sources.map(({ name, make }) => ({
  name,
  make: () => {
    const history = made.get(name) ?? make();
    made.set(name, history);
    return history;
  },
}));

describe('the independent histories', () => {
  it('have names of their own', () => {
    expect(new Set(histories.map(({ name }) => name)).size).toBe(histories.length);
  });

  it.skipIf(process.env.CI === undefined)('are of every kind (skipped: CI makes all histories)', () => {
    expect(new Set(histories.map((source) => source.make().kind))).toEqual(new Set(KINDS));
  });

  it.each(histories)('$name', ({ name, make }) => {
    const history = make();
    const last = history.reads.at(-1)?.atSeconds ?? 0;
    expect(history.name).toBe(name);
    expect(history.reads.every(({ atSeconds }, at) => at === 0 || atSeconds > (history.reads[at - 1]?.atSeconds ?? 0))).toBe(true);
    for (const { devices } of history.containers) expect(devices.every((id) => history.devices[id] !== undefined)).toBe(true);
    for (const one of history.truth) {
      expect(one.toSeconds - one.fromSeconds).toBeGreaterThanOrEqual(600);
      // The clock of the reads drifts by seconds.
      expect(one.toSeconds).toBeLessThanOrEqual(last + 60);
      const held = history.containers.find(({ pod, container }) => pod === one.pod && container === one.container);
      expect(held?.fromSeconds ?? 0).toBeLessThanOrEqual(one.fromSeconds);
      expect(held?.toSeconds ?? Number.POSITIVE_INFINITY).toBeGreaterThanOrEqual(one.toSeconds);
    }
    const values = history.reads.flatMap(({ devices }) => Object.values(devices).flatMap((one) => Object.values(one)));
    expect(values.filter((value) => !Number.isFinite(value) || value < 0)).toEqual([]);
  });
});
