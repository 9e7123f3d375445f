import { createHealthEngine, type HealthEngine, type Judgement } from '../../src/health/engine.ts';
import type { JudgedDevice } from '../../src/health/judge-device.ts';
import type { HealthMemory } from '../../src/health/memory.ts';
import { createPolicy, type HealthPolicy } from '../../src/health/policy.ts';
import type { HealthConfig } from '../../src/health/policy-config.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { Device } from '../../src/model/device.ts';
import { deviceKey } from '../../src/model/device.ts';
import type { HealthEvent } from '../../src/model/events.ts';
import type { ConditionSpec, Finding, Verdict } from '../../src/model/health.ts';

/** Some moment; nothing in the engine may depend on which. */
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

export const found = (type: string, rest: Partial<Finding> = {}): Finding => ({
  type,
  reason: 'Because',
  message: `${type} at 42`,
  ...(rest.count === undefined ? { status: true } : {}),
  ...rest,
});

/** One device before an engine, with a clock that only the test moves. Each reading is as old as the step that gave it. */
export class OneDevice {
  engine: HealthEngine;
  readonly policy: HealthPolicy;
  now = START;
  last: Judgement | undefined;
  readonly events: HealthEvent[] = [];
  #report: { findings: readonly Finding[]; readAtMs?: number; missing?: true; awaitedSinceMs?: number } = { findings: [] };
  readonly device: Device;

  constructor(policy: HealthPolicy, state?: HealthMemory, subject = device()) {
    this.policy = policy;
    this.device = subject;
    this.engine = createHealthEngine({ policy, ...(state === undefined ? {} : { state }) });
  }

  /** Moves the clock to so many seconds after the start and judges what was read then. */
  read(atSeconds: number, ...findings: readonly Finding[]): Verdict {
    this.now = START + atSeconds * 1000;
    this.#report = { findings, readAtMs: this.now };
    return this.#judge();
  }

  /** Time passes and the last reading stays the last. */
  wait(atSeconds: number): Verdict {
    this.now = START + atSeconds * 1000;
    return this.#judge();
  }

  missing(atSeconds: number): Verdict {
    this.now = START + atSeconds * 1000;
    this.#report = { ...this.#report, missing: true };
    return this.#judge();
  }

  neverRead(atSeconds: number): Verdict {
    this.now = START + atSeconds * 1000;
    this.#report = { findings: [] };
    return this.#judge();
  }

  /** Not read yet by the run of the agent that began then. */
  awaited(atSeconds: number, sinceSeconds: number): Verdict {
    this.now = START + atSeconds * 1000;
    this.#report = { findings: [], awaitedSinceMs: START + sinceSeconds * 1000 };
    return this.#judge();
  }

  /** Restarts the engine with what it would find on disk. */
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
      return `${event.transition} ${event.condition}${event.instance === undefined ? '' : `/${event.instance}`}`;
    });
  }

  #judge(): Verdict {
    const { findings, readAtMs, missing, awaitedSinceMs } = this.#report;
    const judged: JudgedDevice = {
      key: deviceKey(this.device),
      report: { device: this.device, findings },
      ...(readAtMs === undefined ? {} : { readAtMs }),
      ...(missing === undefined ? {} : { missingSinceMs: this.now }),
      ...(awaitedSinceMs === undefined ? {} : { awaitedSinceMs }),
      holders: [holder],
    };
    this.last = this.engine.judge({ devices: [judged] }, this.now);
    this.events.push(...this.last.events);
    return this.last.verdicts.get(judged.key) as Verdict;
  }
}

export const types = (verdict: Verdict): readonly string[] =>
  verdict.conditions.map(({ type, instance }) => (instance === undefined ? type : `${type}/${instance}`));
