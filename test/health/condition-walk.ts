import { describe, expect, it } from 'vitest';
import { conditionPolicy, createPolicy } from '../../src/health/policy/policy.ts';
import type { HealthConfig } from '../../src/health/policy/policy-config.ts';
import type { ConditionSpec, Finding, HealthState } from '../../src/model/health.ts';
import { device, OneDevice } from './one-device.ts';

/**
 * Runs each declared condition of one family through the engine: raised, held below `for`, active, cleared after the quiet time,
 * ignored, overridden, disabled. Registers the tests; call it inside or outside of a `describe`.
 */
export function describeConditions(family: string, specs: readonly ConditionSpec[]): void {
  describe.each(specs.map((spec) => ({ spec, type: spec.type })))(`${family} condition $type`, ({ spec }) => {
    it('waits for its time, counts, and is withdrawn after its quiet time', () => walk(family, specs, spec));
    it('is kept and marked unverified while its source reports nothing', () => walkSilent(family, specs, spec));
    it('is not raised when it ends before its time', () => walkShort(family, specs, spec));
    it('does not count when the operator ignores it, and is listed as ignored', () => walkIgnored(family, specs, spec));
    it('follows severity, time and quiet time of the configuration', () => walkOverridden(family, specs, spec));
    it('is inactive when it is disabled', () => walkDisabled(family, specs, spec));
  });
}

/** State of a device with one active condition. */
export function expectedState(spec: ConditionSpec, severity = spec.severity): HealthState {
  if (severity === 'fatal') return spec.class === 'no-data' ? 'unknown' : 'unhealthy';
  return severity === 'degraded' ? 'degraded' : 'healthy';
}

/** A device with one condition under test. It is read every second where time must pass with fresh readings. */
class Row {
  readonly subject: OneDevice;
  readonly spec: ConditionSpec;
  readonly forS: number;
  readonly recoveryS: number;
  readonly windowS: number;
  #count = 1_000;
  #now = 0;

  constructor(family: string, specs: readonly ConditionSpec[], spec: ConditionSpec, config: HealthConfig = {}) {
    // Fresh readings are given only at the ends of a wait, so nothing may become stale in between.
    const { conditions, ...rest } = config;
    const key = `${family}.${spec.type}`;
    // A condition that is off by default is walked as an operator has it who switched it on.
    const own = { ...(spec.isOffByDefault === true && { enabled: true }), ...conditions?.[key] };
    const { policy, problems } = createPolicy({
      specs: { [family]: specs },
      config: { 'stale-after': '1000d', ...rest, conditions: { ...conditions, [key]: own } },
    });
    expect(problems).toEqual([]);
    this.spec = spec;
    this.subject = new OneDevice(policy, undefined, device('one', family));
    const effective = conditionPolicy(policy, family, spec.type);
    this.forS = effective.forMs / 1000;
    this.recoveryS = effective.recoveryMs / 1000;
    this.windowS = spec.class === 'rate' ? effective.threshold.windowMs / 1000 : 0;
    this.#growth = effective.threshold.growth + 1;
    this.quiet();
  }

  readonly #growth: number;

  get isRate(): boolean {
    return this.spec.class === 'rate';
  }

  /** The source reports that the condition does not hold. */
  quiet(afterS = 0): ReturnType<OneDevice['read']> {
    this.#now += afterS;
    return this.subject.read(this.#now, this.isRate ? this.#counter() : { ...this.#base(), status: false });
  }

  /** The source reports nothing. */
  silent(afterS = 0): ReturnType<OneDevice['read']> {
    this.#now += afterS;
    return this.subject.read(this.#now);
  }

  /** The source shows the fault; a counter grows by more than its limit. */
  fault(afterS = 0): ReturnType<OneDevice['read']> {
    this.#now += afterS;
    if (this.isRate) this.#count += this.#growth;
    return this.subject.read(this.#now, this.isRate ? this.#counter() : { ...this.#base(), status: true });
  }

  wait(seconds: number): ReturnType<OneDevice['wait']> {
    this.#now += seconds;
    return this.subject.wait(this.#now);
  }

  /** Raises it and stays until it counts. */
  untilActive(): ReturnType<OneDevice['wait']> {
    const verdict = this.fault(1);
    return this.forS === 0 ? verdict : this.stayFaulty(this.forS);
  }

  /** Time passes while the source shows the fault. */
  stayFaulty(seconds: number): ReturnType<OneDevice['wait']> {
    if (!this.isRate || seconds < this.windowS) return this.wait(seconds);
    let left = seconds;
    while (left > this.windowS / 2) {
      this.fault(this.windowS / 2);
      left -= this.windowS / 2;
    }
    return this.wait(left);
  }

  has(verdict: ReturnType<OneDevice['read']>): boolean {
    return verdict.conditions.some((condition) => condition.type === this.spec.type);
  }

  #base(): Pick<Finding, 'type' | 'reason' | 'message'> {
    return { type: this.spec.type, reason: this.spec.reasons[0] ?? 'Because', message: 'seen at 42' };
  }

  #counter(): Finding {
    return { ...this.#base(), count: this.#count };
  }
}

function walk(family: string, specs: readonly ConditionSpec[], spec: ConditionSpec): void {
  const row = new Row(family, specs, spec);
  let verdict = row.fault(1);
  if (row.forS > 0) {
    expect(row.has(verdict), 'counts at once although it has to hold first').toBe(false);
    expect(verdict.state).toBe('healthy');
    verdict = row.stayFaulty(row.forS - 0.001);
    expect(row.has(verdict), 'counts before its time').toBe(false);
    verdict = row.stayFaulty(0.001);
  }
  expect(row.has(verdict), 'does not count after its time').toBe(true);
  expect(verdict.state).toBe(expectedState(spec));
  expect(verdict.conditions[0]).toMatchObject({ severity: spec.severity, remedy: spec.remedy, reason: spec.reasons[0] ?? 'Because' });
  verdict = row.quiet(row.windowS + 1);
  if (row.recoveryS > 0) {
    expect(row.has(verdict), 'withdrawn without quiet time').toBe(true);
    verdict = row.quiet(row.recoveryS - 0.001);
    expect(row.has(verdict), 'withdrawn before its quiet time').toBe(true);
    expect(row.has(row.wait(1_000)), 'withdrawn without a look after its quiet time').toBe(true);
    verdict = row.quiet();
  }
  expect(row.has(verdict), 'still there after its quiet time').toBe(false);
  expect(verdict.state).toBe('healthy');
  const own = row.subject.events.filter((event) => event.condition === spec.type && event.transition !== 'state');
  expect(own.map((event) => event.transition)).toEqual(['raised', 'cleared']);
}

function walkSilent(family: string, specs: readonly ConditionSpec[], spec: ConditionSpec): void {
  const row = new Row(family, specs, spec);
  const { state } = row.untilActive();
  for (const afterS of [1, row.recoveryS + row.windowS + 1, 100_000]) {
    const verdict = row.silent(afterS);
    expect(verdict.state).toBe(state);
    expect(verdict.conditions).toMatchObject([{ type: spec.type, unverifiedSinceMs: expect.any(Number) }]);
  }
}

function walkShort(family: string, specs: readonly ConditionSpec[], spec: ConditionSpec): void {
  const row = new Row(family, specs, spec, { conditions: { [`${family}.${spec.type}`]: { for: '10000s' } } });
  row.fault(1);
  row.stayFaulty(9_999.9 - row.windowS > 0 ? 9_999.9 - row.windowS : 1);
  expect(row.has(row.quiet(row.windowS + 1))).toBe(false);
  expect(row.subject.story).toEqual([]);
}

function walkIgnored(family: string, specs: readonly ConditionSpec[], spec: ConditionSpec): void {
  const rule = { device: 'one', condition: spec.type, reason: 'known and accepted', until: '2999-12-31' };
  const row = new Row(family, specs, spec, { ignore: [rule] });
  const verdict = row.untilActive();
  expect(verdict.state).toBe('healthy');
  expect(row.has(verdict)).toBe(false);
  expect(verdict.ignored).toMatchObject([{ type: spec.type, ignoreReason: 'known and accepted', ignoredUntilMs: Date.UTC(3000, 0, 1) }]);
}

function walkOverridden(family: string, specs: readonly ConditionSpec[], spec: ConditionSpec): void {
  for (const severity of ['fatal', 'degraded', 'info'] as const) {
    const conditions = { [`${family}.${spec.type}`]: { severity, for: '7s', recovery: '9s' } };
    const row = new Row(family, specs, spec, { conditions });
    expect(row.has(row.fault(1))).toBe(false);
    const verdict = row.stayFaulty(7);
    expect(verdict.state).toBe(expectedState(spec, severity));
    expect(verdict.conditions[0]).toMatchObject({ type: spec.type, severity });
    expect(row.has(row.quiet(row.windowS + 1))).toBe(true);
    expect(row.has(row.quiet(8.9))).toBe(true);
    expect(row.has(row.quiet(0.1))).toBe(false);
  }
}

function walkDisabled(family: string, specs: readonly ConditionSpec[], spec: ConditionSpec): void {
  const row = new Row(family, specs, spec, { conditions: { [`${family}.${spec.type}`]: { enabled: false } } });
  expect(row.untilActive()).toMatchObject({ state: 'healthy', conditions: [] });
  expect(row.subject.story).toEqual([]);
}
