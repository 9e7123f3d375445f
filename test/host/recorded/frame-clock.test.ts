import { describe, expect, it } from 'vitest';
import { atEach } from '../../../src/host/clock.ts';
import { FrameClock, frameTime } from '../../../src/host/recorded/frame-clock.ts';

describe('the clock of a capture', () => {
  it('stands still within a frame, for all threads', () => {
    const clock = new FrameClock();
    const thread = frameTime(clock.memory);
    clock.moveTo(1_700_000_000_000, 2_500.25);
    expect([clock.now(), clock.monotonic(), thread.now(), thread.monotonic()]).toEqual([
      1_700_000_000_000, 2_500.25, 1_700_000_000_000, 2_500.25,
    ]);
  });

  it('rings what came due between two frames in order, at its time, and what these set', () => {
    const clock = new FrameClock();
    clock.moveTo(1_000_000, 0);
    const rung: unknown[] = [];
    const note = (name: string) => (): void => void rung.push([name, clock.now(), clock.monotonic()]);
    clock.after(300, note('third'));
    clock.after(100, () => {
      note('first')();
      clock.after(100, note('second'));
    });
    clock.after(150, note('cancelled'))();
    clock.after(1_001, note('later'));
    clock.moveTo(1_001_005, 1_000);
    expect(rung).toEqual([
      ['first', 1_000_100, 100],
      ['second', 1_000_200, 200],
      ['third', 1_000_300, 300],
    ]);
    expect([clock.now(), clock.monotonic()]).toEqual([1_001_005, 1_000]);
  });

  it('begins nothing that repeats in the background', () => {
    const clock = new FrameClock();
    let runs = 0;
    atEach(clock, 10, () => {
      runs += 1;
    });
    clock.moveTo(0, 1_000);
    expect(runs).toBe(0);
  });
});
