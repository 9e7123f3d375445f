import { describe, expect, it } from 'vitest';
import { seconds } from '../../src/model/duration.ts';
import { H100, LOADS, type Load } from './corpus/figures.ts';
import { type Play, play, steps } from './corpus/simulation.ts';
import type { StallHistory } from './history.ts';
import { replay, settings } from './replay.ts';

/** Steps of bf16 products that copy their input from the host, as `job.py` of a real H100 made them. */
const training = (stepSeconds: number) =>
  steps({
    stepSeconds,
    exchangeShare: 0.2,
    compute: { busy: true, tensor: 0.94, fp16: 0.02, fp32: 0.01, integer: 0.05, dram: 0.3, watts: 670, pcie: 2e8 },
    exchange: { busy: false, watts: 140, pcie: 2e8 },
  });

const history = (load: Load, stepSeconds: number, forSeconds: readonly [number, number], more: Partial<Play> = {}): StallHistory =>
  play({
    ...{ name: load.name, kind: 'load', source: load.source, seed: 5, fineSeconds: 0.1, machine: H100 },
    phases: [
      { forSeconds: forSeconds[0], work: training(stepSeconds) },
      { forSeconds: forSeconds[1], work: load.work },
    ],
    ...more,
  });

/** Seconds from the begin of a load until the container was said to wait. */
const toldAfter = (one: StallHistory, from: number, using = settings()): number | undefined => {
  const told = replay(one, using).told.find(({ state }) => state === 'BusyWaiting');
  return told && told.fromSeconds - from;
};

describe.each(LOADS)('after steps of training, $name', (load) => {
  it(`${load.isWaiting ? 'is' : 'is not'} said to wait, at the default options`, () => {
    const after = toldAfter(history(load, 60, [1_800, 1_800]), 1_800);
    if (!load.isWaiting) expect(after).toBeUndefined();
    else {
      expect(after).toBeGreaterThan(590);
      expect(after).toBeLessThan(660);
    }
  });

  it(`${load.isWaiting ? 'is' : 'is not'} said to wait, when a container waits after half a minute and is read each second`, () => {
    const using = settings({ after: seconds(30), learn: seconds(30), sample: seconds(1) });
    const after = toldAfter(history(load, 1.5, [60, 72], { everySeconds: 1 }), 60, using);
    if (!load.isWaiting) expect(after).toBeUndefined();
    else {
      expect(after).toBeGreaterThan(29);
      expect(after).toBeLessThan(46);
    }
  });
});

it('a GPU of which a pipe or the power is not read any more is not known to wait', () => {
  const [spin] = LOADS.filter(({ isWaiting }) => isWaiting);
  for (const value of ['tensor', 'dram', 'watts'] as const) {
    const unread = [{ fromSeconds: 1_800, toSeconds: 3_600, values: [value] }];
    const { told, last } = replay(history(spin as Load, 60, [1_800, 1_800], { unread }));
    expect(told).toEqual([]);
    expect(last).toMatchObject([{ state: 'unknown' }]);
  }
});
