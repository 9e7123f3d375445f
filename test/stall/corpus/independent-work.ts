import type { HistorySource } from '../history.ts';
import {
  A100,
  a100,
  all,
  apart,
  around,
  H100,
  HOUR,
  h100,
  ids,
  inSteps,
  inTurn,
  L40S,
  MINUTE,
  noisy,
  playCoarsely,
  waitsAtLeast,
} from './mix.ts';
import { always, type Play, play, steps } from './simulation.ts';

// Containers that work, though many of them look as if they did not.

const training = (seed: number, stepSeconds = 6, jitter = 0.015) =>
  steps({ stepSeconds, jitter, seed, compute: H100.compute, exchange: H100.exchange });

const plans: readonly Omit<Play, 'seed'>[] = [
  {
    name: 'pretraining in steps of 6 s, with a short checkpoint each half hour',
    kind: 'training',
    source: 'Llama 3 paper: 405 B parameters, 16 M tokens a batch, 16,384 H100 at 400 TFLOP/s, which gives about 6 s a step; simulation',
    machine: h100,
    phases: [0, 1, 2, 3].flatMap((part) => [
      { forSeconds: 30 * MINUTE, work: training(11 + part) },
      { forSeconds: 25, work: always({ ...H100.context, pcie: 4e9, nic: 1e9 }) },
    ]),
    steps: [all(0, 30 * MINUTE, 6)],
  },
  {
    name: 'A100 in steps of 2 s, read each second, with validation each ten minutes',
    kind: 'training',
    source: 'simulation: image model with data-parallel ranks; power as operators report for A100',
    everySeconds: 1,
    fineSeconds: 0.1,
    machine: { ...A100.machine, gpus: 4, nics: 1 },
    phases: [0, 1, 2, 3].flatMap((part) => [
      {
        forSeconds: 10 * MINUTE,
        work: steps({ stepSeconds: 2, jitter: 0.04, seed: 21 + part, compute: A100.compute, exchange: A100.exchange }),
      },
      // Validation has no gradients, so no byte goes between the ranks.
      { forSeconds: 75, work: always({ busy: true, watts: 250, pcie: 0.6e9 }) },
    ]),
    steps: [all(0, 10 * MINUTE, 2)],
  },
  {
    name: 'gradient accumulation: 16 small batches of 2 s in one step of 32 s',
    kind: 'training',
    source:
      'Megatron-LM paper: GPT-3 on 1024 A100 at 140 TFLOP/s and 1536 sequences a batch, about 32 s a step; simulation of the small batches',
    fineSeconds: 0.2,
    machine: a100,
    phases: [
      {
        forSeconds: 2 * HOUR,
        work: inSteps(around(32, 0.02, 31), (share) => {
          if (share > 0.9) return A100.exchange;
          // Each small batch ends with an exchange inside the node.
          return (share * 17.8) % 1 < 0.75 ? A100.compute : { ...A100.compute, watts: 260, nvlink: 130e9 };
        }),
      },
    ],
    steps: [all(0, 2 * HOUR, 32)],
  },
  {
    name: 'steps of 10 min in which the ranks meet for 25 s only',
    kind: 'training',
    source: 'simulation: very large batch with local accumulation (as local SGD does), no tensor parallelism',
    machine: h100,
    phases: [
      {
        forSeconds: 4 * HOUR,
        work: inSteps(around(600, 0.01, 41), (share) => (share > 0.958 ? H100.exchange : { ...H100.compute, nvlink: 0, pcie: 0.04e9 })),
      },
    ],
    steps: [all(0, 4 * HOUR, 600)],
  },
  {
    name: 'random paths on plain arithmetic units: busy, no tensor, no DRAM, few bytes',
    kind: 'training',
    source: 'simulation: Monte Carlo in registers, 480 of 700 W; the results are copied out every 4 minutes',
    machine: { ...H100.machine, gpus: 4, nics: 0 },
    phases: [
      {
        forSeconds: 2.5 * HOUR,
        work: inSteps(around(240, 0.03, 51), (share) =>
          share > 0.96 ? { busy: true, tensor: 0, dram: 0.1, watts: 300, pcie: 9e9 } : { busy: true, tensor: 0, dram: 2e-5, watts: 480 },
        ),
      },
    ],
  },
  {
    name: 'A100 under power brake: full engine at 23 % of the limit, all bytes six times slower',
    kind: 'slow',
    source: 'NVIDIA: the hardware power brake cuts the clock to a fraction; simulation of a fault of the power supply of a node',
    machine: a100,
    phases: [
      { forSeconds: 70 * MINUTE, work: steps({ stepSeconds: 5, seed: 61, compute: A100.compute, exchange: A100.exchange }) },
      {
        forSeconds: 50 * MINUTE,
        work: steps({
          stepSeconds: 31,
          seed: 62,
          compute: { ...A100.compute, watts: 93, nvlink: 11e9, pcie: 0.03e9 },
          exchange: { ...A100.exchange, watts: 90, nvlink: 16e9, pcie: 1.3e9, nic: 1.4e9 },
        }),
      },
      { forSeconds: 20 * MINUTE, work: steps({ stepSeconds: 5, seed: 63, compute: A100.compute, exchange: A100.exchange }) },
    ],
    steps: [all(0, 70 * MINUTE, 5), all(70 * MINUTE, 120 * MINUTE, 31)],
  },
  {
    name: 'a job that falls back to TCP: the exchange takes 11 minutes instead of 2 seconds',
    kind: 'slow',
    source: 'simulation: the RDMA plugin was lost at a restart of a rank; about 3 % of the bytes go on flowing',
    machine: { ...h100, nics: 2 },
    phases: [
      {
        forSeconds: HOUR,
        work: steps({ stepSeconds: 8, seed: 71, compute: { ...H100.compute, nvlink: 4e9 }, exchange: { ...H100.exchange, nvlink: 6e9 } }),
      },
      {
        forSeconds: 70 * MINUTE,
        // The kernel that waits for sockets spins; the processor copies.
        work: inSteps(around(672, 0.02, 72), (share) =>
          share < 0.01
            ? { ...H100.compute, nvlink: 4e9 }
            : { ...H100.spin, watts: 150, dram: 0.002, pcie: 0.25e9, nvlink: 0.1e9, nic: 0.3e9 },
        ),
      },
    ],
    steps: [all(0, HOUR, 8), all(HOUR, 130 * MINUTE, 672)],
  },
  {
    name: 'a power cap of 350 W in the afternoon makes all GPUs slow together',
    kind: 'slow',
    source: 'simulation: site demand response; the limit in force is 350 W in the whole history',
    machine: { ...h100, limitWatts: 350 },
    phases: [
      {
        forSeconds: 2.5 * HOUR,
        work: steps({
          stepSeconds: 11,
          jitter: 0.06,
          seed: 75,
          compute: { ...H100.compute, tensor: 0.22, dram: 0.18, watts: 347, nvlink: 60e9 },
          exchange: { ...H100.exchange, watts: 280, nvlink: 90e9, nic: 11e9 },
        }),
      },
    ],
    steps: [all(0, 2.5 * HOUR, 11)],
  },
  {
    name: 'one hot GPU makes seven wait for a third of each step',
    kind: 'straggler',
    source: 'Llama 3 and MegaScale papers tell of single slow hosts; simulation: gpu5 is throttled and draws 390 W',
    machine: h100,
    phases: [
      { forSeconds: 45 * MINUTE, work: training(81) },
      {
        forSeconds: 75 * MINUTE,
        work: inSteps(around(9.5, 0.02, 82), (share, _, gpu) => {
          if (share > 0.84) return H100.exchange;
          if (gpu === 5) return { ...H100.compute, tensor: 0.24, dram: 0.2, watts: 390, nvlink: 60e9 };
          return share < 0.5 ? H100.compute : H100.spin;
        }),
      },
    ],
    steps: [all(0, 45 * MINUTE, 6), all(45 * MINUTE, 2 * HOUR, 9.5)],
  },
  {
    name: 'a straggler on another node makes each step last 9 minutes, of which all GPUs here spin 8.5',
    kind: 'straggler',
    source: 'simulation: another node pages to disk; the bytes come in 30 s once in 9 minutes',
    machine: h100,
    phases: [
      { forSeconds: HOUR, work: training(91) },
      {
        forSeconds: 90 * MINUTE,
        work: inSteps(around(540, 0.015, 92), (share) => (share < 0.03 ? H100.compute : share > 0.97 ? H100.exchange : H100.spin)),
      },
      { forSeconds: 20 * MINUTE, work: training(93) },
    ],
    steps: [all(0, HOUR, 6), all(HOUR, 150 * MINUTE, 540)],
  },
  {
    name: 'checkpoints of 5 min during which all ranks spin in a barrier',
    kind: 'checkpoint',
    source:
      'BLOOM chronicles: one checkpoint of 2.3 TB every few hours; simulation: rank 0 of another node writes, the others wait in NCCL',
    machine: a100,
    phases: [0, 1, 2].flatMap((part) => [
      { forSeconds: 40 * MINUTE, work: steps({ stepSeconds: 30, seed: 101 + part, compute: A100.compute, exchange: A100.exchange }) },
      { forSeconds: 5 * MINUTE, work: always(A100.spin) },
    ]),
    steps: [all(0, 40 * MINUTE, 30)],
  },
  {
    name: 'L40S checkpoint of 20 min: GPUs spin at 24 % of power while the shards go out over PCIe and network',
    kind: 'checkpoint',
    source:
      'simulation: gathered checkpoint to slow network storage, 0.15 GB/s a GPU, which is about a twelfth of what training moves over PCIe and network',
    machine: { ...L40S.machine, gpus: 8, nics: 2 },
    phases: [
      { forSeconds: HOUR, work: steps({ stepSeconds: 12, seed: 111, compute: L40S.compute, exchange: L40S.exchange }) },
      { forSeconds: 20 * MINUTE, work: always({ ...L40S.spin, pcie: 0.3e9, nic: 0.6e9 }) },
      { forSeconds: 40 * MINUTE, work: steps({ stepSeconds: 12, seed: 112, compute: L40S.compute, exchange: L40S.exchange }) },
    ],
    steps: [all(0, HOUR, 12)],
  },
  {
    name: 'checkpoint of 20 min that another node writes: all GPUs here spin and no byte moves',
    kind: 'checkpoint',
    source: 'simulation: the job is sound, but by the letter of the definition it waits busily',
    machine: h100,
    phases: [
      { forSeconds: 75 * MINUTE, work: training(121) },
      { forSeconds: 20 * MINUTE, work: always(H100.spin) },
      { forSeconds: 30 * MINUTE, work: training(122) },
    ],
    truth: waitsAtLeast(75 * MINUTE, 95 * MINUTE, 'the other node writes a checkpoint; until it is done nothing here differs from a hang'),
    steps: [all(0, 75 * MINUTE, 6)],
  },
  {
    name: 'checkpoint of 20 min with a barrier of the CPUs: GPUs idle',
    kind: 'checkpoint',
    source: 'simulation: the ranks wait over gloo, so no kernel runs',
    machine: { ...h100, nics: 0 },
    phases: [
      { forSeconds: 50 * MINUTE, work: training(131, 2.4) },
      { forSeconds: MINUTE, work: always({ ...H100.context, pcie: 12e9 }) },
      { forSeconds: 19 * MINUTE, work: always(H100.context) },
      { forSeconds: 20 * MINUTE, work: training(132, 2.4) },
    ],
    steps: [all(0, 50 * MINUTE, 2.4)],
  },
  {
    name: 'evaluation of 16 min: each GPU generates text alone, no byte goes over any link',
    kind: 'evaluation',
    source: 'simulation: decoding is bound by memory, so tensor is near 0.02 and DRAM near 0.5',
    machine: h100,
    phases: [
      { forSeconds: 50 * MINUTE, work: training(141) },
      { forSeconds: 16 * MINUTE, work: always({ busy: true, tensor: 0.02, dram: 0.5, watts: 430, pcie: 0.001e9 }) },
      { forSeconds: 30 * MINUTE, work: training(142) },
      // Some GPUs are done with their share and wait in the last gather.
      {
        forSeconds: 16 * MINUTE,
        work: (seconds, gpu) =>
          seconds < (8 + gpu) * MINUTE ? { busy: true, tensor: 0.02, dram: 0.5, watts: 430, pcie: 0.001e9 } : H100.spin,
      },
      { forSeconds: 10 * MINUTE, work: training(143) },
    ],
    steps: [all(0, 50 * MINUTE, 6)],
  },
  {
    name: 'A100 evaluation at 30 % of power without network bytes',
    kind: 'evaluation',
    source: 'simulation: small batches of a small model, 118 to 124 of 400 W, 14 minutes',
    machine: a100,
    phases: [
      { forSeconds: 45 * MINUTE, work: steps({ stepSeconds: 3, seed: 151, compute: A100.compute, exchange: A100.exchange }) },
      { forSeconds: 14 * MINUTE, work: always({ busy: true, watts: 121, pcie: 0.02e9 }) },
      { forSeconds: 45 * MINUTE, work: steps({ stepSeconds: 3, seed: 152, compute: A100.compute, exchange: A100.exchange }) },
    ],
    steps: [all(0, 45 * MINUTE, 3)],
  },
  {
    name: 'a compiler works for 18 minutes after the first steps; all GPUs idle',
    kind: 'compile',
    source: 'simulation: eager steps first, then a whole-program compiler on the CPUs',
    machine: h100,
    phases: [
      { forSeconds: 4 * MINUTE, work: always({ ...H100.context, pcie: 5e9 }) },
      { forSeconds: 15 * MINUTE, work: training(161, 9) },
      { forSeconds: 18 * MINUTE, work: always(H100.context) },
      { forSeconds: HOUR, work: training(162, 5) },
    ],
    steps: [all(37 * MINUTE, 97 * MINUTE, 5)],
  },
  {
    name: 'one rank compiles anew for 12 minutes inside training: its GPU idles and seven spin',
    kind: 'compile',
    source: 'simulation: a new shape came to one rank; together the engines are at 87.5 %',
    machine: h100,
    phases: [
      { forSeconds: HOUR, work: training(171, 4) },
      { forSeconds: 12 * MINUTE, work: (_, gpu) => (gpu === 2 ? H100.context : H100.spin) },
      { forSeconds: 30 * MINUTE, work: training(172, 4) },
    ],
    steps: [all(0, HOUR, 4)],
  },
  {
    name: 'slow data loader, then 25 minutes without storage: GPUs idle',
    kind: 'starvation',
    source: 'simulation: 3 s of work in 20 s; each rank waits for its own loader, so no kernel runs meanwhile',
    machine: { ...h100, nics: 2 },
    phases: [
      {
        forSeconds: HOUR,
        work: inSteps(around(20, 0.2, 181), (share) => (share < 0.85 ? H100.context : share < 0.96 ? H100.compute : H100.exchange)),
      },
      { forSeconds: 25 * MINUTE, work: always(H100.context) },
      {
        forSeconds: 30 * MINUTE,
        work: inSteps(around(20, 0.2, 182), (share) => (share < 0.85 ? H100.context : share < 0.96 ? H100.compute : H100.exchange)),
      },
    ],
    steps: [all(0, HOUR, 20)],
  },
  {
    name: 'the loader of another node has no data for 15 minutes: all GPUs here spin, then go on',
    kind: 'starvation',
    source: 'simulation: a storage server restarts; only ranks of another node read from it',
    machine: h100,
    phases: [
      { forSeconds: HOUR, work: training(191, 3.3, 0.05) },
      { forSeconds: 15 * MINUTE, work: always(H100.spin) },
      { forSeconds: 40 * MINUTE, work: training(192, 3.3, 0.05) },
    ],
    truth: waitsAtLeast(HOUR, 75 * MINUTE, 'the job is sound and waits for data of another node; nothing here differs from a hang'),
    steps: [all(0, HOUR, 3.3)],
  },
];

/** Two containers of one pod: a trainer that waits for generated text for two thirds of each round. */
const reinforcement: HistorySource = {
  name: 'reinforcement learning: the trainer spins 12 of 18 minutes while the other container generates',
  make: () => {
    const rollout = { busy: true, tensor: 0.05, dram: 0.55, watts: 470, nvlink: 9e9 };
    const trainer = inTurn(
      Array.from({ length: 9 }, (_, round) => [
        { forSeconds: 12 * MINUTE, work: always(H100.spin) },
        { forSeconds: 6 * MINUTE, work: training(201 + round, 20) },
      ]).flat(),
    );
    const generator = inSteps(
      () => 18 * MINUTE,
      (share) => (share < 0.667 ? rollout : H100.context),
    );
    const history = play({
      name: reinforcement.name,
      kind: 'training',
      source:
        'simulation: rounds as in published recipes, where generation takes most of the time. The median of the trainer is what a spinning GPU moves, so it never falls below a hundredth of it',
      seed: 200,
      machine: { ...H100.machine, gpus: 8, nics: 0 },
      phases: [{ forSeconds: 9 * 18 * MINUTE, work: apart(4, trainer, generator) }],
    });
    return {
      ...history,
      containers: [
        { pod: 'rl-0', container: 'trainer', devices: ids('gpu', 0, 4) },
        { pod: 'rl-0', container: 'generator', devices: ids('gpu', 4, 8) },
      ],
    };
  },
};

export const histories: readonly HistorySource[] = [
  ...plans.map((plan, at): HistorySource => {
    const make = () => playCoarsely({ ...plan, seed: 1000 + at });
    // Every second one is read on a noisy machine.
    return { name: plan.name, make: () => (at % 2 === 0 ? make() : noisy(make(), 1500 + at, 0.1)) };
  }),
  reinforcement,
];
