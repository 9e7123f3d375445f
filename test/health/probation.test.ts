import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createHealthEngine } from '../../src/health/engine/engine.ts';
import { createStateFile } from '../../src/health/journal/state-file.ts';
import { hours, minutes } from '../../src/model/duration.ts';
import { found, gone, OneDevice, policyFor, spec } from './one-device.ts';

const dead = [spec('Dead', { class: 'latched' }), spec('Lost'), spec('Hot', { severity: 'degraded', class: 'latched' })];
const policy = policyFor(dead, { probation: { busy: '10m' }, flapping: { count: 100 } });
const MINUTE = 60;

/** A device whose fatal condition a reset cleared at second 20. */
function reset(): OneDevice {
  const one = new OneDevice(policy);
  one.read(0);
  one.read(10, found('Dead'));
  one.read(20, gone('Dead'));
  return one;
}

/** Reads every 30 s from second `from` for so many minutes. Returns the last verdict. */
function work(one: OneDevice, from: number, forMinutes: number, isIdle: boolean | 'unknown' = false) {
  let verdict = one.used(from, isIdle);
  for (let at = from + 30; at <= from + forMinutes * MINUTE; at += 30) verdict = one.used(at, isIdle);
  return verdict;
}

describe('probation', () => {
  it('begins when a fatal latched condition is cleared, and is no state', () => {
    const one = new OneDevice(policy);
    one.read(0);
    expect(one.read(10, found('Dead')).probation, 'it is out of service').toBeUndefined();
    expect(one.read(20, gone('Dead'))).toMatchObject({ state: 'healthy', probation: { condition: 'Dead', neededMs: minutes(10) } });
  });

  it('does not begin with the end of a condition that ends by itself, or that is not fatal, or that was ignored or turned off', () => {
    for (const type of ['Lost', 'Hot']) {
      const one = new OneDevice(policy);
      one.read(0, found(type));
      expect(one.read(10, gone(type)).probation).toBeUndefined();
    }
    const ignoring = policyFor(dead, { ignore: [{ device: 'one', condition: 'Dead', reason: 'known', until: '2031-01-01' }] });
    const one = new OneDevice(ignoring);
    one.read(0, found('Dead'));
    expect(one.read(10, gone('Dead')).probation).toBeUndefined();
    const other = new OneDevice(policy);
    other.read(0, found('Dead'));
    other.engine.setPolicy(policyFor(dead, { conditions: { 'test.Dead': { enabled: false } } }));
    expect(other.read(10, found('Dead'))).not.toHaveProperty('probation');
  });

  it('ends after enough busy time, and not by time, by idle time or by time of which the use was not read', () => {
    const one = reset();
    expect(one.read(20 + 100 * 3_600).probation, 'nothing tells the use').not.toHaveProperty('busyMs');
    expect(work(one, 400_000, 600, 'unknown').probation).not.toHaveProperty('busyMs');
    expect(work(one, 500_000, 600, true).probation).toMatchObject({ busyMs: 0 });
    expect(work(one, 600_000, 9).probation).toMatchObject({ busyMs: minutes(9) });
    expect(one.read(700_000).probation).toMatchObject({ busyMs: minutes(9) });
    expect(work(one, 800_000, 1).probation).toBeUndefined();
  });

  it('counts no time between two reads that were not in a row, and none of a degraded device', () => {
    const one = reset();
    one.used(100, false);
    expect(one.used(160, false).probation, 'the stale age is between them').toMatchObject({ busyMs: 0 });
    one.unread(170);
    expect(one.used(180, false).probation).toMatchObject({ busyMs: 0 });
    one.used(190, false, found('Hot'));
    expect(one.used(200, false, found('Hot')).probation).toMatchObject({ busyMs: 0 });
    one.used(210, false, gone('Hot'));
    expect(one.used(220, false).probation).toMatchObject({ busyMs: 20_000 });
    one.engine.judge({ devices: [] }, one.now);
  });

  it('begins again after any fatal fault, and is not shown while the device is unhealthy', () => {
    const one = reset();
    work(one, 100, 9);
    expect(one.used(650, false, found('Lost')).probation).toBeUndefined();
    expect(one.used(660, false, gone('Lost')).probation).toMatchObject({ condition: 'Dead', busyMs: 0 });
    expect(work(one, 690, 9).probation).toMatchObject({ condition: 'Dead' });
  });

  it('begins when a person accepts a fatal condition', () => {
    const one = new OneDevice(policy);
    one.read(0, found('Dead'));
    one.read(10);
    one.engine.accept('test/one', 'Dead', 'tested by the maker');
    expect(one.read(20)).toMatchObject({ state: 'healthy', probation: { condition: 'Dead' } });
  });

  it('goes on over restarts of the agent, and over a step of the clock', () => {
    const one = reset();
    work(one, 100, 5);
    one.restart();
    one.awaited(410, 405);
    expect(work(one, 420, 4).probation).toMatchObject({ busyMs: minutes(9) });
    expect(work(one, 420 - 86_400, 0.5).probation).toMatchObject({ busyMs: minutes(9) + 30_000 });
  });
});

describe('probation over a reboot', () => {
  const booted = async (from: OneDevice, bootId: string): Promise<OneDevice> => {
    const directory = mkdtempSync(join(tmpdir(), 'device-agent-boots-'));
    try {
      const path = join(directory, 'health.json');
      await createStateFile({ path, bootId: 'before' }).write(from.engine.state());
      const { past } = await createStateFile({ path, bootId }).read();
      const one = new OneDevice(policy);
      one.engine = createHealthEngine({ policy, ...(past && { past }) });
      return one;
    } finally {
      rmSync(directory, { recursive: true });
    }
  };

  it('begins where the device was unhealthy, whatever the condition was', async () => {
    for (const type of ['Dead', 'Lost']) {
      const one = new OneDevice(policy);
      one.read(0, found(type));
      const next = await booted(one, 'second');
      expect(next.read(1_000)).toMatchObject({ state: 'healthy', probation: { condition: type } });
    }
  });

  it('is not ended by a further one, which counts no time', async () => {
    const one = reset();
    work(one, 100, 9);
    const next = await booted(one, 'second');
    expect(next.used(650, false).probation).toMatchObject({ condition: 'Dead', busyMs: minutes(9) });
    const last = await booted(next, 'third');
    expect(work(last, 700, 1).probation).toBeUndefined();
  });

  it('does not begin for a device that was healthy, and has no name for a file that did not count incidents', async () => {
    const one = new OneDevice(policy);
    one.read(0);
    expect((await booted(one, 'second')).read(10).probation).toBeUndefined();
    one.read(10, found('Dead'));
    const [[key, memory] = []] = Object.entries(one.engine.state().devices);
    const { incidents: _, ...older } = memory as NonNullable<typeof memory>;
    one.engine = createHealthEngine({ policy, state: { ...one.engine.state(), devices: { [key as string]: older } } });
    expect(Object.keys((await booted(one, 'second')).read(hours(1)).probation ?? {})).toEqual(['sinceMs', 'neededMs']);
  });
});
