import { describe, expect, it } from 'vitest';
import { createHealthEngine, type HealthEngine } from '../../src/health/engine/engine.ts';
import type { HealthInput } from '../../src/health/engine/judge-device.ts';
import { type ConditionState, conditionKey, type HealthMemory } from '../../src/health/engine/memory.ts';
import { kubeletHealth } from '../../src/health/policy/kubelet-health.ts';
import { deviceKey } from '../../src/model/device.ts';
import type { SourceFindings } from '../../src/model/device-record.ts';
import type { HealthEvent } from '../../src/model/events.ts';
import type { ActiveCondition, ConditionSpec, Finding, Verdict } from '../../src/model/health.ts';
import { repetitions } from '../support/repetitions.ts';
import { seededRandom } from '../support/seeded.ts';
import { device, policyFor, readAt, START, spec } from './one-device.ts';

const SPECS: readonly ConditionSpec[] = [
  spec('Latched', { class: 'latched', recoveryMs: 20_000 }),
  spec('SourceFindings', { class: 'latched', recoveryMs: 10_000, outOfBand: true }),
  spec('Level', { forMs: 15_000, recoveryMs: 25_000 }),
  spec('Slower', { severity: 'degraded', forMs: 5_000, recoveryMs: 10_000 }),
  spec('Warm', { severity: 'degraded' }),
  spec('Note', { severity: 'info', forMs: 5_000 }),
  spec('Errors', { class: 'rate', threshold: { growth: 5, windowMs: 60_000 }, forMs: 10_000 }),
  spec('Busy', { class: 'in-progress', forMs: 40_000 }),
  spec('Blind', { class: 'no-data', recoveryMs: 10_000 }),
];
const POLICY = policyFor(SPECS, {
  flapping: { count: 3, window: '10m', quiet: '2m' },
  ignore: [{ device: 'd1', condition: 'Level', reason: 'r', until: '2030-01-01T00:20:00Z' }],
});
const FATAL = new Set(['unhealthy']);

/** Three devices with random histories; every step is checked. */
class Life {
  readonly random: () => number;
  engine: HealthEngine = createHealthEngine({ policy: POLICY });
  now = START;
  nextCheckMs: number | undefined;
  readonly counts = new Map<string, number>();
  readonly reports = new Map<string, HealthInput>();
  /** Conditions with true evidence in the present occurrence. */
  readonly evidence = new Map<string, number>();
  readonly raised = new Set<string>();
  readonly states = new Map<string, string>();
  lastId = 0;

  constructor(seed: number) {
    this.random = seededRandom(seed);
  }

  chance(share: number): boolean {
    return this.random() < share;
  }

  step(): void {
    if (this.chance(0.02)) this.engine = createHealthEngine({ policy: POLICY, state: copy(this.engine.state()) });
    this.now = this.nextTime();
    for (const id of ['d0', 'd1', 'd2']) this.changeReport(id);
    const devices = [...this.reports.values()].filter(() => !this.chance(0.01));
    const judgement = this.engine.judge({ devices }, this.now);
    this.nextCheckMs = judgement.nextCheckMs;
    if (judgement.nextCheckMs !== undefined) expect(judgement.nextCheckMs).toBeGreaterThan(this.now);
    const given = new Map(devices.map((one) => [one.key, one]));
    for (const event of judgement.events) this.checkEvent(event, given.get(event.device) as HealthInput);
    for (const given of devices) this.checkVerdict(given, judgement.verdicts.get(given.key) as Verdict);
    expect(judgement.verdicts.size, 'one verdict for each device given').toBe(devices.length);
  }

  /** Mostly ten seconds later, sometimes exactly at the requested check, sometimes after a pause. */
  nextTime(): number {
    if (this.nextCheckMs !== undefined && this.chance(0.3)) return this.nextCheckMs;
    return this.now + Math.round(this.chance(0.03) ? this.random() * 400_000 : this.random() * 15_000);
  }

  changeReport(id: string): void {
    const key = deviceKey(device(id));
    const previous = this.reports.get(key);
    if (previous !== undefined && this.chance(0.3)) return;
    if (previous !== undefined && this.chance(0.05)) {
      this.reports.set(key, { ...previous, isUnread: true, missingSinceMs: this.now });
      return;
    }
    const findings = SPECS.flatMap((item) => this.findingsOf(id, item));
    const [own, outOfBand] = [false, true].map(
      (wanted): SourceFindings => ({ findings: findings.filter(({ type }) => (type === 'SourceFindings') === wanted), readAtMs: this.now }),
    ) as [SourceFindings, SourceFindings];
    const isUnread = previous !== undefined && this.chance(0.05);
    const read = isUnread ? previous.read : own;
    this.reports.set(key, { key, device: device(id), ...(read === undefined ? {} : { read }), outOfBand, isUnread, holders: [] });
    for (const finding of findings) if (holds(finding)) this.evidence.set(`${key} ${conditionKey(finding)}`, this.now);
  }

  findingsOf(id: string, item: ConditionSpec): readonly Finding[] {
    const base = { type: item.type, reason: 'Because', message: 'm' };
    if (item.class === 'rate') return this.chance(0.1) ? [] : [{ ...base, count: this.counter(`${id} ${item.type}`), ceiling: 255 }];
    if (item.type === 'Slower') return this.chance(0.2) ? [] : [{ ...base, instance: '1', level: this.chance(0.7) ? 400 : 200 }];
    const instance = this.chance(0.5) ? {} : { instance: String(Math.floor(this.random() * 2)) };
    if (this.chance(0.6)) return [];
    return [{ ...base, ...instance, status: this.chance(0.2) ? 'unknown' : this.chance(0.7) }];
  }

  counter(name: string): number {
    const value = this.counts.get(name) ?? 0;
    const next = this.chance(0.03) ? 0 : Math.min(255, value + (this.chance(0.8) ? 0 : Math.floor(this.random() * 12)));
    this.counts.set(name, next);
    return next;
  }

  checkEvent(event: HealthEvent, given: HealthInput): void {
    expect(event.id).toBe(++this.lastId);
    expect(event.timeMs).toBe(this.now);
    if (event.transition === 'state') {
      expect(event.from).not.toBe(event.to);
      if (this.states.has(event.device)) expect(event.from).toBe(this.states.get(event.device));
      this.states.set(event.device, event.to as string);
      return;
    }
    const name = `${event.device} ${conditionKey({ type: event.condition as string, instance: event.instance })}`;
    expect(this.raised.has(name), `${event.transition} ${name}`).toBe(event.transition === 'cleared');
    if (event.transition === 'raised') this.raised.add(name);
    else this.raised.delete(name);
    if (event.transition === 'raised') this.checkEvidence(event, name);
    else this.checkWithdrawal(event, given);
  }

  /** A condition is cleared only by a reading that denies it. */
  checkWithdrawal({ condition: type = '', instance }: HealthEvent, given: HealthInput): void {
    const named = { type, ...(instance === undefined ? {} : { instance }) };
    if (BY_STATUS.has(type)) expect(this.told(given, named), conditionKey(named)).toBe(false);
    else if (type !== 'DeviceMissing' && type !== 'DeviceNotRead') expect(this.isRead(given), conditionKey(named)).toBe(true);
  }

  isRead({ read, isUnread, missingSinceMs }: HealthInput): boolean {
    return read !== undefined && isUnread !== true && missingSinceMs === undefined && this.now - read.readAtMs < POLICY.staleAfterMs;
  }

  /** Present status of a condition that findings report by status. */
  told(given: HealthInput, { type, instance }: Pick<ConditionState, 'type' | 'instance'>): boolean | 'unknown' {
    const { read, outOfBand } = given;
    const isFresh =
      type === 'SourceFindings' ? this.now - (outOfBand as SourceFindings).readAtMs < POLICY.staleAfterMs : this.isRead(given);
    const findings = isFresh
      ? ((type === 'SourceFindings' ? outOfBand : read) as SourceFindings).findings.filter((finding) => finding.type === type)
      : [];
    const named = findings.find((finding) => finding.instance === instance);
    const all = findings.find((finding) => finding.instance === undefined && finding.status === false);
    return (named ?? all)?.status ?? 'unknown';
  }

  /** No condition is raised without evidence. */
  checkEvidence(event: HealthEvent, name: string): void {
    const declared = SPECS.find((item) => item.type === event.condition);
    if (declared !== undefined && declared.class !== 'rate') expect(this.evidence.has(name), name).toBe(true);
  }

  checkVerdict(given: HealthInput, verdict: Verdict): void {
    const { key } = given;
    const all = [...verdict.conditions, ...(verdict.ignored ?? [])];
    const listed = new Set(all.map((condition) => `${key} ${conditionKey(condition)}`));
    expect([...this.raised].filter((name) => name.startsWith(`${key} `)).sort()).toEqual([...listed].sort());
    const faults = verdict.conditions.filter((condition) => condition.severity === 'fatal' && condition.type !== 'Blind');
    if (faults.length > 0) expect(FATAL.has(verdict.state), 'a fatal condition counts').toBe(true);
    else expect(verdict.state).not.toBe('unhealthy');
    if (given.missingSinceMs !== undefined) expect(verdict.state).toBe('unhealthy');
    const told = [...all, ...(verdict.pending ?? [])].filter(({ type }) => BY_STATUS.has(type));
    const isWrong = (item: ActiveCondition): boolean => (item.unverifiedSinceMs !== undefined) !== (this.told(given, item) === 'unknown');
    expect(told.filter(isWrong), 'what is not told is unverified').toEqual([]);
    const age = this.now - (given.read as SourceFindings).readAtMs;
    if (age >= POLICY.staleAfterMs) expect(['unknown', 'unhealthy']).toContain(verdict.state);
    if (verdict.state === 'healthy') expect(verdict.conditions.every((condition) => condition.severity === 'info')).toBe(true);
    if (verdict.state === 'unhealthy') expect(kubeletHealth(verdict, POLICY)).toBe('Unhealthy');
    expect(verdict.sinceMs).toBeLessThanOrEqual(this.now);
    if (this.states.has(key)) expect(verdict.state).toBe(this.states.get(key));
    this.states.set(key, verdict.state);
  }
}

/** Conditions that findings report by status. */
const BY_STATUS = new Set(SPECS.filter(({ class: kind, type }) => kind !== 'rate' && type !== 'Slower').map(({ type }) => type));

const holds = ({ status, level = 400 }: Finding): boolean => status === true || Number(level) < 400;

const copy = (state: HealthMemory): HealthMemory => JSON.parse(JSON.stringify(state)) as HealthMemory;

describe('whatever happens', () => {
  it.each(Array.from({ length: repetitions(5, 40) }, (_, index) => index + 1))(
    'verdicts and events agree with each other and with the evidence (seed %i)',
    (seed) => {
      const life = new Life(seed);
      for (let turn = 0; turn < 400; turn += 1) life.step();
      expect(life.lastId).toBeGreaterThan(20);
    },
  );

  it('judging only at the requested times gives the same result as with judgements in between', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const random = seededRandom(seed);
      const sparse = createHealthEngine({ policy: POLICY });
      const dense = createHealthEngine({ policy: POLICY });
      const stories: string[][] = [[], []];
      let count = 0;
      let nextCheck = Number.POSITIVE_INFINITY;
      const told = (events: readonly HealthEvent[]) =>
        events.map(({ timeMs, transition, condition, to }) => `${timeMs} ${transition} ${condition} ${to}`);
      let devices: readonly HealthInput[] = [];
      for (let at = START; at < START + 600_000; at += 500) {
        const isRead = (at - START) % 10_000 === 0;
        if (isRead) {
          count += Math.floor(random() * 4);
          const findings: Finding[] = SPECS.filter((item) => BY_STATUS.has(item.type) && item.outOfBand !== true).map(({ type }) => ({
            type,
            reason: 'r',
            message: 'm',
            status: random() < 0.4,
          }));
          findings.push({ type: 'Errors', reason: 'r', message: 'm', count });
          devices = [readAt(device('d0'), at, findings)];
        }
        (stories[0] as string[]).push(...told(dense.judge({ devices }, at).events));
        if (!isRead && at < nextCheck) continue;
        const judgement = sparse.judge({ devices }, at);
        nextCheck = judgement.nextCheckMs ?? Number.POSITIVE_INFINITY;
        (stories[1] as string[]).push(...told(judgement.events));
      }
      expect(stories[1]).toEqual(stories[0]);
      expect(stories[0]?.length).toBeGreaterThan(10);
    }
  });
});
