import { expect, it } from 'vitest';
import { Accounts } from '../../src/accounting/accounts.ts';
import { family } from '../../src/probes/nvidia/index.ts';
import { metrics } from '../../src/probes/nvidia/metrics.ts';
import { familyState, listed, lookAt, podResources } from '../support/snapshots.ts';
import { assembler, gpu, gpuReadings, holds, report, settings } from './small-node.ts';

const [STEP, READS] = [10_000, 12];

/** Busy seconds of a container that works 86 % of each time, where each sample of the driver happens to meet a kernel. */
function busySeconds(hasMeans: boolean): number {
  const activity = new Map([['gpu', { spec: family.activity as NonNullable<typeof family.activity> }]]);
  const agent = assembler({ accounts: new Accounts({ ...settings, activity }) });
  let busy = 0;
  for (let read = 0; read <= READS; read += 1) {
    const now = read * STEP;
    const mean = { metric: metrics.activity.name, labels: { unit: 'graphics' }, value: 0.86 };
    const readings = [...gpuReadings(1, now), ...(hasMeans ? [mean] : [])];
    const { usage } = agent.assemble(
      {
        families: [{ state: familyState('gpu'), latest: lookAt(listed([report(gpu('g0'), readings)]), now, now, now) }],
        podResources: podResources([holds('g0', 'train')], { answeredAtMs: now }),
        checkpoint: [],
      },
      { nowMs: now, monotonicMs: now },
    );
    busy = usage?.containers[0]?.busySeconds.gpu ?? 0;
  }
  return busy;
}

it('the busy time of a GPU is the mean of its graphics engine, where that is read, and not the sample of a moment', () => {
  expect(busySeconds(true)).toBeCloseTo(0.86 * 120);
  expect(busySeconds(false)).toBeCloseTo(120);
});
