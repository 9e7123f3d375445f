import { expect, it } from 'vitest';
import { PatientAlarm } from '../../src/agent/patient-alarm.ts';
import type { Clock } from '../../src/host/clock.ts';

/** A clock that stands still until it is moved, and counts the timers that were ever set. */
function handClock(): { clock: Clock; move(ms: number): void; timers(): number } {
  let nowMs = 0;
  let set = 0;
  const timers = new Set<{ atMs: number; run: () => void }>();
  const clock: Clock = {
    now: () => nowMs,
    monotonic: () => nowMs,
    after(delayMs, run) {
      const timer = { atMs: nowMs + delayMs, run };
      timers.add(timer);
      set += 1;
      return () => timers.delete(timer);
    },
  };
  const move = (ms: number): void => {
    const end = nowMs + ms;
    for (;;) {
      const due = [...timers].filter(({ atMs }) => atMs <= end).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      timers.delete(due);
      nowMs = due.atMs;
      due.run();
    }
    nowMs = end;
  };
  return { clock, move, timers: () => set };
}

it('rings at the time set last, once, and needs few timers for being put off', () => {
  const { clock, move, timers } = handClock();
  const rung: number[] = [];
  const alarm = new PatientAlarm(clock, () => rung.push(clock.monotonic()));
  for (let n = 0; n < 100; n += 1) {
    alarm.set(1_000);
    move(100);
  }
  expect(rung).toEqual([]);
  expect(timers()).toBeLessThan(15);
  move(10_000);
  expect(rung).toEqual([10_900]);
});

it('rings in time when it is set nearer, and not at all when it is unset or closed', () => {
  const { clock, move } = handClock();
  const rung: number[] = [];
  const alarm = new PatientAlarm(clock, () => rung.push(clock.monotonic()));
  alarm.set(1_000);
  alarm.set(200);
  move(300);
  expect(rung).toEqual([200]);
  alarm.set(500);
  alarm.unset();
  move(5_000);
  alarm.set(100);
  alarm.close();
  move(5_000);
  expect(rung).toEqual([200]);
  alarm.set(50);
  move(60);
  expect(rung).toEqual([200, 10_350]);
});
