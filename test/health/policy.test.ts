import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { explainPolicy } from '../../src/health/policy/explain-policy.ts';
import { ignoreRule } from '../../src/health/policy/ignore.ts';
import { kubeletHealth } from '../../src/health/policy/kubelet-health.ts';
import { conditionPolicy, createPolicy } from '../../src/health/policy/policy.ts';
import { type HealthConfig, healthSchema } from '../../src/health/policy/policy-config.ts';
import { USE_CONDITIONS } from '../../src/health/policy/use-conditions.ts';
import { matchesAny } from '../../src/model/excluded.ts';
import { HEALTH_STATES } from '../../src/model/health.ts';
import { found, OneDevice, policyFor, spec } from './one-device.ts';

const specs = [
  spec('PortDown', { forMs: 30_000, recoveryMs: 60_000 }),
  spec('SymbolErrors', { class: 'rate', severity: 'degraded', threshold: { growth: 120, windowMs: 3_600_000 } }),
];

const ignoring = (condition: string, until = '2030-01-31'): HealthConfig => ({ ignore: [{ device: '*', condition, reason: 'r', until }] });

const DEFAULT = createPolicy({ specs: {} }).policy;

describe('the policy', () => {
  it('is the declaration of the family without a configuration', () => {
    expect(conditionPolicy(policyFor(specs), 'test', 'PortDown')).toEqual({
      class: 'self-clearing',
      severity: 'fatal',
      severityConfigured: false,
      forMs: 30_000,
      recoveryMs: 60_000,
      threshold: { growth: 0, windowMs: 3_600_000 },
      enabled: true,
      remedy: 'reset',
      consequences: [],
      isOutOfBand: false,
      isUse: false,
      isOfFaults: false,
      isOfHolder: false,
    });
    expect(conditionPolicy(policyFor([spec('Xid', { outOfBand: true })]), 'test', 'Xid').isOutOfBand).toBe(true);
  });

  it('lets the narrower key win, field by field', () => {
    const policy = policyFor(specs, {
      conditions: {
        '*.PortDown': { severity: 'info', for: '1s', recovery: '1s' },
        'test.PortDown': { for: '2s', recovery: '2s' },
        'test.PortDown/2': { recovery: '3s' },
      },
    });
    expect(conditionPolicy(policy, 'test', 'PortDown')).toMatchObject({ severity: 'info', forMs: 2_000, recoveryMs: 2_000 });
    expect(conditionPolicy(policy, 'test', 'PortDown', '2')).toMatchObject({ severity: 'info', forMs: 2_000, recoveryMs: 3_000 });
  });

  it('overrides growth and window of a counter separately', () => {
    const policy = policyFor(specs, { conditions: { 'test.SymbolErrors': { threshold: { growth: 5 } } } });
    expect(conditionPolicy(policy, 'test', 'SymbolErrors').threshold).toEqual({ growth: 5, windowMs: 3_600_000 });
  });

  it('reports invalid parts and applies the rest', () => {
    const { policy, problems } = createPolicy({
      specs: { test: specs },
      config: {
        'stale-after': 'soon',
        conditions: {
          'test.NoSuch': {},
          'other.PortDown': {},
          'test.PortDown': { for: 'long', recovery: '5s' },
          '*.DeviceMissing': { for: '1s' },
        },
        ignore: [{ device: 'a', condition: 'b', reason: 'c', until: 'some day' }],
      },
    });
    expect(problems).toEqual([
      "health.stale-after: 'soon' is not a duration such as 30s or 1m30s",
      "health.ignore[0].until: 'some day' is not a date such as 2030-01-31",
      "health.conditions: no enabled family has a condition 'test.NoSuch'",
      "health.conditions: no enabled family has a condition 'other.PortDown'",
      "health.conditions: 'long' as for of 'test.PortDown' is not a duration such as 30s or 1m30s",
    ]);
    expect(conditionPolicy(policy, 'test', 'PortDown')).toMatchObject({ forMs: 30_000, recoveryMs: 5_000 });
    expect(conditionPolicy(policy, 'test', 'DeviceMissing').forMs).toBe(1_000);
  });

  it.each<[string, HealthConfig, string]>([
    [
      'a threshold of what is no counter',
      { conditions: { 'test.PortDown': { threshold: { growth: 5 } } } },
      "health.conditions: 'test.PortDown' is not judged by growth, so its threshold has no effect",
    ],
    [
      'growth within no time',
      { conditions: { '*.SymbolErrors': { threshold: { window: '0s' } } } },
      "health.conditions: threshold.window of '*.SymbolErrors' must be longer than 0s",
    ],
    ['readings that are old at once', { 'stale-after': '0' }, 'health.stale-after: must be longer than 0s'],
    [
      'an ignored condition that is none',
      ignoring('PortDwon/1'),
      "health.ignore[0].condition: no enabled family has a condition 'PortDwon/1'",
    ],
    [
      'an ignored condition with its family',
      ignoring('test.PortDown/1'),
      "health.ignore[0].condition: no enabled family has a condition 'test.PortDown/1'; write 'PortDown/1'",
    ],
    [
      'a day that no month has',
      ignoring('PortDown', '2030-02-31'),
      "health.ignore[0].until: '2030-02-31' is not a date such as 2030-01-31",
    ],
  ])('says what would have no effect: %s', (_, config, problem) => {
    const { policy, problems } = createPolicy({ specs: { test: specs }, config });
    expect(problems).toEqual([problem]);
    expect(policy.staleAfterMs).toBe(60_000);
    expect(conditionPolicy(policy, 'test', 'SymbolErrors').threshold.windowMs).toBe(3_600_000);
  });

  it.each(['*', 'PortDown', 'PortDown/1', 'DeviceMissing', 'Flapping/PortDown/1'])('finds nothing wrong with ignoring %s', (condition) => {
    expect(createPolicy({ specs: { test: specs }, config: ignoring(condition) }).problems).toEqual([]);
  });

  it('explains every condition once, with what the configuration changed', () => {
    const policy = policyFor(specs, {
      conditions: { 'test.PortDown/2': { severity: 'info' }, 'test.SymbolErrors': { threshold: { growth: 5, window: '10m' } } },
    });
    const rows = explainPolicy(policy);
    expect(rows.map((row) => `${row.family}.${row.condition}`)).toEqual([
      '*.DeviceMissing',
      '*.DeviceNotRead',
      '*.Flapping',
      ...USE_CONDITIONS.map(({ type }) => `*.${type}`),
      'test.PortDown',
      'test.PortDown/2',
      'test.SymbolErrors',
    ]);
    expect(rows[3 + USE_CONDITIONS.length]).toMatchObject({ severity: 'fatal', for: '30s', recovery: '1m', configured: [] });
    expect(rows[4 + USE_CONDITIONS.length]).toMatchObject({ severity: 'info', configured: ['severity'] });
    expect(rows[5 + USE_CONDITIONS.length]).toMatchObject({ threshold: '> 5 per 10m', configured: ['threshold'] });
  });

  it.each(HEALTH_STATES)('maps the state %s to a health value for the kubelet', (state) => {
    const told = (unknown: 'healthy' | 'unhealthy') => kubeletHealth({ state }, { ...DEFAULT, unknown });
    const expected = { healthy: ['Healthy', 'Healthy'], degraded: ['Healthy', 'Healthy'], unhealthy: ['Unhealthy', 'Unhealthy'] };
    expect([told('healthy'), told('unhealthy')]).toEqual(state === 'unknown' ? ['Healthy', 'Unhealthy'] : expected[state]);
  });

  it('decides whether a device is offered of which a fatal condition was never checked', () => {
    const verdict = { state: 'healthy', unchecked: ['RasFatal'] } as const;
    const told = (unchecked: 'healthy' | 'unhealthy') => kubeletHealth(verdict, { ...DEFAULT, unchecked });
    expect([told('healthy'), told('unhealthy')]).toEqual(['Healthy', 'Unhealthy']);
    expect(createPolicy({ specs: {} }).policy.unchecked).toBe('healthy');
    expect(createPolicy({ specs: {}, config: { unchecked: 'unhealthy' } }).policy.unchecked).toBe('unhealthy');
  });
});

describe('the schema of the configuration', () => {
  const validate = new Ajv({ strict: true }).compile<HealthConfig>(healthSchema);

  it('accepts every valid field', () => {
    const config: HealthConfig = {
      unknown: 'healthy',
      'stale-after': '2m',
      flapping: { count: 4, window: '1d', quiet: '30m' },
      conditions: {
        'test.PortDown/1': { severity: 'degraded', for: '0', recovery: '1m30s', enabled: true },
        'test.SymbolErrors/1': { threshold: { growth: 0, window: '1h' } },
      },
      ignore: [{ device: 'mlx5_*', condition: 'PortDown/2', reason: 'not cabled', until: '2031-02-03T04:05:06Z' }],
    };
    validate(config);
    expect(validate.errors).toBeNull();
    expect(createPolicy({ specs: { test: specs }, config }).problems).toEqual([]);
  });

  it.each([
    { unknown: 'maybe' },
    { 'stale-after': '5 minutes' },
    { conditions: { PortDown: {} } },
    { conditions: { 'test.PortDown': { for: 30 } } },
    { conditions: { 'test.PortDown': { severity: 'bad' } } },
    { ignore: [{ device: 'a', condition: 'b', until: '2030-01-01' }] },
    { ignore: [{ device: 'a', condition: 'b', reason: 'c', until: 'later' }] },
    { flapping: { count: 1 } },
    { else: 1 },
  ])('refuses %j', (config) => {
    expect(validate(config)).toBe(false);
  });
});

describe('an ignore rule', () => {
  const one = (ignore: NonNullable<HealthConfig['ignore']>) => new OneDevice(policyFor(specs, { ignore, 'stale-after': '2d' }));
  const rule = { device: 'one', condition: 'PortDown', reason: 'known', until: '2030-01-01T00:01:00Z' };

  it('ends at its date, to the second, and the condition counts again', () => {
    const subject = one([rule]);
    subject.read(0, found('PortDown'));
    expect(subject.read(40, found('PortDown'))).toMatchObject({ state: 'healthy', conditions: [], ignored: [{ type: 'PortDown' }] });
    expect(subject.events.at(-1)).toMatchObject({ transition: 'raised', ignored: true });
    expect(subject.nextCheck).toBe(60);
    const verdict = subject.wait(60);
    expect(verdict.state).toBe('unhealthy');
    expect(verdict.ignored).toBeUndefined();
  });

  it.each([
    ['id', { device: 'one' }, true],
    ['key', { device: 'test/one' }, true],
    ['alias in other case', { device: 'ALIAS-OF-ONE' }, true],
    ['pattern', { device: 'te*/o*e' }, true],
    ['everything', { device: '*', condition: '*' }, true],
    ['the instance', { condition: 'PortDown/1' }, true],
    ['another device', { device: 'two' }, false],
    ['another instance', { condition: 'PortDown/2' }, false],
    ['a part of the name', { device: 'on' }, false],
  ])('matches by %s', (_, change, expected) => {
    const subject = one([{ ...rule, until: '2031-01-01', ...change }]);
    subject.read(0, found('PortDown', { instance: '1' }));
    expect(subject.read(30, found('PortDown', { instance: '1' })).state).toBe(expected ? 'healthy' : 'unhealthy');
  });

  it('takes a date alone as the end of that day, and a time without zone as UTC', () => {
    const until = (text: string) => ignoreRule({ ...rule, until: text })?.untilMs;
    expect(until('2030-01-31')).toBe(Date.UTC(2030, 1, 1));
    expect(until('2030-01-31 12:00')).toBe(Date.UTC(2030, 0, 31, 12));
    expect(until('2030-01-31T12:00:00+02:00')).toBe(Date.UTC(2030, 0, 31, 10));
    expect(until('2030-13-31')).toBeUndefined();
  });

  it.each([
    ['a*b*c', 'aXbYc', true],
    ['a*b*c', 'acb', false],
    ['*', '', true],
    ['aa*aa', 'aaa', false],
    ['*x*', 'axb', true],
    ['a.c', 'abc', false],
  ])('pattern %s against %s is %s', (pattern, name, expected) => {
    expect(matchesAny([pattern], name)).toBe(expected);
  });
});
