import { describe, expect, it } from 'vitest';
import { type Answer, type Limits, type Sample, WaitingDetector } from '../../src/waiting/detector.ts';

const LIMITS: Limits = { afterMs: 600_000, learnMs: 600_000, busy: 0.95, activity: 0.01, power: 0.25, bytes: 0.01 };
const EVERY_MS = 10_000;
const WORK = { busy: 1, activity: 0.6, bytes: 10e9, watts: 600 };
const WAIT = { busy: 1, activity: 0, bytes: 300e3, watts: 139 };

/** Feeds a detector for some minutes. */
class Bench {
  nowMs = 0;
  readonly detector: WaitingDetector;

  constructor(detector = new WaitingDetector()) {
    this.detector = detector;
  }

  run(minutes: number, of: Partial<Sample> | ((at: number) => Partial<Sample>)): Answer {
    for (let at = 0; at < minutes * 6; at += 1) {
      this.nowMs += EVERY_MS;
      const values = typeof of === 'function' ? of(at) : of;
      this.detector.take({ atMs: this.nowMs, wallMs: this.nowMs, spanMs: EVERY_MS, ...values }, LIMITS);
    }
    return this.detector.answer;
  }
}

const inSteps = (at: number): Partial<Sample> => (at % 6 < 4 ? WORK : { ...WORK, bytes: 40e9, watts: 300 });

describe('the detector of one container', () => {
  it('says that it waits after ten minutes without a sign of work, and when it last saw one', () => {
    const bench = new Bench();
    bench.run(30, WORK);
    expect(bench.run(9.5, WAIT)).toMatchObject({ state: 'not-waiting', lastProgressMs: 30 * 60_000 });
    expect(bench.run(1, WAIT)).toEqual({ state: 'waiting', sinceMs: 30 * 60_000, lastProgressMs: 30 * 60_000, usualBytes: 10e9 });
    expect(bench.run(1, WORK).state).toBe('not-waiting');
  });

  it('says that it stalled after its steps were seen', () => {
    const bench = new Bench();
    expect(bench.run(40, inSteps)).toMatchObject({ state: 'not-waiting', stepSeconds: 60 });
    expect(bench.run(11, WAIT)).toMatchObject({ state: 'stalled', stepSeconds: 60 });
  });

  it('takes a second of work within a wait for no progress', () => {
    const bench = new Bench();
    bench.run(30, WORK);
    bench.run(15, (at) => (at === 80 ? { ...WAIT, bytes: 0.15e9 } : WAIT));
    expect(bench.detector.answer).toMatchObject({ state: 'waiting', lastProgressMs: 30 * 60_000 });
    expect(bench.run(1, WORK)).toMatchObject({ state: 'not-waiting', lastProgressMs: 46 * 60_000 });
  });

  it('needs each sign: one engine that works, one link that moves, one engine that is idle', () => {
    for (const sign of [{ activity: 0.02 }, { power: 0.26 }, { bytes: 0.2e9 }, { busy: 0.9 }]) {
      const bench = new Bench();
      bench.run(30, WORK);
      expect(bench.run(30, { ...WAIT, ...sign }).state).toBe('not-waiting');
    }
  });

  it('takes the power where no activity is read', () => {
    const bench = new Bench();
    bench.run(30, { busy: 1, power: 0.8, bytes: 1e9 });
    expect(bench.run(11, { busy: 1, power: 0.19, bytes: 1e3 }).state).toBe('waiting');
    expect(bench.run(1, { busy: 1, power: 0.3, bytes: 1e3 }).state).toBe('not-waiting');
  });

  it('does not count up to a minute in which something is not read, and does not begin anew after it', () => {
    const bench = new Bench();
    bench.run(30, WORK);
    bench.run(9, WAIT);
    const unread = { busy: 1, activity: 0, unread: 'the bytes of a were not read' };
    expect(bench.run(1, unread).state).toBe('not-waiting');
    expect(bench.run(0.5, WAIT).state).toBe('not-waiting');
    expect(bench.run(1, WAIT)).toMatchObject({ state: 'waiting', sinceMs: 30 * 60_000 });
    expect(bench.run(1, unread).state).toBe('waiting');
    expect(bench.run(1, WORK).state).toBe('not-waiting');
  });

  it('does not know when something is not read for longer, and counts anew after it', () => {
    const bench = new Bench();
    bench.run(30, WORK);
    bench.run(9, WAIT);
    expect(bench.run(1.5, { busy: 1, activity: 0, unread: 'the bytes of a were not read' })).toMatchObject({
      state: 'unknown',
      unknown: 'the bytes of a were not read',
    });
    expect(bench.run(9, WAIT).state).toBe('unknown');
    expect(bench.run(2, WAIT).state).toBe('waiting');
    bench.detector.interrupted('its devices were not read for a time');
    expect(bench.detector.answer.state).toBe('unknown');
    expect(bench.run(5, WAIT).state).toBe('unknown');
  });

  it('knows of one that works although something is not read', () => {
    const bench = new Bench();
    expect(bench.run(5, { ...WORK, bytes: undefined, unread: 'the bytes of a were not read' }).state).toBe('not-waiting');
  });

  it('never says it of a container that has worked too little, or that usually moves as little', () => {
    const idle = new Bench();
    expect(idle.run(180, WAIT).state).toBe('unknown');
    const early = new Bench();
    early.run(6, WORK);
    expect(early.run(30, WAIT).state).toBe('unknown');
    const quiet = new Bench();
    quiet.run(20, { ...WORK, bytes: 400e3 });
    expect(quiet.run(30, WAIT).state).toBe('not-waiting');
  });

  it('keeps the usual bytes and the steps over a restart, and counts the ten minutes anew', () => {
    const first = new Bench();
    first.run(40, inSteps);
    const { usualBytes, stepSeconds, lastProgressMs } = first.run(11, WAIT);
    const second = new Bench(new WaitingDetector({ usualBytes, stepSeconds, lastProgressMs } as Answer));
    expect(second.run(9, WAIT)).toMatchObject({ state: 'unknown', lastProgressMs });
    expect(second.run(2, WAIT).state).toBe('stalled');
  });

  it('is more patient with a job that has gone on after a long wait', () => {
    const bench = new Bench();
    bench.run(40, inSteps);
    bench.run(20, WAIT);
    bench.run(30, inSteps);
    expect(bench.run(20, WAIT).state).toBe('waiting');
    expect(bench.run(15, WAIT).state).toBe('stalled');
  });

  it('asks for more reads in the second half of a wait, until it is told', () => {
    const bench = new Bench();
    bench.run(30, WORK);
    expect(bench.detector.isCandidate(bench.nowMs, LIMITS)).toBe(false);
    bench.run(4, WAIT);
    expect(bench.detector.isCandidate(bench.nowMs, LIMITS)).toBe(false);
    bench.run(2, WAIT);
    expect(bench.detector.isCandidate(bench.nowMs, LIMITS)).toBe(true);
    bench.run(6, WAIT);
    expect(bench.detector.isCandidate(bench.nowMs, LIMITS)).toBe(false);
  });
});
