import { expect, it } from 'vitest';
import { Assembler, type Judge } from '../../src/agent/assemble.ts';
import { createHealthEngine } from '../../src/health/engine/engine.ts';
import { createPolicy } from '../../src/health/policy/policy.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import type { ConditionSpec, Finding } from '../../src/model/health.ts';
import type { TimedCollection } from '../../src/supervisor/family-runner.ts';
import { repetitions } from '../support/repetitions.ts';
import { seededRandom } from '../support/seeded.ts';
import { device, familyState, listed, lookAt, outOfBand, podResources, report } from '../support/snapshots.ts';

const spec = (type: string, rest: Partial<ConditionSpec>): ConditionSpec => ({
  ...{ type, class: 'self-clearing', severity: 'fatal', reasons: ['R'], meaning: 'For a test.', remedy: 'reset', source: 'this test' },
  ...rest,
});
const SPECS = [
  spec('Level', { forMs: 15_000, recoveryMs: 25_000 }),
  spec('Latched', { class: 'latched', recoveryMs: 5_000 }),
  spec('Logged', { recoveryMs: 20_000, outOfBand: true }),
  spec('Errors', { class: 'rate', threshold: { growth: 5, windowMs: 60_000 } }),
];
const TIMES = { staleAfterMs: 60_000, missingRetentionMs: 300_000 };
const { policy } = createPolicy({ specs: { toy: SPECS }, ...TIMES, config: { flapping: { count: 3, window: '10m', quiet: '2m' } } });
const HOUR = 3_600_000;

/** Verdicts of three devices on the monotonic clock, with or without steps of the wall clock between two refreshes or within one. */
function life(seed: number, isSet: boolean): readonly string[] {
  const [random, setting] = [seededRandom(seed), seededRandom(seed + 1_000)];
  const story: string[] = [];
  const engine = createHealthEngine({ policy });
  let monotonicMs = 0;
  let offsetMs = Date.parse('2030-01-01T00:00:00Z');
  const set = (): void => {
    const [isNow, by] = [setting() < 0.03, (setting() - 0.5) * (setting() < 0.5 ? 80 * HOUR : 200_000)];
    if (isSet && isNow && Math.abs(by) > 2_000) offsetMs += Math.round(by);
  };
  const judge: Judge = (devices, { nowMs }) => {
    const { verdicts, events } = engine.judge({ devices, monotonicMs }, nowMs);
    for (const { device: key, transition, condition, to } of events) story.push(`${monotonicMs} ${key} ${transition} ${condition} ${to}`);
    const since = (timeMs: number | undefined): string => `${timeMs && nowMs - timeMs}`;
    for (const [key, { state, conditions, pending = [] }] of verdicts) {
      const told = conditions.map(
        ({ type, sinceMs, unverifiedSinceMs, recovering }) =>
          `${type} for ${since(sinceMs)} ${since(unverifiedSinceMs)} ${since(recovering?.untilMs)}`,
      );
      story.push(`${monotonicMs} ${key} ${state} ${told} ${pending.map(({ type, countsAtMs }) => `${type} at ${since(countsAtMs)}`)}`);
    }
    return verdicts;
  };
  const assembler = new Assembler({ rules: { pools: [], families: new Map() }, specs: new Map(), ...TIMES }, judge);
  const counts = new Map<string, number>();
  const known = new Map<string, DeviceReport>();
  const reportOf = (id: string): DeviceReport => {
    const before = known.get(id);
    if (before !== undefined && random() < 0.7) return before;
    counts.set(id, (counts.get(id) ?? 0) + (random() < 0.3 ? Math.floor(random() * 8) : 0));
    const tell = (type: string, holds: number, isTold: number): Finding[] => {
      const status = random() < holds;
      return random() < isTold ? [{ type, reason: 'R', message: 'm', status }] : [];
    };
    const count: Finding = { type: 'Errors', reason: 'R', message: 'm', count: counts.get(id) as number };
    const read = report({ device: device({ id }), findings: [...tell('Level', 0.3, 0.9), ...tell('Latched', 0.1, 0.9), count] });
    const logged = { outOfBand: outOfBand({ findings: tell('Logged', 0.2, 1) }) };
    const told = { ...(random() < 0.05 ? { device: read.device } : read), ...(random() < 0.5 ? logged : {}) };
    known.set(id, told);
    return told;
  };
  let latest: TimedCollection | undefined;
  for (let turn = 0; turn < 300; turn += 1) {
    monotonicMs += Math.round(random() * (random() < 0.03 ? 120_000 : 15_000)) + 10;
    set();
    if (random() < 0.85) {
      const reports = ['a', 'b', 'c'].filter(() => random() > 0.06).map(reportOf);
      const listing = random() > 0.1 ? 'complete' : 'partial';
      latest = lookAt(listed(reports, { listing }), offsetMs + monotonicMs, monotonicMs);
    }
    monotonicMs += 20;
    set();
    const inputs = { families: [{ state: familyState('toy'), latest }], podResources: podResources([]), checkpoint: [] };
    const { devices } = assembler.assemble(inputs, { nowMs: offsetMs + monotonicMs, monotonicMs });
    story.push(`${monotonicMs} ${devices.map(({ key, missingSinceMs, stale }) => `${key} ${missingSinceMs !== undefined} ${stale}`)}`);
  }
  return story;
}

it.each(Array.from({ length: repetitions(6, 20) }, (_, index) => index + 1))(
  'a wall clock that is set changes nothing that is told (life %i)',
  (seed) => {
    expect(life(seed, true)).toEqual(life(seed, false));
  },
);
