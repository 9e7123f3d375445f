import { describe, expect, it } from 'vitest';
import type { Clock } from '../../src/host/clock.ts';
import type { Collection } from '../../src/model/collection.ts';
import { Absence } from '../../src/supervisor/absence.ts';
import { device, listed, report } from '../support/snapshots.ts';

const NOTHING = listed([]);
const SOMETHING = listed([report({ device: device({ id: 'x' }) })]);

function start(isKnown = false): {
  readonly absence: Absence;
  readonly wait: (ms: number) => void;
  readonly appear: (what: string) => void;
} {
  let nowMs = 1_000;
  let there = '';
  const clock: Clock = { now: () => nowMs, monotonic: () => nowMs, after: () => () => {} };
  return { absence: new Absence(clock, () => there, isKnown), wait: (ms) => (nowMs += ms), appear: (what) => (there += what) };
}

function run(absence: Absence, collection: Collection): boolean {
  absence.begins();
  return absence.saw(collection);
}
const thrice = (absence: Absence, collection: Collection): boolean[] => [1, 2, 3].map(() => run(absence, collection));

describe('a family', () => {
  it('rests when three runs found nothing, and after each one more eight times as long, an hour at most', () => {
    const { absence, wait } = start();
    expect(thrice(absence, NOTHING)).toEqual([false, false, true]);
    for (const minutes of [1, 8, 60, 60]) {
      wait(minutes * 60_000 - 1);
      expect(absence.isResting(), `${minutes} minutes`).toBe(true);
      wait(1);
      expect(absence.isResting(), `${minutes} minutes`).toBe(false);
      expect(run(absence, NOTHING)).toBe(true);
    }
  });

  it('rests shortly again after something came', () => {
    const { absence, wait, appear } = start();
    thrice(absence, NOTHING);
    for (let n = 0; n < 5; n += 1) {
      wait(3_600_000);
      run(absence, NOTHING);
    }
    appear('nvidia');
    thrice(absence, NOTHING);
    wait(60_000);
    expect(absence.isResting()).toBe(false);
  });

  it('is looked for as soon as something comes, three times, for its first device may come after its driver', () => {
    const { absence, appear } = start();
    thrice(absence, NOTHING);
    appear('mlx5_core');
    expect(absence.isResting()).toBe(false);
    expect(thrice(absence, NOTHING)).toEqual([false, false, true]);
    expect(absence.isResting()).toBe(true);
  });

  it('is looked for again when something comes during the last run', () => {
    const { absence, appear } = start();
    thrice(absence, NOTHING);
    appear('mlx5_core');
    for (const _ of [1, 2]) expect([run(absence, NOTHING), absence.isResting()]).toEqual([false, false]);
    absence.begins();
    appear('mlx5_ib');
    absence.saw(NOTHING);
    expect(absence.isResting()).toBe(false);
    expect(thrice(absence, NOTHING)).toEqual([false, false, true]);
    expect(absence.isResting()).toBe(true);
  });

  it('that had a device once never rests', () => {
    const { absence } = start();
    absence.saw(SOMETHING);
    expect(thrice(absence, NOTHING)).toEqual([false, false, false]);
  });

  it('that had devices before the agent was started never rests', () => {
    expect(thrice(start(true).absence, NOTHING)).toEqual([false, false, false]);
  });

  it.each(['complete', 'absent'] as const)('rests where a look that is %s finds nothing', (listing) => {
    expect(thrice(start().absence, listed([], { listing }))).toEqual([false, false, true]);
  });

  it.each<[string, Collection]>([
    ['could not read everything', listed([], { listing: 'partial' })],
    ['has a problem', listed([], { problems: [{ code: 'command-failed', message: 'x' }] })],
  ])('that %s does not rest, and begins to count anew', (_, collection) => {
    const { absence } = start();
    expect(thrice(absence, collection)).toEqual([false, false, false]);
    expect(run(absence, NOTHING)).toBe(false);
  });

  it('that is found after its rest does not rest again', () => {
    const { absence, wait } = start();
    thrice(absence, NOTHING);
    wait(600_000);
    expect(run(absence, SOMETHING)).toBe(false);
    expect(thrice(absence, NOTHING)).toEqual([false, false, false]);
  });
});
