import { describe, expect, it } from 'vitest';
import { createHealthEngine, type HealthEngine } from '../../src/health/engine/engine.ts';
import type { HealthInput } from '../../src/health/engine/judge-device.ts';
import { deviceKey } from '../../src/model/device.ts';
import type { SourceFindings } from '../../src/model/device-record.ts';
import type { Finding } from '../../src/model/health.ts';
import { repetitions } from '../support/repetitions.ts';
import { type Choose, seeded } from '../support/seeded.ts';
import { device, found, policyFor, START, spec } from './one-device.ts';

const SPECS = [
  spec('Latched', { class: 'latched', recoveryMs: 20_000 }),
  spec('Level', { forMs: 15_000, recoveryMs: 25_000 }),
  spec('Log', { class: 'latched', recoveryMs: 10_000, outOfBand: true }),
  spec('LogErrors', { class: 'rate', threshold: { growth: 3, windowMs: 60_000 }, outOfBand: true }),
  spec('Errors', { class: 'rate', threshold: { growth: 5, windowMs: 60_000 }, forMs: 10_000 }),
  spec('Slow', { class: 'rate', severity: 'degraded', threshold: { growth: 2, windowMs: 600_000 } }),
];
/** The second one judges what the first one leaves out: a fault that is there already, and a growth below the limit of the first one. */
const POLICIES = [
  policyFor(SPECS, { conditions: { 'test.Log': { enabled: false } } }),
  policyFor(SPECS, { conditions: { 'test.Slow': { threshold: { growth: 0 } } } }),
] as const;
const IDS = ['d0', 'd1', 'd2'];

/** Devices that report the same for a long time, as the same objects; each report can change, or be missing. */
class Node {
  readonly #pick: Choose;
  readonly #counts = new Map<string, number>();
  readonly #inputs = new Map<string, HealthInput>();
  nowMs = START;
  monotonicMs = 0;

  constructor(pick: Choose) {
    this.#pick = pick;
  }

  next(): readonly HealthInput[] {
    const passedMs = this.#pick(12) === 0 ? this.#pick(200_000) : 10_000;
    this.monotonicMs += passedMs;
    this.nowMs += passedMs + (this.#pick(40) === 0 ? (this.#pick(3) - 1) * 3_600_000 : 0);
    for (const id of IDS) this.#inputs.set(id, this.#inputOf(id, this.#inputs.get(id)));
    return [...this.#inputs.values()].filter(() => this.#pick(60) > 0);
  }

  #inputOf(id: string, before: HealthInput | undefined): HealthInput {
    const pick = this.#pick;
    const one =
      before === undefined || pick(20) === 0
        ? { ...device(id), identity: pick(3) === 0 ? null : `${id} ${pick(4) === 0 ? 1 : 0}`, firmware: `${pick(3)}` }
        : before.device;
    const lastHolders = before === undefined || pick(30) === 0 ? { pods: [{ namespace: 'a', pod: `p${pick(2)}` }] } : before.lastHolders;
    const read =
      pick(12) === 0 ? before?.read : this.#source(before?.read, () => this.#findings(id, ['Latched', 'Level'], ['Errors', 'Slow']));
    const outOfBand = pick(3) > 0 ? before?.outOfBand : this.#source(before?.outOfBand, () => this.#findings(id, ['Log'], ['LogErrors']));
    return {
      ...{ key: deviceKey(one), device: one, holders: [], lastHolders, isUnread: read === before?.read && pick(2) === 0 },
      ...(read === undefined ? {} : { read }),
      ...(outOfBand === undefined ? {} : { outOfBand }),
      ...(pick(50) === 0 && { missingSinceMs: this.nowMs }),
    };
  }

  /** A later read, most often with the findings of the read before. */
  #source(before: SourceFindings | undefined, findings: () => readonly Finding[]): SourceFindings {
    const told = before === undefined || this.#pick(10) === 0 ? findings() : before.findings;
    return { findings: told, readAtMs: this.nowMs - this.#pick(500), monotonicMs: this.monotonicMs };
  }

  #findings(id: string, states: readonly string[], counters: readonly string[]): readonly Finding[] {
    const pick = this.#pick;
    return [
      ...states.flatMap((type): Finding[] =>
        pick(6) === 0 ? [] : [found(type, { status: pick(5) === 0 ? true : pick(6) === 0 ? 'unknown' : false })],
      ),
      ...counters.flatMap((type): Finding[] => {
        if (pick(6) === 0) return [];
        const count = (this.#counts.get(id + type) ?? 0) + (pick(3) === 0 ? pick(6) : 0);
        this.#counts.set(id + type, count);
        return [found(type, { count })];
      }),
    ];
  }
}

describe('a device that reports what it reported before', () => {
  it.each(Array.from({ length: repetitions(12, 40) }, (_, seed) => seed + 1))(
    'has the verdict and the memory of one that is judged anew (seed %i)',
    (seed) => {
      const pick = seeded(seed);
      const node = new Node(pick);
      const open = (state?: ReturnType<HealthEngine['state']>): HealthEngine =>
        createHealthEngine({ policy: POLICIES[0], ...(state === undefined ? {} : { state: structuredClone(state) }) });
      let [engine, cold] = [open(), open()];
      for (let turn = 0; turn < 100; turn += 1) {
        const both = [engine, cold] as const;
        if (pick(20) === 0) for (const one of both) one.setPolicy(POLICIES[turn % 2] ?? POLICIES[0]);
        if (pick(30) === 0) for (const one of both) one.accept('test/d0', undefined, 'seen');
        const devices = node.next();
        const input = { devices, monotonicMs: node.monotonicMs };
        const judged = engine.judge(input, node.nowMs);
        // A copy has no object of the judgement before.
        expect(judged).toStrictEqual(cold.judge(structuredClone(input), node.nowMs));
        expect(engine.hasNews()).toBe(cold.hasNews());
        if (pick(12) === 0) expect(engine.memory()).toEqual(cold.memory());
        if (pick(40) === 0) [engine, cold] = [open(engine.state()), open(cold.state())];
      }
      expect(engine.state()).toEqual(cold.state());
    },
  );

  it('has the same verdict as an object', () => {
    const engine = createHealthEngine({ policy: POLICIES[0] });
    const [one, findings] = [device(), [found('Level', { status: false }), found('Errors', { count: 7 })]];
    const verdicts = [0, 1, 2, 3].map((turn) => {
      const read = { findings, readAtMs: START + turn * 10_000 };
      return engine
        .judge({ devices: [{ key: deviceKey(one), device: one, holders: [], read }] }, START + turn * 10_000)
        .verdicts.get('test/one');
    });
    expect(verdicts[3]).toBe(verdicts[2]);
    expect(verdicts[3]?.state).toBe('healthy');
  });
});
