import { describe, expect, it } from 'vitest';
import { createHealthEngine } from '../../src/health/engine.ts';
import type { JudgedDevice } from '../../src/health/judge-device.ts';
import { deviceKey } from '../../src/model/device.ts';
import type { ConditionSpec, Finding } from '../../src/model/health.ts';
import { seededRandom } from '../support/seeded.ts';
import { device, policyFor, START, spec } from './one-device.ts';

const SPECS: readonly ConditionSpec[] = [
  spec('Level', { forMs: 15_000, recoveryMs: 25_000 }),
  spec('Slower', { forMs: 5_000, recoveryMs: 10_000 }),
  spec('Errors', { class: 'rate', threshold: { growth: 5, windowMs: 60_000 } }),
  spec('Stuck', { class: 'rate', threshold: { growth: 3, windowMs: 600_000 } }),
];
const POLICY = policyFor(SPECS, {});

/** Devices that mostly say what they said before, as sound hardware does. */
class Devices {
  readonly #random: () => number;
  readonly #counts = [0, 0, 0];
  #reports: JudgedDevice['report'][] = [0, 1, 2].map((n) => ({ device: device(`d${n}`), findings: this.#findings(n, false) }));
  #readAtMs = START;

  constructor(random: () => number) {
    this.#random = random;
  }

  at(nowMs: number): JudgedDevice[] {
    const isNew = this.#random() < 0.9;
    if (isNew) this.#readAtMs = nowMs;
    return this.#reports.flatMap((report, n): JudgedDevice[] => {
      if (isNew && this.#random() < 0.08) {
        this.#counts[n] = this.#random() < 0.2 ? 0 : (this.#counts[n] as number) + Math.floor(this.#random() * 5);
        this.#reports[n] = { ...report, findings: this.#findings(n, this.#random() < 0.3) };
      }
      if (this.#random() < 0.02) return [];
      const missing = this.#random() < 0.02 ? { missingSinceMs: nowMs } : {};
      return [
        { key: deviceKey(report.device), report: this.#reports[n] as typeof report, readAtMs: this.#readAtMs, holders: [], ...missing },
      ];
    });
  }

  #findings(n: number, level: boolean): Finding[] {
    const count = this.#counts?.[n] ?? 0;
    return [
      { type: 'Level', reason: 'R', message: 'm', status: level },
      { type: 'Slower', instance: '1', reason: 'R', message: 'm', level: level ? 200 : 400 },
      { type: 'Errors', instance: '1', reason: 'R', message: `${count}`, count },
      { type: 'Stuck', reason: 'R', message: `${count}`, count: Math.min(count, 12), ceiling: 12 },
    ];
  }
}

describe('a device that says what it said before', () => {
  it.each(Array.from({ length: 40 }, (_, seed) => seed))('is judged as if all was said anew (life %i)', (seed) => {
    const random = seededRandom(seed + 1);
    const devices = new Devices(random);
    const sparing = createHealthEngine({ policy: POLICY });
    const thorough = createHealthEngine({ policy: POLICY });
    let nowMs = START;
    let monotonicMs = 0;
    for (let step = 0; step < 300; step += 1) {
      const passedMs = random() < 0.03 ? random() * 200_000 : random() * 15_000;
      monotonicMs += passedMs;
      nowMs += passedMs + (random() < 0.02 ? (random() - 0.5) * 4_000_000 : 0);
      const input = devices.at(nowMs);
      const copies = input.map((given) => ({ ...given, report: structuredClone(given.report) }));
      const judged = sparing.judge({ devices: input, monotonicMs }, nowMs);
      expect(judged).toEqual(thorough.judge({ devices: copies, monotonicMs }, nowMs));
      sparing.announce();
      thorough.announce();
      if (random() < 0.1) expect(sparing.state()).toEqual(thorough.state());
    }
    expect(sparing.state()).toEqual(thorough.state());
    expect(sparing.knownDevices()).toEqual(thorough.knownDevices());
  });

  it('keeps its verdict as the same object', () => {
    const engine = createHealthEngine({ policy: POLICY });
    const given = { key: 'toy/d0', report: { device: device('d0'), findings: [] }, holders: [] };
    const at = (nowMs: number) => engine.judge({ devices: [{ ...given, readAtMs: nowMs }] }, nowMs).verdicts.get('toy/d0');
    const first = at(START);
    expect(at(START + 10_000)).toBe(first);
    expect(at(START + 20_000)).toBe(first);
  });
});
