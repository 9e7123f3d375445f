import { describe, expect, it } from 'vitest';
import { Assembler } from '../../src/agent/assemble.ts';
import { kinOf } from '../../src/agent/steps/kin.ts';
import { OccupancyTracker } from '../../src/agent/use.ts';
import { createHealthEngine } from '../../src/health/engine/engine.ts';
import { useLimits } from '../../src/health/occupancy/explained.ts';
import { useFindings } from '../../src/health/occupancy/findings.ts';
import { createPolicy } from '../../src/health/policy/policy.ts';
import type { HeldRecord } from '../../src/model/device-record.ts';
import { Readings } from '../../src/model/readings.ts';
import type { ContainerWaiting } from '../../src/model/usage.ts';
import { family } from '../../src/probes/nvidia/index.ts';
import { podResources } from '../support/snapshots.ts';

const HOLDER = { namespace: 'team', pod: 'job-0', container: 'main', resource: 'nvidia.com/gpu', deviceId: 'gpu0', numaNodes: [] };
const read = { readings: Readings.NONE, findings: [], startedMs: 2_000, readAtMs: 2_100, monotonicMs: 2_100 };
const record = (holders: HeldRecord['holders'], endedMs = 2_100): HeldRecord => ({
  key: 'nvidia/gpu0',
  device: { family: 'nvidia', id: 'gpu0', kind: 'gpu', aliases: [] },
  read: { ...read, startedMs: endedMs - 100, readAtMs: endedMs, monotonicMs: endedMs },
  isUnread: false,
  holders,
  current: { ...read, startedMs: endedMs - 100, readAtMs: endedMs, monotonicMs: endedMs },
  readings: Readings.NONE,
  processes: [],
  readAtMs: endedMs,
  stale: false,
  awaitedSinceMs: undefined,
});

const LAST = Date.parse('2026-03-01T10:00:00Z');
const waiting = (state: ContainerWaiting['state']): ContainerWaiting => ({
  namespace: 'team',
  pod: 'job-0',
  container: 'main',
  devices: ['nvidia/gpu0'],
  state,
  lastProgressMs: LAST,
  stepSeconds: 30,
});

/** Compares the only device of a node with its holders, look after look. */
function occupancies() {
  const tracker = new OccupancyTracker();
  const settings = { activities: new Map(), idle: {}, canWait: new Set(['nvidia']) };
  const related = { allocations: [], podResources: podResources([]), kin: kinOf(new Map()), inCheckpoint: () => new Set<string>() };
  const input = { ...related, before: new Map() };
  return (holders: HeldRecord['holders'], answers: readonly ContainerWaiting[] | undefined, ms: number) => {
    const records = [record(holders, ms)];
    const { occupancy } =
      tracker.compare(settings, { ...input, records, waiting: answers }, { nowMs: ms, monotonicMs: ms }).get('nvidia/gpu0') ?? {};
    if (occupancy === undefined) throw new Error('the device was not compared');
    return occupancy;
  };
}

/** Findings on the only device of a node whose container is judged so. */
function findings(answers: readonly ContainerWaiting[] | undefined, holders = [HOLDER]) {
  const compare = occupancies();
  compare(holders, answers, 1_000);
  const occupancy = compare(holders, answers, 2_200);
  const all = useFindings(occupancy, useLimits({ 'allowed-processes': [], 'dirty-mib': 256 }));
  return all.filter(({ type }) => type === 'BusyWaiting' || type === 'Stalled');
}

describe('the conditions of waiting', () => {
  it('hold one at a time, and name the last progress and the steps', () => {
    expect(findings([waiting('waiting')])).toMatchObject([
      { type: 'BusyWaiting', status: true, message: 'held by team/job-0, busy, and nothing moves since 2026-03-01T10:00:00Z' },
      { type: 'Stalled', status: false },
    ]);
    expect(findings([waiting('stalled')])).toMatchObject([
      { type: 'BusyWaiting', status: false },
      {
        type: 'Stalled',
        status: true,
        message: 'held by team/job-0, busy, and none of its steps of 30 s was seen since 2026-03-01T10:00:00Z',
      },
    ]);
  });

  it('end when the container moves on, when the device is free, and when nothing is judged', () => {
    for (const found of [findings([waiting('not-waiting')]), findings([], []), findings(undefined)])
      expect(found).toMatchObject([
        { type: 'BusyWaiting', status: false },
        { type: 'Stalled', status: false },
      ]);
  });

  it('stay as they were while the state is not known', () => {
    expect(findings([waiting('unknown')])).toEqual([]);
    expect(findings([])).toEqual([]);
  });

  it('end with the pod that they are about, and name it, although nothing is known of the next holder', () => {
    const { policy } = createPolicy({ specs: { nvidia: family.conditions } });
    const engine = createHealthEngine({ policy });
    const next = { ...HOLDER, pod: 'job-1' };
    const compare = occupancies();
    const judge = (holder: typeof HOLDER, state: ContainerWaiting['state'], ms: number) => {
      const occupancy = compare([holder], [{ ...waiting(state), pod: holder.pod }], ms);
      const found = useFindings(occupancy, useLimits({ 'allowed-processes': [], 'dirty-mib': 256 }));
      const one = Object.assign(record([holder], ms), {
        lastHolders: undefined,
        occupancy,
        use: { findings: found, readAtMs: ms, monotonicMs: ms },
      });
      return engine.judge({ devices: [one], monotonicMs: ms }, ms);
    };
    judge(HOLDER, 'not-waiting', 1_000);
    const begun = judge(HOLDER, 'stalled', 2_000);
    expect(begun.events).toMatchObject([{ transition: 'raised', condition: 'Stalled', holders: [{ pod: 'job-0' }] }]);
    expect(judge(HOLDER, 'unknown', 3_000).verdicts.get('nvidia/gpu0')?.conditions).toMatchObject([{ type: 'Stalled' }]);
    const handed = judge(next, 'unknown', 4_000);
    expect(handed.verdicts.get('nvidia/gpu0')?.conditions).toEqual([]);
    expect(handed.events).toMatchObject([{ transition: 'cleared', condition: 'Stalled', holders: [{ pod: 'job-0' }] }]);
    expect(handed.events[0]?.message).toContain('because the pod that it was about no longer holds the device');
    judge(next, 'unknown', 5_000);
    expect(judge(next, 'stalled', 6_000).events).toMatchObject([{ transition: 'raised', holders: [{ pod: 'job-1' }] }]);
  });

  it('never withhold a device', () => {
    const { policy } = createPolicy({ specs: { nvidia: family.conditions } });
    const engine = createHealthEngine({ policy });
    const used = (found: ReturnType<typeof findings>, monotonicMs: number) =>
      Object.assign(record([HOLDER]), {
        current: { ...read, monotonicMs },
        read: { ...read, monotonicMs },
        lastHolders: undefined,
        occupancy: undefined,
        use: { findings: found, readAtMs: monotonicMs, monotonicMs },
      });
    const judged = engine.judge({ devices: [used(findings([waiting('stalled')]), 3_000)], monotonicMs: 3_000 }, 3_000);
    expect(judged.verdicts.get('nvidia/gpu0')).toMatchObject({ state: 'healthy', conditions: [{ type: 'Stalled', severity: 'info' }] });
    expect(judged.verdicts.get('nvidia/gpu0')?.conditions).toHaveLength(1);
  });
});

it('an assembler without a past judges no container', () => {
  const assembler = new Assembler(
    { rules: { pools: [], families: new Map() }, specs: new Map(), staleAfterMs: 1, missingRetentionMs: 1 },
    () => new Map(),
  );
  expect(assembler.readSoon.size).toBe(0);
});
