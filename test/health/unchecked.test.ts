import { describe, expect, it } from 'vitest';
import { found, gone, OneDevice, policyFor, spec } from './one-device.ts';

const policy = policyFor([
  spec('Ras', { recoveryMs: 10_000 }),
  spec('Hot', { severity: 'degraded' }),
  spec('Unreachable', { class: 'no-data', forMs: 30_000 }),
]);
const unknown = (type: string, instance?: string) =>
  ({
    type,
    status: 'unknown',
    reason: 'Unreadable',
    message: `${type} cannot be read`,
    ...(instance === undefined ? {} : { instance }),
  }) as const;

describe('a fatal condition that no read could judge so far', () => {
  it('is named beside the verdict, over restarts, until a read judges it', () => {
    const one = new OneDevice(policy);
    expect(one.read(0, unknown('Ras', 'umc'), unknown('Hot'))).toMatchObject({ state: 'healthy', unchecked: ['Ras/umc'] });
    one.restart();
    expect(one.read(10, unknown('Ras', 'umc'))).toMatchObject({ unchecked: ['Ras/umc'] });
    expect(one.read(20, gone('Ras', 'umc')).unchecked).toBeUndefined();
    expect(one.read(30, unknown('Ras', 'umc')).unchecked, 'it was judged before').toBeUndefined();
  });

  it('is saved soon once a read judged it, so that a kill does not make it unchecked again', () => {
    const one = new OneDevice(policy);
    one.read(0, unknown('Ras', 'umc'));
    one.engine.state();
    one.read(10, unknown('Ras', 'umc'));
    expect(one.engine.hasNews()).toBe(false);
    one.read(20, gone('Ras', 'umc'));
    expect(one.engine.hasNews()).toBe(true);
  });

  it('is taken off by a read that denies it for all parts, or finds it', () => {
    for (const finding of [gone('Ras'), found('Ras', { instance: 'umc' })]) {
      const one = new OneDevice(policy);
      one.read(0, unknown('Ras', 'umc'));
      expect(one.read(10, finding).unchecked).toBeUndefined();
    }
  });

  it('is none that the family does not report, as for hardware without the file', () => {
    expect(new OneDevice(policy).read(0, gone('Hot')).unchecked).toBeUndefined();
  });
});

describe('a device that no read could reach so far', () => {
  it('is unknown at once, although the condition for it has to hold for a time', () => {
    const one = new OneDevice(policy);
    expect(one.read(0, found('Unreachable')).state).toBe('unknown');
    expect(one.read(10, found('Unreachable')).state).toBe('unknown');
    expect(one.read(20, gone('Unreachable')).state).toBe('healthy');
    expect(one.read(30, found('Unreachable')).state, 'it was reached before').toBe('healthy');
    expect(one.read(60, found('Unreachable')).state).toBe('unknown');
  });
});

describe('a condition that a person accepts', () => {
  it('ends with an event, is unchecked from then on, and returns with the next read that sees it', () => {
    const one = new OneDevice(policy);
    one.read(0, found('Ras', { instance: 'umc' }));
    expect(one.engine.accept('test/one', undefined, 'tested'), 'a read confirms it').toEqual([]);
    one.read(10, unknown('Ras', 'umc'));
    expect(one.engine.accept('test/one', 'Hot', 'tested')).toEqual([]);
    expect(one.engine.accept('test/one', 'Ras', 'tested by the maker')).toEqual(['Ras/umc']);
    expect(one.read(20, unknown('Ras', 'umc'))).toMatchObject({ state: 'healthy', conditions: [], unchecked: ['Ras/umc'] });
    expect(one.story.slice(2)).toEqual(['accepted Ras/umc', 'unhealthy>healthy']);
    expect(one.events[2]?.message).toContain('tested by the maker; it was withdrawn 20 s after it began, because a person accepted it');
    expect(one.read(30, found('Ras', { instance: 'umc' })).state).toBe('unhealthy');
  });
});
