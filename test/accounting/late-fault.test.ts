import { expect, it } from 'vitest';
import type { Fault } from '../../src/model/fault.ts';
import { familyState, listed, lookAt, podResources } from '../support/snapshots.ts';
import { assembler, gpu, gpuReadings, holds, report, usageParts } from './small-node.ts';

const WALL = Date.parse('2030-01-01T00:00:00Z');
const STEP = 10_000;
const COUNTER = 'device_gpu_traps_total';

/** A fault of pod f, whose GPU has pod g since the last look. */
const faultAt = (ms: number, seq: number): Fault => ({
  ...{ witness: 'log', epoch: '', first: { seq, usec: ms * 1_000 }, last: { seq, usec: ms * 1_000 }, type: 'Trap', code: '43' },
  ...{ reason: 'Application', severity: 'info', remedy: 'restart-workload', message: 'Trap 43', count: 1, lines: [`line ${seq}`] },
  ...{ timeMs: WALL + ms, lastMs: WALL + ms, process: { pid: 7, podUid: 'uid-f' }, counter: { metric: COUNTER, labels: { trap: '43' } } },
});

/** The traps of each pod after each look. `faults`: those that a look reports. */
function play(faults: Readonly<Record<number, readonly Fault[]>>, lastMs: number): readonly Record<string, unknown>[] {
  const agent = assembler(usageParts());
  const seen: Record<string, unknown>[] = [];
  for (let now = 0; now <= lastMs; now += STEP) {
    const held = [holds('g0', now < 2 * STEP ? 'f' : 'g')];
    const { usage } = agent.assemble(
      {
        families: [
          {
            state: familyState('gpu'),
            latest: lookAt(listed([{ ...report(gpu('g0'), gpuReadings(1, now)), faults: faults[now] ?? [] }]), WALL + now, now, now - 20),
          },
        ],
        podResources: podResources(held, { answeredAtMs: WALL + now }),
        checkpoint: held.map(({ pod, container, resource, deviceId }) => ({
          ...{ podUid: `uid-${pod}`, container, resource, deviceIds: [deviceId] },
        })),
      },
      { nowMs: WALL + now, monotonicMs: now },
    );
    seen.push(
      Object.fromEntries(
        (usage?.containers ?? []).map(({ pod, counters = [] }) => [pod, counters.find(({ metric }) => metric === COUNTER)?.value]),
      ),
    );
  }
  return seen;
}

it('a fault that is read after the end of its container still counts for it, and for no other one', () => {
  const first = faultAt(15_000, 1);
  const second = faultAt(18_000, 2);
  const seen = play({ 10000: [], 30000: [first], 40000: [first, second] }, 50_000);
  expect(seen.slice(2)).toEqual([
    { f: undefined, g: undefined },
    { f: 1, g: undefined },
    { f: 2, g: undefined },
    { f: 2, g: undefined },
  ]);
});
