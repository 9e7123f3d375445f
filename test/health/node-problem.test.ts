import { describe, expect, it } from 'vitest';
import { type JudgedState, nodeCondition, nodeProblem } from '../../src/health/journal/node-problem.ts';
import type { HealthConfig } from '../../src/health/policy/policy-config.ts';
import type { Verdict } from '../../src/model/health.ts';
import { found, gone, OneDevice, policyFor, spec } from './one-device.ts';

const READ = [{ family: 'test', complete: true }];
const judged = (key: string, ...finding: Parameters<OneDevice['read']>[1][]) => {
  const one = new OneDevice(policyFor([spec('Down'), spec('Hot', { severity: 'degraded' }), spec('Blind', { class: 'no-data' })]));
  return { key, health: one.read(0, ...finding) };
};
const pending = (() => {
  const one = new OneDevice(policyFor([spec('Down', { forMs: 10_000 }), spec('Noise', { severity: 'info', forMs: 10_000 })]));
  return { key: 'test/h', health: one.read(0, found('Down', { instance: '1' }), found('Noise')) };
})();
const recovering = (() => {
  const one = new OneDevice(policyFor([spec('Down', { recoveryMs: 30_000 })]));
  one.read(0, found('Down', { instance: '1' }));
  return { key: 'test/i', health: one.read(5, gone('Down')) };
})();
const healthy = judged('test/a');
const degraded = judged('test/b', found('Hot'));
const unknown = judged('test/c', found('Blind'));
const unhealthy = judged('test/d', found('Down', { instance: '1' }), found('Hot'));

/** Degraded for some time, and then unknown. */
const lostSight = (key: string, config: HealthConfig, lose: (one: OneDevice) => Verdict) => {
  const one = new OneDevice(policyFor([spec('Hot', { severity: 'degraded' })], config));
  one.read(0, found('Hot'));
  return { key, health: lose(one) };
};
const stale = lostSight('test/e', {}, (one) => one.wait(60));
const lost = lostSight('test/f', { conditions: { '*.DeviceMissing': { severity: 'degraded' } } }, (one) => one.missing(10));
const unsaid = lostSight('test/g', { conditions: { '*.DeviceMissing': { enabled: false } } }, (one) => one.missing(10));

describe('the answer for node-problem-detector', () => {
  it.each([
    ['nothing', [], 2, 'no device is known'],
    ['all healthy', [healthy, healthy], 0, '2 of 2 devices healthy'],
    ['one that is about to be unhealthy', [healthy, pending], 0, '2 of 2 devices healthy, test/h Down/1 pending'],
    ['several that are', [pending, pending, pending], 0, '3 of 3 devices healthy, test/h Down/1 pending (and 2 more)'],
    ['one whose fault ended', [recovering], 1, "test/i unhealthy, Down/1 (Because) recovering: it was 'Down at 42'"],
    ['one degraded', [healthy, degraded], 0, 'test/b degraded, Hot (Because): Hot at 42; remedy: reset'],
    ['one unknown', [healthy, degraded, unknown], 2, 'test/c unknown, Blind (Because): Blind at 42; remedy: reset'],
    [
      'one that was degraded and is not read',
      [stale],
      2,
      'test/e unknown, DeviceNotRead (Stale): last reading is 1 min old; remedy: inspect',
    ],
    [
      'one that was degraded and is gone',
      [lost],
      2,
      'test/f unknown, DeviceMissing (NotListed): was listed before, but the latest complete reading of its family does not list it; remedy: inspect',
    ],
    ['one that was degraded and is gone, which does not count', [unsaid], 2, 'test/g unknown'],
    ['one unhealthy', [unknown, unhealthy], 1, 'test/d unhealthy, Down/1 (Because): Down at 42; remedy: reset'],
    [
      'several unhealthy',
      [unhealthy, unhealthy, unhealthy],
      1,
      '3 unhealthy, first: test/d unhealthy, Down/1 (Because): Down at 42; remedy: reset',
    ],
  ])('with %s', (_, devices, exitCode, message) => {
    expect(nodeProblem({ devices, families: READ, expected: [] })).toEqual({ exitCode, message });
  });
});

describe('one condition of the node', () => {
  const NOW_MS = 1_000_000;
  const missing = { ...unhealthy, key: 'test/m', missingSince: '2026-03-01T12:00:00Z' };
  const old = { ...unknown, stale: true };
  const unread = { family: 'test', expected: 2 };

  it.each([
    ['all healthy', [healthy], [], [0, 0, 0]],
    ['one degraded', [healthy, degraded], [], [0, 0, 0]],
    ['one unhealthy', [healthy, unhealthy], [], [1, 0, 0]],
    ['one unknown, which may be unhealthy', [healthy, unknown], [], [2, 1, 0]],
    ['one that was not read, which may be missing', [healthy, old], [], [2, 1, 2]],
    ['one unhealthy and one unknown', [unhealthy, unknown], [], [1, 1, 0]],
    ['one missing', [healthy, missing], [], [1, 0, 1]],
    ['too few', [healthy], [{ ...unread, present: 1 }], [0, 0, 1]],
    ['none of those that are expected', [], [{ ...unread, present: 0 }], [2, 2, 1]],
    ['a family that cannot be read', [healthy], [unread], [2, 1, 2]],
    ['no device and no expectation', [], [], [2, 2, 2]],
    ['no device where none is expected', [], [{ family: 'test', expected: 0, present: 0 }], [0, 0, 0]],
  ] as const)('with %s', (_, devices, expected, exitCodes) => {
    const ask = (question: Parameters<typeof nodeCondition>[0]): number =>
      nodeCondition(question, { devices, families: READ, expected }, NOW_MS).exitCode;
    expect([ask('DevicesUnhealthy'), ask('DevicesUnknown'), ask('DevicesMissing')]).toEqual(exitCodes);
  });

  it('is an event for two minutes after a device became worse, and never unknown', () => {
    const changed = (device: JudgedState, secondsAgo: number): JudgedState => ({
      ...device,
      health: { ...device.health, since: new Date(NOW_MS - secondsAgo * 1_000).toISOString() },
    });
    const event = (...devices: readonly JudgedState[]) =>
      nodeCondition('DeviceNotHealthy', { devices, families: READ, expected: [unread] }, NOW_MS);
    expect(event(changed(degraded, 119))).toEqual({ exitCode: 1, message: 'test/b degraded, Hot (Because): Hot at 42; remedy: reset' });
    expect(event(changed(degraded, 120), changed(healthy, 0))).toEqual({
      exitCode: 0,
      message: 'no device changed',
    });
    expect(event()).toMatchObject({ exitCode: 0 });
  });
});
