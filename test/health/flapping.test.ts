import { describe, expect, it } from 'vitest';
import { found, gone, OneDevice, policyFor, START, spec, types } from './one-device.ts';

const config = { flapping: { count: 3, window: '10m', quiet: '5m' }, 'stale-after': '1h' };
const specs = [spec('Down', { recoveryMs: 10_000 }), spec('Hot', { severity: 'degraded' }), spec('Busy', { class: 'in-progress' })];

/** One occurrence of ten seconds. */
function spell(one: OneDevice, at: number, type = 'Down') {
  one.read(at, found(type, { instance: '1' }));
  one.read(at + 10, gone(type));
  return one.read(at + 20, gone(type));
}

describe('flapping', () => {
  it('is raised when a condition becomes active for the third time within the window, and stays until it was quiet', () => {
    const one = new OneDevice(policyFor(specs, config));
    spell(one, 0);
    expect(spell(one, 100).state).toBe('healthy');
    const verdict = spell(one, 200);
    expect(verdict).toMatchObject({
      state: 'unhealthy',
      conditions: [{ type: 'Flapping', instance: 'Down/1', severity: 'fatal', message: 'Down/1 began 3 times within 3 min 20 s' }],
    });
    expect(verdict.conditions[0]?.recovering, 'quiet since the last spell ended').toEqual({
      sinceMs: START + 220_000,
      untilMs: START + 520_000,
    });
    expect(one.read(519, gone('Down')).state).toBe('unhealthy');
    expect(one.wait(521).state, 'not by time alone').toBe('unhealthy');
    expect(one.read(522, gone('Down')).state).toBe('healthy');
    expect(one.story.filter((line) => line.includes('Flapping'))).toEqual(['raised Flapping/Down/1', 'cleared Flapping/Down/1']);
  });

  it('is not raised by occurrences that are too far apart', () => {
    const one = new OneDevice(policyFor(specs, config));
    for (const at of [0, 310, 620, 930, 1240]) expect(spell(one, at).state).toBe('healthy');
  });

  it('returns with the next occurrence while the window still holds enough of them', () => {
    const one = new OneDevice(policyFor(specs, { ...config, flapping: { count: 3, window: '1h', quiet: '1m' } }));
    for (const at of [0, 100, 200]) spell(one, at);
    expect(one.read(300, gone('Down')).state).toBe('healthy');
    expect(types(spell(one, 1000))).toEqual(['Flapping/Down/1']);
  });

  it('is held by a quiet time longer than the window', () => {
    const one = new OneDevice(policyFor(specs, { ...config, flapping: { count: 2, window: '3m', quiet: '30m' } }));
    spell(one, 0);
    spell(one, 100);
    expect(one.read(1919, gone('Down')).state).toBe('unhealthy');
    expect(one.read(1920, gone('Down')).state).toBe('healthy');
  });

  it('has the severity of the condition that flaps, or the configured one', () => {
    const one = new OneDevice(policyFor(specs, config));
    for (const at of [0, 100, 200]) spell(one, at, 'Hot');
    expect(one.read(230)).toMatchObject({ state: 'degraded', conditions: [{ type: 'Flapping', severity: 'degraded' }] });
    const lax = new OneDevice(policyFor(specs, { ...config, conditions: { '*.Flapping': { severity: 'info' } } }));
    for (const at of [0, 100, 200]) spell(lax, at);
    expect(lax.read(230)).toMatchObject({ state: 'healthy', conditions: [{ type: 'Flapping', severity: 'info' }] });
  });

  it('is not raised for work in progress', () => {
    const one = new OneDevice(policyFor(specs, config));
    for (const at of [0, 100, 200, 300]) expect(spell(one, at, 'Busy').state).toBe('healthy');
  });

  it('does not count a return within the quiet time of one occurrence', () => {
    const one = new OneDevice(policyFor(specs, config));
    for (let at = 0; at < 100; at += 10) one.read(at, at % 20 === 0 ? found('Down') : gone('Down'));
    expect(one.read(120, gone('Down')).state).toBe('healthy');
  });

  it('is not cleared while nothing is read: unobserved time is not quiet', () => {
    const one = new OneDevice(policyFor(specs, { ...config, 'stale-after': '1m' }));
    for (const at of [0, 100, 200]) spell(one, at);
    expect(one.wait(600).state).toBe('unhealthy');
    for (let at = 610; at < 900; at += 10) expect(one.read(at, gone('Down')).state).toBe('unhealthy');
    expect(one.read(900, gone('Down')).state).toBe('healthy');
  });

  it('is not cleared by reads that do not tell whether the condition holds: that time is not quiet', () => {
    const one = new OneDevice(policyFor(specs, config));
    for (const at of [0, 100, 200]) spell(one, at);
    for (let at = 230; at <= 3_600; at += 10) {
      const told = at % 20 === 0 ? [found('Down', { instance: '1', status: 'unknown' })] : [];
      expect(types(one.read(at, ...told))).toEqual(['Flapping/Down/1']);
    }
    // Ten seconds were quiet before.
    for (let at = 3_610; at < 3_900; at += 10) expect(one.read(at, gone('Down')).state).toBe('unhealthy');
    expect(one.read(3_900, gone('Down')).state).toBe('healthy');
  });

  it('is cleared only by the source of the condition that flaps', () => {
    const one = new OneDevice(policyFor([spec('Down', { recoveryMs: 10_000, outOfBand: true })], config));
    for (const at of [0, 100, 200]) spell(one, at);
    expect(one.unread(519, gone('Down', '1')).state).toBe('unhealthy');
    expect(one.unread(520, gone('Down', '1')).state).toBe('healthy');
  });

  it('is not cleared while no reading reports the condition that flaps and still counts', () => {
    const one = new OneDevice(policyFor(specs, config));
    for (const at of [0, 100]) spell(one, at);
    one.read(200, found('Down', { instance: '1' }));
    for (let at = 210; at < 900; at += 10) expect(types(one.read(at))).toEqual(['Down/1', 'Flapping/Down/1']);
  });

  it('lasts as long as the last occurrence and the quiet time after it', () => {
    const one = new OneDevice(policyFor(specs, config));
    spell(one, 0);
    spell(one, 100);
    for (let at = 200; at < 3_000; at += 10) {
      expect(types(one.read(at, found('Down', { instance: '1' }))), `at ${at}`).toContain('Flapping/Down/1');
      if (at === 2_000) one.restart();
    }
    one.read(3_000, gone('Down'));
    expect(types(one.read(3_010, gone('Down')))).toEqual(['Flapping/Down/1']);
    expect(one.read(3_309, gone('Down')).state).toBe('unhealthy');
    expect(one.read(3_310, gone('Down')).state).toBe('healthy');
    expect(one.story.filter((line) => line.includes('Flapping'))).toEqual(['raised Flapping/Down/1', 'cleared Flapping/Down/1']);
  });

  it('is ignored with the condition that flaps', () => {
    const ignore = [{ device: 'test/*', condition: 'Down', reason: 'bad cable on order', until: '2999-01-01' }];
    const one = new OneDevice(policyFor(specs, { ...config, ignore }));
    for (const at of [0, 100, 200]) expect(spell(one, at).state).toBe('healthy');
    expect(one.read(230).ignored).toMatchObject([{ type: 'Flapping', ignoreReason: 'bad cable on order' }]);
  });

  it('is remembered over a restart', () => {
    const one = new OneDevice(policyFor(specs, config));
    spell(one, 0);
    spell(one, 100);
    one.restart();
    expect(types(spell(one, 200))).toEqual(['Flapping/Down/1']);
  });

  it('is raised for a device that repeatedly goes missing', () => {
    const one = new OneDevice(policyFor(specs, config));
    for (const at of [0, 100, 200]) {
      one.read(at);
      one.read(at + 40);
      one.missing(at + 50);
      one.missing(at + 60);
    }
    expect(types(one.missing(270))).toEqual(['DeviceMissing', 'Flapping/DeviceMissing']);
    one.read(280);
    expect(types(one.read(310))).toEqual(['Flapping/DeviceMissing']);
  });
});
