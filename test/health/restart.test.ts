import { describe, expect, it } from 'vitest';
import { found, gone, OneDevice, policyFor, START, spec, types } from './one-device.ts';

const specs = [
  spec('Xid', { class: 'latched', outOfBand: true, recoveryMs: 10_000 }),
  spec('Latched', { class: 'latched', recoveryMs: 20_000 }),
  spec('Down', { forMs: 30_000, recoveryMs: 30_000 }),
  spec('Errors', { class: 'rate', threshold: { growth: 10, windowMs: 3_600_000 } }),
];

describe('after a restart of the agent', () => {
  it('a condition reported once is kept, even when the new probe does not know it', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Xid', { instance: '79' }));
    one.restart();
    for (let at = 10; at < 5000; at += 10) expect(one.read(at).state).toBe('unhealthy');
    expect(one.story).toEqual(['raised Xid/79', 'unknown>unhealthy']);
  });

  it('it ends when the new probe denies it, with or without naming the instance', () => {
    for (const over of [gone('Xid'), gone('Xid', '79')]) {
      const one = new OneDevice(policyFor(specs));
      one.read(0, found('Xid', { instance: '79' }));
      one.restart();
      one.read(5, over);
      expect(one.read(14.9, over).state).toBe('unhealthy');
      expect(one.wait(15).state).toBe('unhealthy');
      expect(one.read(15, over).state).toBe('healthy');
    }
  });

  it('it ends in the ordinary way once the new probe has seen it too', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Xid', { instance: '79' }));
    one.restart();
    one.read(5, found('Xid', { instance: '79' }));
    one.read(10, gone('Xid'));
    expect(one.read(20, gone('Xid')).state).toBe('healthy');
  });

  it('a condition whose register was cleared during the restart ends after the quiet time', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Latched'));
    one.restart();
    expect(one.read(10, gone('Latched')).state).toBe('unhealthy');
    expect(one.read(30, gone('Latched')).state).toBe('healthy');
  });

  it('no event is repeated', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Xid', { instance: '79' }), found('Latched'));
    one.restart();
    one.read(10, found('Xid', { instance: '79' }), found('Latched'));
    expect(one.last?.events).toEqual([]);
    expect(one.engine.announce()).toEqual([]);
    expect(one.engine.eventsSince(0)).toHaveLength(3);
  });

  it('event ids, since and the count of transitions continue', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Latched'));
    one.restart();
    const verdict = one.read(10, found('Latched'));
    expect(verdict).toMatchObject({ sinceMs: START, transitions: { unhealthy: 1 }, conditions: [{ sinceMs: START }] });
    one.read(20, gone('Latched'));
    one.read(40, gone('Latched'));
    expect(one.events.map((event) => event.id)).toEqual([1, 2, 3, 4]);
  });

  it('a counter continues from its baseline', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Errors', { count: 1000 }));
    one.restart();
    expect(one.read(10, found('Errors', { count: 1011 })).state).toBe('unhealthy');
  });

  it('a short absence counts as hold and quiet time, a long one as neither', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Down'));
    one.restart();
    expect(one.read(30, found('Down')).state).toBe('unhealthy');
    const other = new OneDevice(policyFor(specs));
    other.read(0, found('Down'));
    other.restart();
    expect(other.read(3000, found('Down')).state).toBe('healthy');
    expect(other.read(3030, found('Down')).state).toBe('unhealthy');
  });

  it('a long absence does not shorten a running quiet time, even when the first collection reads nothing', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Latched'));
    one.read(10, gone('Latched'));
    one.read(25, gone('Latched'));
    one.restart();
    expect(one.awaited(1000, 1000).state).toBe('unhealthy');
    expect(one.read(1001, gone('Latched')).state).toBe('unhealthy');
    expect(one.read(1004.9, gone('Latched')).state).toBe('unhealthy');
    expect(one.read(1005, gone('Latched')).state).toBe('healthy');
  });

  it('a device that an earlier run read keeps its verdict for the stale age from the start', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0);
    one.restart();
    expect(one.awaited(5000, 5000)).toMatchObject({ state: 'healthy', conditions: [] });
    expect(one.nextCheck).toBe(5060);
    expect(one.awaited(5059.999, 5000).state).toBe('healthy');
    expect(one.awaited(5060, 5000)).toMatchObject({ state: 'unknown', conditions: [{ type: 'DeviceNotRead', reason: 'Stale' }] });
    expect(one.read(5070).state).toBe('healthy');
  });

  it('a device that was not read before the restart is unknown until it is read', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0);
    expect(one.wait(60).state).toBe('unknown');
    one.restart();
    expect(one.awaited(70, 70)).toMatchObject({ state: 'unknown', sinceMs: START + 60_000, conditions: [{ type: 'DeviceNotRead' }] });
    expect(one.last?.events).toEqual([]);
    expect(one.read(80).state).toBe('healthy');
  });

  it('a device that was never read gets no grace time', () => {
    const one = new OneDevice(policyFor(specs));
    one.neverRead(0);
    one.restart();
    expect(one.awaited(10, 10)).toMatchObject({ state: 'unknown', conditions: [{ reason: 'NeverRead' }] });
  });

  it('earlier conditions stay unverified until the device is read', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Latched'), found('Xid', { instance: '79' }));
    one.restart();
    const { conditions } = one.awaited(10, 10);
    expect(conditions.map(({ unverifiedSinceMs }) => unverifiedSinceMs)).toEqual([START + 10_000, START + 10_000]);
    expect(one.read(20, gone('Latched'), found('Xid', { instance: '79' })).conditions).toMatchObject([
      { type: 'Latched', recovering: { sinceMs: START + 20_000, untilMs: START + 40_000 } },
      { type: 'Xid' },
    ]);
  });

  it('a device that is not found again is known, so that it can be listed as missing', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0);
    one.restart();
    expect(one.engine.knownDevices()).toEqual([{ device: one.device, readAtMs: START }]);
    expect(types(one.missing(10))).toEqual(['DeviceMissing']);
  });

  it('the retention of a missing device continues over the restart, even when DeviceMissing does not count', () => {
    for (const enabled of [true, false]) {
      const one = new OneDevice(policyFor(specs, { conditions: { '*.DeviceMissing': { enabled } } }));
      one.read(0);
      one.missing(10);
      one.missing(20);
      one.restart();
      expect(one.engine.knownDevices()).toEqual([{ device: one.device, readAtMs: START, missingSinceMs: START + 10_000 }]);
      one.missing(80_000);
      const left = (seconds: number): number => {
        one.engine.judge({ devices: [] }, START + seconds * 1000);
        return one.engine.knownDevices().length;
      };
      expect([left(86_409), left(86_410)]).toEqual([1, 0]);
    }
  });

  it('a missing device stays missing until a collection completes', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0);
    one.missing(10);
    one.restart();
    for (const at of [20, 30, 50, 60, 79]) expect(one.awaited(at, 20).state).toBe('unhealthy');
    expect(one.awaited(80, 20).state).toBe('unhealthy');
    expect(one.events.filter(({ transition }) => transition === 'cleared')).toEqual([]);
    expect(one.read(90).state).toBe('unhealthy');
    expect(one.read(120).state).toBe('healthy');
  });

  it('a condition that the new configuration disables ends at once', () => {
    const one = new OneDevice(policyFor(specs));
    one.read(0, found('Latched'));
    const next = new OneDevice(policyFor(specs, { conditions: { 'test.Latched': { enabled: false } } }), one.engine.state());
    expect(next.read(1, found('Latched')).state).toBe('healthy');
    expect(next.story).toEqual(['cleared Latched', 'unhealthy>healthy']);
  });

  it('a condition that the new configuration disables no longer counts as flapping', () => {
    const one = flapped();
    expect(types(one.read(230))).toEqual(['Flapping/Latched']);
    const next = new OneDevice(policyFor(specs, { conditions: { 'test.Latched': { enabled: false } } }), one.engine.state());
    expect(next.read(231, found('Latched')).state).toBe('healthy');
    expect(next.neverRead(232).conditions).toEqual([]);
  });

  it('a flapping condition has the severity of the new configuration', () => {
    const next = new OneDevice(policyFor(specs, { conditions: { 'test.Latched': { severity: 'info' } } }), flapped().engine.state());
    expect(next.read(231)).toMatchObject({ state: 'healthy', conditions: [{ type: 'Flapping', severity: 'info' }] });
  });
});

/** A device on which one condition was raised and cleared three times. */
function flapped(): OneDevice {
  const one = new OneDevice(policyFor(specs));
  for (const at of [0, 100, 200]) {
    one.read(at, found('Latched'));
    one.read(at + 5, gone('Latched'));
    one.read(at + 25, gone('Latched'));
  }
  return one;
}
