import { describe, expect, it } from 'vitest';
import { OWN_CONDITIONS } from '../../src/health/policy/own-conditions.ts';
import type { ConditionSpec } from '../../src/model/health.ts';
import { describeConditions } from './condition-walk.ts';
import { found, gone, holder, OneDevice, policyFor, START, spec, types } from './one-device.ts';

const EVERY_CLASS: readonly ConditionSpec[] = [
  spec('LatchedNow', { class: 'latched' }),
  spec('LatchedSlow', { class: 'latched', severity: 'degraded', forMs: 30_000, recoveryMs: 60_000 }),
  spec('LevelNow'),
  spec('LevelSlow', { severity: 'degraded', forMs: 30_000, recoveryMs: 60_000 }),
  spec('LevelForTheRecord', { severity: 'info', recoveryMs: 5_000 }),
  spec('RateOfAny', { class: 'rate', threshold: { growth: 0, windowMs: 3_600_000 } }),
  spec('RateSlow', {
    class: 'rate',
    severity: 'degraded',
    threshold: { growth: 120, windowMs: 60_000 },
    forMs: 90_000,
    recoveryMs: 60_000,
  }),
  spec('RateUnlimited', { class: 'rate' }),
  spec('Busy', { class: 'in-progress', forMs: 60_000 }),
  spec('NoDataFatal', { class: 'no-data', forMs: 20_000, recoveryMs: 1_000 }),
  spec('NoDataDegraded', { class: 'no-data', severity: 'degraded' }),
];

describeConditions('test', EVERY_CLASS);

describe('one condition', () => {
  it('ends when a reading denies it, and its time starts again', () => {
    const one = new OneDevice(policyFor([spec('Down', { forMs: 30_000 })]));
    one.read(0, gone('Down'));
    one.read(10, found('Down'));
    one.read(30, gone('Down'));
    one.read(35, found('Down'));
    expect(one.read(64, found('Down')).state).toBe('healthy');
    expect(one.read(65, found('Down')).state).toBe('unhealthy');
  });

  it('asks to be judged again at the very moment its time is over', () => {
    const one = new OneDevice(policyFor([spec('Down', { forMs: 30_000, recoveryMs: 45_000 })]));
    one.read(10, found('Down'));
    expect(one.nextCheck).toBe(40);
    expect(one.wait(39.999).state).toBe('healthy');
    expect(one.wait(40).state).toBe('unhealthy');
    expect(one.nextCheck, 'staleness comes next').toBe(70);
    one.read(50, gone('Down'));
    expect(one.nextCheck, 'it is not withdrawn by time').toBe(110);
    expect(one.wait(95)).toMatchObject({
      state: 'unhealthy',
      conditions: [{ recovering: { sinceMs: START + 50_000, untilMs: START + 95_000 } }],
    });
    expect(one.read(95, gone('Down')).state).toBe('healthy');
  });

  it('names its cause, while both count and the cause is not less severe', () => {
    const one = new OneDevice(
      policyFor([
        spec('Lost', { consequences: ['Code/79'] }),
        spec('Code', { class: 'latched' }),
        spec('Mild', { severity: 'info', consequences: ['Code'] }),
      ]),
    );
    const code = (instance: string): ReturnType<typeof found> => found('Code', { instance });
    const causes = (verdict: ReturnType<OneDevice['read']>): object =>
      Object.fromEntries(verdict.conditions.map(({ type, instance = '', cause }) => [`${type}${instance}`, cause]));
    expect(causes(one.read(0, code('79'), found('Mild')))).toEqual({ Code79: undefined, Mild: undefined });
    expect(causes(one.read(1, code('79'), code('80'), found('Lost')))).toEqual({
      Lost: undefined,
      Code79: 'Lost',
      Code80: undefined,
      Mild: undefined,
    });
    expect(causes(one.read(2, code('79'), gone('Lost'), gone('Mild')))).toEqual({ Code79: undefined, Code80: undefined });
  });

  it('is listed as pending before it counts, with the time at which it will count', () => {
    const one = new OneDevice(policyFor([spec('Down', { forMs: 30_000 }), spec('Hot', { forMs: 10_000, severity: 'degraded' })]));
    const verdict = one.read(0, found('Down'), found('Hot', { instance: '1' }));
    expect(verdict).toMatchObject({
      state: 'healthy',
      conditions: [],
      pending: [
        { type: 'Hot', instance: '1', severity: 'degraded', sinceMs: START, countsAtMs: START + 10_000 },
        { type: 'Down', severity: 'fatal', sinceMs: START, countsAtMs: START + 30_000 },
      ],
    });
    expect(one.wait(10)).toMatchObject({ conditions: [{ type: 'Hot' }], pending: [{ type: 'Down' }] });
    expect(one.read(20, gone('Down'), found('Hot', { instance: '1' }))).not.toHaveProperty('pending');
  });

  it('stays and is marked unverified while no reading reports it', () => {
    const one = new OneDevice(policyFor([spec('Down', { recoveryMs: 30_000 })]));
    one.read(0, found('Down'));
    expect(one.read(10).conditions).toMatchObject([{ type: 'Down', sinceMs: START, unverifiedSinceMs: START + 10_000 }]);
    expect(one.read(5_000).conditions).toMatchObject([{ type: 'Down', unverifiedSinceMs: START + 10_000 }]);
    expect(one.read(5_010, found('Down')).conditions[0]).not.toHaveProperty('unverifiedSinceMs');
    one.read(5_020, gone('Down'));
    expect(one.read(5_030).conditions).toMatchObject([{ unverifiedSinceMs: START + 5_030_000, recovering: expect.anything() }]);
    expect(one.read(5_055, gone('Down')).state, 'ten seconds of the quiet time were not seen').toBe('unhealthy');
    expect(one.read(5_075, gone('Down')).state).toBe('healthy');
    expect(one.story).toEqual(['raised Down', 'unknown>unhealthy', 'cleared Down', 'unhealthy>healthy']);
  });

  it('does not become active while no reading reports it', () => {
    const one = new OneDevice(policyFor([spec('Down', { forMs: 30_000 })]));
    one.read(0, found('Down'));
    for (let at = 10; at < 300; at += 10) expect(one.read(at)).toMatchObject({ state: 'healthy', pending: [{ type: 'Down' }] });
  });

  it('keeps counting when it returns within the quiet time, as one occurrence with one event', () => {
    const one = new OneDevice(policyFor([spec('Down', { recoveryMs: 60_000 })]));
    one.read(0, found('Down'));
    one.read(10, gone('Down'));
    expect(one.read(50, found('Down')).conditions[0]?.sinceMs).toBe(START);
    one.read(60, gone('Down'));
    expect(one.read(119, gone('Down')).state).toBe('unhealthy');
    expect(one.read(120, gone('Down')).state).toBe('healthy');
    expect(one.story).toEqual(['raised Down', 'unknown>unhealthy', 'cleared Down', 'unhealthy>healthy']);
  });

  it('counts time with unknown status neither as hold time nor as quiet time', () => {
    const one = new OneDevice(policyFor([spec('Down', { forMs: 30_000, recoveryMs: 30_000 })]));
    const unknown = found('Down', { status: 'unknown' });
    one.read(0, found('Down'));
    one.read(10, found('Down'));
    one.read(20, unknown);
    expect(one.read(35, unknown).state).toBe('healthy');
    expect(one.nextCheck, 'nothing matures while nothing is known').toBe(95);
    one.read(40, found('Down'));
    expect(one.read(54, found('Down')).state).toBe('healthy');
    expect(one.read(55, found('Down')).state).toBe('unhealthy');
    expect(one.read(56, unknown).state).toBe('unhealthy');
    one.read(60, gone('Down'));
    one.read(70, unknown);
    expect(one.read(95, gone('Down')).state).toBe('unhealthy');
    expect(one.read(99, gone('Down')).state).toBe('unhealthy');
    expect(one.read(100, gone('Down')).state).toBe('healthy');
  });

  it('does not start with status unknown', () => {
    const one = new OneDevice(policyFor([spec('Down')]));
    expect(one.read(0, found('Down', { status: 'unknown' }))).toMatchObject({ state: 'healthy', conditions: [] });
  });

  it('is kept per instance, and cleared for all instances by a false without one', () => {
    const one = new OneDevice(policyFor([spec('Xid', { class: 'latched' })]));
    const both = [found('Xid', { instance: '79' }), found('Xid', { instance: '48' })];
    expect(types(one.read(0, ...both))).toEqual(['Xid/48', 'Xid/79']);
    expect(types(one.read(1, found('Xid', { instance: '79' })))).toEqual(['Xid/48', 'Xid/79']);
    expect(types(one.read(2, found('Xid', { instance: '79' }), gone('Xid', '48')))).toEqual(['Xid/79']);
    expect(types(one.read(3, ...both))).toEqual(['Xid/79', 'Xid/48']);
    expect(types(one.read(4, found('Xid', { instance: '79' }), gone('Xid')))).toEqual(['Xid/79']);
    expect(types(one.read(5, gone('Xid')))).toEqual([]);
  });

  it('takes the worse of two findings on itself', () => {
    const one = new OneDevice(policyFor([spec('Down', { severity: 'info' })]));
    const verdict = one.read(
      0,
      found('Down', { severity: 'degraded' }),
      found('Down', { status: false }),
      found('Down', { severity: 'fatal' }),
    );
    expect(verdict).toMatchObject({ state: 'unhealthy', conditions: [{ severity: 'fatal' }] });
  });

  it('takes severity and remedy from the finding if present, but a configured severity first', () => {
    const finding = found('Xid', { instance: '13', severity: 'info', remedy: 'restart-workload' });
    const one = new OneDevice(policyFor([spec('Xid')]));
    expect(one.read(0, finding)).toMatchObject({ state: 'healthy', conditions: [{ severity: 'info', remedy: 'restart-workload' }] });
    const strict = new OneDevice(policyFor([spec('Xid')], { conditions: { 'test.Xid/13': { severity: 'degraded' } } }));
    expect(strict.read(0, finding).state).toBe('degraded');
    expect(strict.read(1, found('Xid', { instance: '14', severity: 'info' }), gone('Xid', '13')).state).toBe('healthy');
  });

  it('is recorded but takes no device out of service when no family declared it', () => {
    const one = new OneDevice(policyFor([]));
    expect(one.read(0, found('Invented'))).toMatchObject({ state: 'healthy', conditions: [{ type: 'Invented', severity: 'info' }] });
  });

  it('is unknown when the count of a finding is not a valid number', () => {
    const one = new OneDevice(policyFor([spec('Errors', { class: 'rate' })]));
    const bad = [Number.NaN, -1, Number.POSITIVE_INFINITY].map((count) => found('Errors', { count }));
    for (const [at, finding] of [...bad, ...bad].entries()) expect(one.read(at, finding).conditions).toEqual([]);
  });

  it('reports with each event the time, condition, reason, remedy and holders', () => {
    const one = new OneDevice(policyFor([spec('Down')]));
    one.read(0);
    one.read(5, found('Down', { instance: '1' }));
    const { numaNodes: _, ...told } = holder;
    const base = { device: 'test/one', family: 'test', timeMs: START + 5000, holders: [told], message: 'Down at 42', remedy: 'reset' };
    expect(one.events).toMatchObject([
      { ...base, id: 1, transition: 'raised', condition: 'Down', instance: '1', severity: 'fatal', reason: 'Because' },
      { ...base, id: 2, transition: 'state', from: 'healthy', to: 'unhealthy', condition: 'Down', reason: 'Because' },
    ]);
  });

  it('reports a cleared condition in the past tense, without a remedy', () => {
    const one = new OneDevice(policyFor([spec('Down', { recoveryMs: 30_000 })]));
    one.read(0, found('Down'));
    one.read(20, gone('Down'));
    one.read(50.4, gone('Down'));
    expect(one.events[2]).toMatchObject({
      transition: 'cleared',
      message: "it was withdrawn 50 s after it began; its last message was 'Down at 42'",
      remedy: 'none',
    });
  });

  it('reports an ended fault that leads the verdict in the past tense', () => {
    const one = new OneDevice(policyFor([spec('Down'), spec('Slow', { severity: 'degraded', recoveryMs: 60_000 })]));
    one.read(0, found('Down'), found('Slow'));
    one.read(10, gone('Down'), gone('Slow'));
    expect(one.events.at(-1)).toMatchObject({
      from: 'unhealthy',
      to: 'degraded',
      message: "it ended and waits to be withdrawn; its last message was 'Slow at 42'",
      remedy: 'none',
    });
  });

  it('lists active conditions with the worst first', () => {
    const one = new OneDevice(policyFor(EVERY_CLASS));
    const verdict = one.read(0, found('LevelForTheRecord'), found('NoDataDegraded'), found('LevelNow'), found('LatchedNow'));
    expect(types(verdict)).toEqual(['LatchedNow', 'LevelNow', 'NoDataDegraded', 'LevelForTheRecord']);
  });
});

describe('a condition of another source', () => {
  const policy = policyFor([spec('Down', { recoveryMs: 10_000 }), spec('Xid', { class: 'latched', outOfBand: true, recoveryMs: 10_000 })]);

  it('is judged by that source alone, and a condition of the device by the device alone', () => {
    const one = new OneDevice(policy);
    one.read(0, found('Down'), found('Xid'));
    expect(types(one.unread(10, gone('Xid'), gone('Down')))).toEqual(['Down', 'Xid']);
    expect(types(one.unread(20, gone('Xid'), gone('Down')))).toEqual(['Down']);
    expect(one.last?.verdicts.get('test/one')?.conditions).toMatchObject([{ unverifiedSinceMs: START + 10_000 }]);
  });

  it('counts even when the device is not read, and does not renew the device', () => {
    const one = new OneDevice(policy);
    one.read(0);
    expect(one.unread(50, found('Xid')).state).toBe('unhealthy');
    expect(types(one.unread(60, found('Xid')))).toEqual(['Xid', 'DeviceNotRead']);
    expect(one.unread(60, found('Xid')).conditions[0]).not.toHaveProperty('unverifiedSinceMs');
  });

  it('becomes unknown when its source has reported nothing for the stale age', () => {
    const one = new OneDevice(policy);
    one.read(0, found('Xid'));
    expect(one.wait(59.999).conditions[0]).not.toHaveProperty('unverifiedSinceMs');
    expect(one.wait(60).conditions[0]).toMatchObject({ type: 'Xid', unverifiedSinceMs: START + 60_000 });
  });
});

describe('conditions that every device can have', () => {
  it('are declared like those of a family', () => {
    for (const own of OWN_CONDITIONS) expect(own.meaning.length * own.source.length * own.reasons.length).toBeGreaterThan(0);
  });
});
