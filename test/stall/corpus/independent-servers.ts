import { seededRandom } from '../../support/seeded.ts';
import type { HistorySource, StallHistory } from '../history.ts';
import { A100, alter, apart, H100, HOUR, ids, inSteps, inside, inTurn, leaveOut, MINUTE } from './mix.ts';
import { always, busyWaiting, hang, type Moment, type Phase, play, steps, type Work } from './simulation.ts';

// Servers of models, which spin while they wait, and devices that containers share.

const source = (name: string, make: () => StallHistory): HistorySource => ({ name, make });

/** A server whose ranks poll inside a kernel for the next request, as persistent kernels and some tensor-parallel loops do. */
const POLLING: Moment = { ...H100.spin, watts: 146 };
const DECODE: Moment = { busy: true, tensor: 0.08, dram: 0.5, watts: 450, nvlink: 22e9, pcie: 0.02e9 };
const PREFILL: Moment = { busy: true, tensor: 0.5, dram: 0.25, watts: 610, nvlink: 90e9, pcie: 0.1e9 };
const LOAD: Moment = { ...H100.context, watts: 132, pcie: 3e9 };

/** Requests that come at random: seconds of work and seconds of waiting, both exponential. */
function traffic(seed: number, workSeconds: number, waitSeconds: number, waiting: Moment): Work {
  const random = seededRandom(seed);
  const exponential = (mean: number): number => 0.3 - mean * Math.log(1 - random());
  return inSteps(
    (n) => exponential(n % 2 === 0 ? workSeconds : Math.max(0.1, waitSeconds)),
    (share, n) => (n % 2 === 1 ? waiting : share < 0.2 ? PREFILL : DECODE),
  );
}

const server = (
  name: string,
  kind: string,
  text: string,
  seed: number,
  phases: readonly Phase[],
  truth: StallHistory['truth'] = [],
): HistorySource =>
  source(name, () => play({ name, kind, source: text, seed, machine: { ...H100.machine, gpus: 8, nics: 0 }, phases, truth }));

const V100_IDLE = 'V100 server at 100 % and 66 of 300 W from its start on, nobody asks it';
const v100Idle = source(V100_IDLE, () =>
  play({
    name: V100_IDLE,
    kind: 'idle-inference',
    source: 'published: a sound idle server on V100, 100 % and 66 of 300 W; the noise is a simulation',
    seed: 3001,
    machine: { gpus: 2, nics: 0, limitWatts: 300, model: 'Tesla V100-SXM2-32GB', lacks: ['tensor', 'dram'] },
    phases: [
      { forSeconds: 4 * HOUR, work: (seconds, gpu) => ({ busy: true, watts: 66 + gpu + Math.sin(seconds / 700), memoryBytes: 29e9 }) },
    ],
  }),
);

const EIGHT = 'eight H100 poll for requests for three hours after weights were loaded for 90 s';
const hotIdle = server(
  EIGHT,
  'idle-inference',
  'simulation: load, capture of CUDA graphs for a minute, then nothing but polling. To load is not to serve, so it is idle from its start on',
  3002,
  [
    { forSeconds: 90, work: always(LOAD) },
    { forSeconds: 60, work: traffic(1, 2, 1, POLLING) },
    { forSeconds: 3 * HOUR, work: always(POLLING) },
  ],
);

const THEN_HANGS = 'a server polls from its start, gets requests for 75 minutes, then hangs';
const serverHangs = server(
  THEN_HANGS,
  'bursty-inference',
  'simulation: one rank loses a message of the scheduler; requests have no period, so it is not Stalled',
  3003,
  [
    { forSeconds: 90, work: always(LOAD) },
    { forSeconds: 40 * MINUTE, work: always(POLLING) },
    { forSeconds: 75 * MINUTE, work: traffic(2, 25, 4, POLLING) },
    { forSeconds: 35 * MINUTE, work: always(POLLING) },
  ],
  busyWaiting(90 + 115 * MINUTE, 90 + 150 * MINUTE),
);

const NIGHT = 'a busy server with CUDA graphs polls through a quiet night';
const night = server(
  NIGHT,
  'bursty-inference',
  'simulation: no request for 50 minutes after two hours of many; it waits busily by the definition, and does not hang',
  3004,
  [
    { forSeconds: 2 * HOUR, work: traffic(3, 40, 3, POLLING) },
    { forSeconds: 50 * MINUTE, work: always(POLLING) },
    { forSeconds: 20 * MINUTE, work: traffic(4, 40, 3, POLLING) },
  ],
  busyWaiting(2 * HOUR, 170 * MINUTE),
);

const BATCHES = 'a polling server gets a batch every 5 minutes, then no more';
const batches = server(
  BATCHES,
  'bursty-inference',
  'simulation: 90 s of work in 300 s. The median is what a polling GPU moves, so nothing falls below a hundredth of it',
  3005,
  [
    {
      forSeconds: 100 * MINUTE,
      work: inSteps(
        () => 300,
        (share) => (share < 0.3 ? DECODE : POLLING),
      ),
    },
    { forSeconds: 60 * MINUTE, work: always(POLLING) },
  ],
);

const SPARSE = 'a server with rare requests whose GPUs idle between them';
const sparse = server(
  SPARSE,
  'bursty-inference',
  'simulation: requests of 8 s about every 70 s, then none for an hour; no kernel runs while it waits',
  3006,
  [
    { forSeconds: 2 * HOUR, work: traffic(5, 8, 70, H100.context) },
    { forSeconds: HOUR, work: always(H100.context) },
  ],
);

const SLICES = 'two MIG slices of one H100: one trains, the kernel of the other never ends';
const slices = source(SLICES, () => {
  const slice = (tensor: number): Moment => ({ busy: true, tensor, dram: 0.3, watts: 400, pcie: 0.8e9, memoryBytes: 38e9 });
  const working = steps({ stepSeconds: 3, seed: 7, compute: slice(0.4), exchange: { ...slice(0.05), pcie: 0.2e9 } });
  const stuck = inTurn([
    { forSeconds: 70 * MINUTE, work: steps({ stepSeconds: 2.5, seed: 8, compute: slice(0.35), exchange: { ...slice(0.1), pcie: 2e9 } }) },
    { forSeconds: 50 * MINUTE, work: always({ busy: true, tensor: 0, dram: 1e-6, watts: 400, memoryBytes: 38e9 }) },
  ]);
  const history = play({
    name: SLICES,
    kind: 'shared',
    source: 'NVIDIA: no utilisation while MIG is on, GPM works for each instance, power is of the whole card; simulation of the jobs',
    seed: 3011,
    machine: { ...H100.machine, gpus: 2, nics: 0, lacks: ['utilization', 'watts', 'nvlinkBytesPerSecond'] },
    phases: [{ forSeconds: 2 * HOUR, work: apart(1, working, stuck) }],
  });
  const named: Record<string, string> = { gpu0: 'mig0', gpu1: 'mig1' };
  return {
    ...history,
    devices: Object.fromEntries(ids('mig', 0, 2).map((id) => [id, { kind: 'mig' as const, model: 'NVIDIA H100 80GB HBM3 MIG 3g.40gb' }])),
    containers: [
      { pod: 'team-a', container: 'main', devices: ['mig0'] },
      { pod: 'team-b', container: 'main', devices: ['mig1'] },
    ],
    reads: history.reads.map(({ atSeconds, devices }) => ({
      atSeconds,
      devices: Object.fromEntries(Object.entries(devices).map(([id, values]) => [named[id] ?? id, values])),
    })),
    truth: inside(
      hang(70 * MINUTE, 2 * HOUR, 'no value tells that the engine is busy while MIG is on; an idle slice reads the same'),
      'team-b',
    ),
  };
});

const SAME = 'two containers share one A100 by time: one trains, the other hangs';
const same = source(SAME, () => {
  const machine = { ...A100.machine, gpus: 1, nics: 0 };
  const together = (watts: number, pcie: number): Moment => ({ busy: true, watts, pcie, memoryBytes: 60e9 });
  const history = play({
    name: SAME,
    kind: 'shared',
    source: 'simulation: time-slicing; the values of the GPU are the sum of both',
    seed: 3012,
    machine,
    phases: [
      { forSeconds: HOUR, work: steps({ stepSeconds: 4, seed: 9, compute: together(350, 0.5e9), exchange: together(260, 2e9) }) },
      // The spinning kernel takes half of the time.
      { forSeconds: HOUR, work: steps({ stepSeconds: 6, seed: 10, compute: together(230, 0.3e9), exchange: together(180, 1.2e9) }) },
    ],
  });
  return {
    ...history,
    containers: [
      { pod: 'team-a', container: 'main', devices: ['gpu0'] },
      { pod: 'team-b', container: 'main', devices: ['gpu0'] },
    ],
    truth: inside(hang(HOUR, 2 * HOUR, 'the container that works moves bytes and draws power on the same GPU'), 'team-b'),
  };
});

const TENANTS = 'two jobs on one node: one hangs, the other trains on';
const tenants = source(TENANTS, () => {
  const working = steps({ stepSeconds: 5, seed: 12, compute: H100.compute, exchange: { ...H100.exchange, nic: 0 } });
  const stuck = inTurn([
    { forSeconds: 75 * MINUTE, work: steps({ stepSeconds: 11, seed: 13, compute: H100.compute, exchange: { ...H100.exchange, nic: 0 } }) },
    { forSeconds: 45 * MINUTE, work: always(H100.spin) },
  ]);
  const history = play({
    name: TENANTS,
    kind: 'hang',
    source: 'simulation: four GPUs each, no adapter. The utilisation of the hanging GPUs fails in two of a hundred reads',
    seed: 3013,
    machine: { ...H100.machine, gpus: 8, nics: 0 },
    phases: [{ forSeconds: 2 * HOUR, work: apart(4, stuck, working) }],
  });
  const random = seededRandom(14);
  return {
    ...alter(history, (values) => (random() < 0.02 ? leaveOut(values, ['utilization', 'tensor']) : values)),
    containers: [
      { pod: 'job-a', container: 'main', devices: ids('gpu', 0, 4) },
      { pod: 'job-b', container: 'main', devices: ids('gpu', 4, 8) },
    ],
    truth: inside(hang(75 * MINUTE, 2 * HOUR), 'job-a'),
  };
});

export const histories: readonly HistorySource[] = [v100Idle, hotIdle, serverHangs, night, batches, sparse, slices, same, tenants];
