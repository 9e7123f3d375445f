import { createHealthEngine, type HealthEngine, type Judgement } from '../../src/health/engine/engine.ts';
import type { HealthInput } from '../../src/health/engine/judge-device.ts';
import type { HealthMemory } from '../../src/health/engine/memory.ts';
import { conditionPolicy, createPolicy, type HealthPolicy } from '../../src/health/policy/policy.ts';
import type { HealthConfig } from '../../src/health/policy/policy-config.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { Device } from '../../src/model/device.ts';
import { deviceKey } from '../../src/model/device.ts';
import type { DeviceUse } from '../../src/model/device-use.ts';
import type { HealthEvent } from '../../src/model/events.ts';
import type { ConditionSpec, CountFinding, Finding, StatusFinding, Verdict } from '../../src/model/health.ts';

/** An arbitrary time; the engine must not depend on it. */
export const START = Date.parse('2030-01-01T00:00:00Z');

export const device = (id = 'one', family = 'test'): Device => ({ family, id, kind: 'card', aliases: [`alias-of-${id}`] });

export const holder: Allocation = {
  namespace: 'train',
  pod: 'w-0',
  container: 'main',
  resource: 'vendor.example/card',
  deviceId: 'one',
  numaNodes: [],
};

export function spec(type: string, rest: Partial<ConditionSpec> = {}): ConditionSpec {
  return {
    type,
    class: 'self-clearing',
    severity: 'fatal',
    reasons: ['Because'],
    meaning: 'For a test.',
    remedy: 'reset',
    source: 'this test',
    ...rest,
  };
}

export function policyFor(specs: readonly ConditionSpec[], config: HealthConfig = {}): HealthPolicy {
  const { policy, problems } = createPolicy({ specs: { test: specs }, config });
  if (problems.length > 0) throw new Error(problems.join('; '));
  return policy;
}

/** Optional fields of a finding. */
type Said = Partial<Omit<StatusFinding, 'type' | 'count' | 'level'>> & Partial<Pick<CountFinding, 'count' | 'ceiling'>>;

/** A finding that holds, unless `rest` sets another status or a counter. */
export function found(type: string, { status = true, count, ceiling, ...rest }: Said = {}): Finding {
  const base = { type, reason: 'Because', message: `${type} at 42`, ...rest };
  if (count === undefined) return { ...base, status };
  return ceiling === undefined ? { ...base, count } : { ...base, count, ceiling };
}

/** A finding that does not hold: for that instance, or for all instances that have no finding. */
export const gone = (type: string, instance?: string): Finding => ({
  type,
  ...(instance === undefined ? {} : { instance }),
  status: false,
  reason: 'Because',
  message: `${type} at 0`,
});

/**
 * One device and an engine, with a clock that only the test moves. A reading has the time of the step that gave it. Findings of conditions
 * declared with `outOfBand` and `ofFaults` come from the other sources.
 */
export class OneDevice {
  engine: HealthEngine;
  readonly policy: HealthPolicy;
  now = START;
  last: Judgement | undefined;
  readonly events: HealthEvent[] = [];
  #given: Omit<HealthInput, 'key' | 'device' | 'holders'> = {};
  #isIdle: boolean | 'unknown' | undefined;
  readonly device: Device;

  constructor(policy: HealthPolicy, state?: HealthMemory, subject = device()) {
    this.policy = policy;
    this.device = subject;
    this.engine = createHealthEngine({ policy, ...(state === undefined ? {} : { state }) });
  }

  /** Moves the clock to so many seconds after the start and judges what was read then. */
  read(atSeconds: number, ...findings: readonly Finding[]): Verdict {
    return this.#judge(atSeconds, (nowMs) => {
      const of = (source: 'read' | 'outOfBand' | 'repeats') => {
        return { findings: findings.filter(({ type }) => this.#sourceOf(type) === source), readAtMs: nowMs };
      };
      return { read: { ...of('read'), monotonicMs: nowMs - START }, outOfBand: of('outOfBand'), repeats: of('repeats') };
    });
  }

  /** As {@link read}; the family also told whether the device worked. */
  used(atSeconds: number, isIdle: boolean | 'unknown', ...findings: readonly Finding[]): Verdict {
    this.#isIdle = isIdle;
    const verdict = this.read(atSeconds, ...findings);
    this.#isIdle = undefined;
    return verdict;
  }

  /** Time passes without a new reading. */
  wait(atSeconds: number): Verdict {
    return this.#judge(atSeconds, () => this.#given);
  }

  /** A collection does not read the device, and other sources report these findings. */
  unread(atSeconds: number, ...outOfBand: readonly Finding[]): Verdict {
    return this.#judge(atSeconds, (nowMs) => ({ ...this.#given, isUnread: true, outOfBand: { findings: outOfBand, readAtMs: nowMs } }));
  }

  missing(atSeconds: number): Verdict {
    return this.#judge(atSeconds, (nowMs) => ({ ...this.#given, isUnread: true, missingSinceMs: nowMs }));
  }

  neverRead(atSeconds: number): Verdict {
    return this.#judge(atSeconds, () => ({ isUnread: true }));
  }

  /** The run of the agent that started then has not read the device yet. */
  awaited(atSeconds: number, sinceSeconds: number): Verdict {
    return this.#judge(atSeconds, () => ({ isUnread: true, awaitedSinceMs: START + sinceSeconds * 1000 }));
  }

  /** Restarts the engine with its state from disk. */
  restart(): void {
    const state = JSON.parse(JSON.stringify(this.engine.state())) as HealthMemory;
    this.engine = createHealthEngine({ policy: this.policy, state });
  }

  /** Next check in seconds after the start. */
  get nextCheck(): number | undefined {
    return this.last?.nextCheckMs === undefined ? undefined : (this.last.nextCheckMs - START) / 1000;
  }

  /** `raised X`, `cleared X/1`, `healthy>unhealthy`, in order. */
  get story(): readonly string[] {
    return this.events.map((event) => {
      if (event.transition === 'state') return `${event.from}>${event.to}`;
      if (event.condition === undefined) return event.transition;
      return `${event.transition} ${event.condition}${event.instance === undefined ? '' : `/${event.instance}`}`;
    });
  }

  #sourceOf(type: string): 'read' | 'outOfBand' | 'repeats' {
    const { isOutOfBand, isOfFaults } = conditionPolicy(this.policy, this.device.family, type);
    return isOfFaults ? 'repeats' : isOutOfBand ? 'outOfBand' : 'read';
  }

  #judge(atSeconds: number, given: (nowMs: number) => Omit<HealthInput, 'key' | 'device' | 'holders'>): Verdict {
    this.now = START + Math.round(atSeconds * 1000);
    this.#given = { ...given(this.now), ...(this.#isIdle === undefined ? {} : { occupancy: useOf(this.#isIdle) }) };
    const judged: HealthInput = { key: deviceKey(this.device), device: this.device, holders: [holder], ...this.#given };
    this.last = this.engine.judge({ devices: [judged] }, this.now);
    this.events.push(...this.last.events);
    return this.last.verdicts.get(judged.key) as Verdict;
  }
}

/** What the comparison of use and holders tells of a device without a holder. */
const useOf = (isIdle: boolean | 'unknown'): DeviceUse => ({
  monotonicMs: 0,
  activity: { isIdle, engines: {}, untilMs: 0 },
  ...{ isForHoldersOnly: true, hasParts: false, isPart: false, areHoldersKnown: true, isReadWithHolders: true, isHeld: false },
  ...{ holders: [], processes: [], hasAllProcesses: true, ports: [], isPortFaultTold: false },
});

/** A device as input of an engine, read at that wall clock and, if given, monotonic clock. */
export function readAt(subject: Device, atMs: number, findings: readonly Finding[] = [], monotonicMs?: number): HealthInput {
  const read = { findings, readAtMs: atMs, ...(monotonicMs === undefined ? {} : { monotonicMs }) };
  return { key: deviceKey(subject), device: subject, read, holders: [] };
}

export const types = (verdict: Verdict): readonly string[] =>
  verdict.conditions.map(({ type, instance }) => (instance === undefined ? type : `${type}/${instance}`));
