import { describe, expect, it } from 'vitest';
import { ReadClock, stillClock } from '../../../src/host/recorded/read-clock.ts';

describe('the clock of a replay', () => {
  it('stands still for the probes at the time of the read, and runs on for the agent', () => {
    const clock = new ReadClock();
    const probe = stillClock(() => clock.time);
    clock.moveTo(1_700_000_000_000, 0);
    clock.moveTo(1_700_000_002_500, 2_500.25);
    expect([probe.now(), probe.monotonic()]).toEqual([1_700_000_002_500, 2_500.25]);
    expect(clock.now()).toBeGreaterThanOrEqual(1_700_000_002_500);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(2_500.25);
  });

  it('never goes back, also when a read came later than that of the capture', () => {
    const clock = new ReadClock();
    clock.moveTo(0, 60_000);
    const before = clock.monotonic();
    clock.moveTo(0, 1_000);
    expect(clock.monotonic()).toBeGreaterThanOrEqual(before);
    expect(stillClock(() => clock.time).monotonic()).toBe(1_000);
  });
});
