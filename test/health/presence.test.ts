import { describe, expect, it } from 'vitest';
import { createHealthEngine } from '../../src/health/engine/engine.ts';
import { createPolicy } from '../../src/health/policy/policy.ts';
import type { SourceFindings } from '../../src/model/device-record.ts';
import { device, found, gone, OneDevice, policyFor, readAt, START, spec, types } from './one-device.ts';

const specs = [spec('Down', { recoveryMs: 60_000 }), spec('Hot', { severity: 'degraded', forMs: 20_000 })];

describe('a device that is not read', () => {
  it('is unknown when it was never read, with the reason', () => {
    const one = new OneDevice(policyFor(specs));
    expect(one.neverRead(0)).toMatchObject({ state: 'unknown', conditions: [{ type: 'DeviceNotRead', reason: 'NeverRead' }] });
    expect(one.read(1).state).toBe('healthy');
    expect(one.story).toEqual(['raised DeviceNotRead', 'cleared DeviceNotRead', 'unknown>healthy']);
  });

  it('becomes unknown exactly at the stale age of the policy, and requests a judgement at that time', () => {
    const one = new OneDevice(policyFor(specs, { 'stale-after': '90s' }));
    one.read(10);
    expect(one.nextCheck).toBe(100);
    expect(one.wait(99.999).state).toBe('healthy');
    expect(one.wait(100)).toMatchObject({ state: 'unknown', conditions: [{ reason: 'Stale', message: 'last reading is 1 min old' }] });
    expect(one.events.at(-1)).toMatchObject({ from: 'healthy', to: 'unknown', reason: 'Stale' });
  });

  it('stays unhealthy when it was broken at its last read', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Down'));
    expect(one.wait(3600).state).toBe('unhealthy');
    expect(types(one.wait(7200))).toEqual(['Down', 'DeviceNotRead']);
  });

  it('is unknown when it was only degraded before', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Hot'));
    expect(one.read(20, found('Hot')).state).toBe('degraded');
    expect(one.wait(80).state).toBe('unknown');
  });

  it('counts neither hold time nor quiet time', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Down'));
    one.read(10, found('Hot'), gone('Down'));
    expect(types(one.wait(1000))).toEqual(['Down', 'DeviceNotRead']);
    expect(types(one.read(1001, found('Hot'), gone('Down')))).toEqual(['Down']);
    expect(types(one.read(1059, found('Hot'), gone('Down')))).toContain('Down');
  });

  it('has unverified conditions after the first collection that does not read it, and its reading is not renewed', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Down'), found('Hot'));
    const verdict = one.unread(10);
    expect(verdict.conditions).toMatchObject([{ type: 'Down', unverifiedSinceMs: START + 10_000 }]);
    expect(verdict.pending).toMatchObject([{ type: 'Hot', unverifiedSinceMs: START + 10_000 }]);
    expect(types(one.unread(59)), 'Hot was seen to hold for 10 s only').toEqual(['Down']);
    expect(types(one.unread(60))).toEqual(['Down', 'DeviceNotRead']);
    one.read(70, found('Down'), found('Hot'));
    expect(types(one.read(79, found('Down'), found('Hot')))).toEqual(['Down']);
    expect(types(one.read(80, found('Down'), found('Hot')))).toEqual(['Down', 'Hot']);
  });

  it('is unknown even if the operator ignores everything on it', () => {
    const rule = { device: '*', condition: '*', reason: 'quiet please', until: '2999-01-01' };
    const one = new OneDevice(policyFor(specs, { ignore: [rule] }));
    one.read(0);
    expect(one.wait(100)).toMatchObject({ state: 'unknown', conditions: [] });
    expect(one.events.at(-1)).toMatchObject({ to: 'unknown', reason: 'NotRead' });
  });

  it('does not change the verdicts of other devices', () => {
    const policy = policyFor(specs);
    const engine = createHealthEngine({ policy });
    const hung = readAt(device('hung'), START);
    const well = (at: number) => readAt(device('well'), at);
    engine.judge({ devices: [hung, well(START)] }, START);
    const { verdicts } = engine.judge({ devices: [hung, well(START + 60_000)] }, START + 60_000);
    expect([verdicts.get('test/hung')?.state, verdicts.get('test/well')?.state]).toEqual(['unknown', 'healthy']);
  });
});

describe('a missing device', () => {
  it('is unhealthy at once, and healthy again only after it was present for a while', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0);
    expect(one.missing(10)).toMatchObject({ state: 'unhealthy', conditions: [{ type: 'DeviceMissing', severity: 'fatal' }] });
    expect(one.missing(5000).state).toBe('unhealthy');
    expect(one.read(5010).state).toBe('unhealthy');
    expect(one.read(5039).state).toBe('unhealthy');
    expect(one.read(5040).state).toBe('healthy');
    expect(one.story).toEqual(['raised DeviceMissing', 'healthy>unhealthy', 'cleared DeviceMissing', 'unhealthy>healthy']);
  });

  it('keeps its conditions', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Down'));
    one.missing(10);
    expect(types(one.missing(500))).toEqual(['Down', 'DeviceMissing']);
    expect(types(one.read(510, gone('Down')))).toEqual(['Down', 'DeviceMissing']);
    expect(one.read(569, gone('Down')).state).toBe('unhealthy');
    expect(one.read(570, gone('Down')).state).toBe('healthy');
  });

  it('can get a hold time by the configuration, and is never healthy during it', () => {
    const one = new OneDevice(policyFor(specs, { conditions: { '*.DeviceMissing': { for: '20s' } } }));
    one.read(0);
    expect(one.missing(10)).toMatchObject({ state: 'unknown', conditions: [] });
    expect(one.events.at(-1)).toMatchObject({ from: 'healthy', to: 'unknown', reason: 'NotRead' });
    expect(one.nextCheck).toBe(30);
    expect(one.missing(30).state).toBe('unhealthy');
  });

  it('is unknown when DeviceMissing is ignored or has a lower severity', () => {
    const rule = { device: '*', condition: 'DeviceMissing', reason: 'on its way to the vendor', until: '2999-01-01' };
    const lighter = (severity: 'degraded' | 'info') => ({ conditions: { '*.DeviceMissing': { severity } } });
    const off = { conditions: { '*.DeviceMissing': { enabled: false } } };
    for (const config of [off, { ignore: [rule] }, lighter('degraded'), lighter('info')]) {
      const one = new OneDevice(policyFor(specs, config));
      one.read(0);
      expect(one.missing(10).state).toBe('unknown');
      one.read(20);
      expect(one.read(50).state).toBe('healthy');
    }
  });

  it('is forgotten after the retention time, and its conditions end', () => {
    const { policy } = createPolicy({ specs: { test: specs }, missingRetentionMs: 100_000 });
    const one = new OneDevice(policy);
    one.read(0, found('Down'));
    one.missing(10);
    const unlisted = one.engine.judge({ devices: [] }, START + 109_000);
    expect(unlisted.events).toEqual([]);
    expect(one.engine.knownDevices()).toMatchObject([{ device: { id: 'one' }, readAtMs: START }]);
    const forgotten = one.engine.judge({ devices: [] }, START + 110_000);
    expect(forgotten.events.map((event) => [event.transition, event.condition, event.message])).toEqual([
      [
        'cleared',
        'DeviceMissing',
        expect.stringMatching(/^it was withdrawn 1 min after it began, because the device is no longer listed; /),
      ],
      [
        'cleared',
        'Down',
        "it was withdrawn 1 min after it began, because the device is no longer listed; its last message was 'Down at 42'",
      ],
    ]);
    expect(one.engine.knownDevices()).toEqual([]);
    expect(one.read(200).state).toBe('healthy');
  });
});

describe('the next check', () => {
  it('is never later than the longest delay of a timer', () => {
    const rule = { device: '*', condition: 'DeviceMissing', reason: 'on its way to the vendor', until: '2999-01-01' };
    const one = new OneDevice(policyFor(specs, { ignore: [rule] }));
    one.read(0);
    one.missing(100);
    expect(one.nextCheck).toBe(100 + 86_400);
  });
});

describe('no data', () => {
  const blind = [spec('Blind', { class: 'no-data' }), spec('Down')];

  it('of a fatal kind makes a device unknown, not unhealthy', () => {
    const one = new OneDevice(policyFor(blind));
    expect(one.read(0, found('Blind')).state).toBe('unknown');
    expect(one.story).toEqual(['raised Blind']);
    expect(one.read(1, found('Blind'), found('Down')).state).toBe('unhealthy');
    expect(one.read(2, gone('Blind'), gone('Down')).state).toBe('healthy');
  });
});

describe('the wall clock', () => {
  it('may be set back, and no duration becomes longer than the policy allows from now', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0);
    one.read(5000, found('Hot'));
    one.read(100, found('Hot'));
    expect(one.read(119, found('Hot')).state).toBe('healthy');
    expect(one.read(120, found('Hot')).state).toBe('degraded');
  });

  it.each([3_600, -3_600])('may be set by %i seconds without changing any duration when the monotonic clock is known', (stepS) => {
    const engine = createHealthEngine({ policy: policyFor(specs) });
    const read = (atMs: number, monotonicMs: number, ...findings: ReturnType<typeof found>[]) => [
      readAt(device(), atMs, findings, monotonicMs),
    ];
    engine.judge({ devices: read(START, 0), monotonicMs: 0 }, START);
    engine.judge({ devices: read(START + 10_000, 10_000, found('Hot')), monotonicMs: 10_000 }, START + 10_000);
    const after = START + stepS * 1000;
    const same = engine.judge({ devices: read(START + 10_000, 10_000, found('Hot')), monotonicMs: 15_000 }, after + 15_000);
    expect(same.verdicts.get('test/one')?.state).toBe('healthy');
    expect(same.nextCheckMs).toBe(after + 30_000);
    const due = engine.judge({ devices: read(after + 30_000, 30_000, found('Hot')), monotonicMs: 30_000 }, after + 30_000);
    expect(due.verdicts.get('test/one')).toMatchObject({ state: 'degraded', conditions: [{ sinceMs: after + 10_000 }] });
  });

  it.each([3_600, -3_600])(
    'may be set by %i seconds while an agent waits for its first reading, which is late no sooner and no later',
    (stepS) => {
      const before = createHealthEngine({ policy: policyFor(specs) });
      const { read, ...one } = readAt(device(), START);
      before.judge({ devices: [{ ...one, read: read as SourceFindings }], monotonicMs: 0 }, START);
      const engine = createHealthEngine({ policy: policyFor(specs), state: before.state() });
      const awaited = [{ ...one, awaitedSinceMs: START + 100_000 }];
      const stateAt = (atS: number, steppedS: number): string | undefined =>
        engine.judge({ devices: awaited, monotonicMs: atS * 1000 }, START + (atS + steppedS) * 1000).verdicts.get('test/one')?.state;
      expect(stateAt(100, 0)).toBe('healthy');
      expect(stateAt(110, stepS)).toBe('healthy');
      expect(stateAt(159, stepS)).toBe('healthy');
      expect(stateAt(160, stepS)).toBe('unknown');
    },
  );
});
