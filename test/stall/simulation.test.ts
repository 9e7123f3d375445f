import { describe, expect, it } from 'vitest';
import { always, hang, play, steps } from './corpus/simulation.ts';

const COMPUTE = { busy: true, tensor: 0.8, dram: 0.3, watts: 600, nvlink: 0 };
const plan = {
  name: 'a short training',
  kind: 'training',
  source: 'simulation',
  seed: 7,
  machine: { gpus: 2, nics: 1, limitWatts: 700, lacks: ['dram'] as const },
  phases: [
    { forSeconds: 600, work: steps({ stepSeconds: 20, compute: COMPUTE, exchange: { ...COMPUTE, tensor: 0, nvlink: 8e9 } }) },
    { forSeconds: 600, work: always({ busy: true, watts: 140 }) },
  ],
  truth: hang(600, 1200),
};

describe('the simulation of histories', () => {
  it('gives the same history for the same seed, and another for another one', () => {
    expect(play(plan)).toEqual(play(plan));
    expect(play({ ...plan, seed: 8 })).not.toEqual(play(plan));
  });

  it('leaves out what the machine does not give, and has means of what it does', () => {
    const { reads } = play(plan);
    const working = reads.filter(({ atSeconds }) => atSeconds < 590);
    const mean = (of: (read: (typeof reads)[number]) => number): number =>
      working.reduce((sum, read) => sum + of(read), 0) / working.length;
    expect(mean(({ devices }) => devices.gpu0?.nvlinkBytesPerSecond ?? Number.NaN)).toBeCloseTo(2e9, -9);
    expect(reads.every(({ devices }) => devices.gpu1?.dram === undefined && devices.nic1 === undefined)).toBe(true);
    expect(reads.at(-1)?.devices.gpu1).toMatchObject({ utilization: 1, tensor: 0, nvlinkBytesPerSecond: 0 });
  });

  it('has no read while no agent runs', () => {
    const { reads } = play({ ...plan, restarts: [{ endedAtSeconds: 300, startedAtSeconds: 400 }] });
    expect(reads.filter(({ atSeconds }) => atSeconds > 300 && atSeconds < 400)).toEqual([]);
  });
});
