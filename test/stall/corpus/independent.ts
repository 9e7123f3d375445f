import { seededRandom } from '../../support/seeded.ts';
import type { HistorySource, StallHistory } from '../history.ts';
import {
  A100,
  a100,
  all,
  alter,
  apart,
  around,
  B200,
  type Chip,
  endsAt,
  H100,
  HOUR,
  h100,
  ids,
  inSteps,
  inside,
  inTurn,
  L40S,
  leaveOut,
  MI300X,
  MINUTE,
  noisy,
  playCoarsely,
  V100,
  waitsAtLeast,
  withoutFirstMeans,
} from './mix.ts';
import { always, busyWaiting, CONTAINER, hang, type Moment, type Phase, type Play, POD, play, type Step, steps } from './simulation.ts';

// Jobs that stop, that only seem to stop, or that work though they look as if they did not; and reads that are not whole.

const node = { gpus: 8, nics: 8 };

const train = (chip: Chip, minutes: number, seed: number, step: Pick<Step, 'stepSeconds'> & Partial<Step>): Phase => ({
  forSeconds: minutes * MINUTE,
  work: steps({ seed, compute: chip.compute, exchange: chip.exchange, ...step }),
});
const training = (seed: number, stepSeconds = 6, jitter = 0.015) =>
  steps({ stepSeconds, jitter, seed, compute: H100.compute, exchange: H100.exchange });
const spin = (chip: Chip, minutes: number): Phase => ({ forSeconds: minutes * MINUTE, work: always(chip.spin) });
const still = (chip: Chip, minutes: number): Phase => ({ forSeconds: minutes * MINUTE, work: always(chip.context) });

interface Story extends Play {
  readonly finish?: (history: StallHistory) => StallHistory;
  /** It is read on a noisy machine. */
  readonly noise?: { readonly seed: number; readonly share: number };
  /** The agent starts without a read before. */
  readonly lacksFirstMeans?: true;
}

/** Fails at random, the same in each run. */
const sometimes = (seed: number, share: number): (() => boolean) => {
  const random = seededRandom(seed);
  return () => random() < share;
};

const stories: readonly Story[] = [
  {
    name: 'eight H100 with NVLink alone hang in an all-reduce',
    seed: 2000,
    kind: 'nvlink-only',
    source: 'simulation: one node, no network adapter; a rank skips a collective, so the others wait for it and it waits in the next one',
    machine: { ...H100.machine, gpus: 8, nics: 0 },
    phases: [train(H100, 80, 301, { stepSeconds: 2.6 }), spin(H100, 40)],
    truth: hang(80 * MINUTE, 120 * MINUTE),
    steps: [all(0, 80 * MINUTE, 2.6)],
  },
  {
    name: 'B200 after the death of a rank: 98.55 % and 984 W, then 100 % for 33 minutes',
    seed: 2002,
    kind: 'dead-rank',
    source:
      'published case of 512 GPUs: 98.55 % and 984 W, then 100 % for 33 minutes until it was killed; the power while spinning is ours, scaled',
    machine: { ...B200.machine, ...node },
    phases: [
      {
        forSeconds: 90 * MINUTE,
        // Between two steps nothing runs for 1.45 % of the time, which gives the published mean.
        work: inSteps(around(14, 0.02, 311), (share) =>
          share < 0.0145 ? B200.context : share > 0.98 ? { ...B200.exchange, watts: 700 } : { ...B200.compute, watts: 1000 },
        ),
      },
      spin(B200, 33),
      { forSeconds: 5 * MINUTE, work: always(B200.free) },
    ],
    truth: hang(90 * MINUTE, 123 * MINUTE),
    steps: [all(0, 90 * MINUTE, 14)],
    finish: (history) => endsAt(history, 123 * MINUTE),
  },
  {
    name: 'V100 hang at 100 % and 40 to 47 of 250 W',
    seed: 2004,
    kind: 'hang',
    source: 'published case of V100: 100 %, 40 to 47 of 250 W; the training before is a simulation',
    machine: { ...V100.machine, gpus: 4, nics: 1 },
    phases: [
      train(V100, 70, 331, { stepSeconds: 4, jitter: 0.05 }),
      { forSeconds: 45 * MINUTE, work: (s, gpu) => ({ ...V100.spin, watts: 42 + gpu + Math.sin(s / 90) }) },
    ],
    truth: hang(70 * MINUTE, 115 * MINUTE),
    steps: [all(0, 70 * MINUTE, 4)],
  },
  {
    name: 'the watchdog of NCCL ends a hang after 10 minutes, and the launcher starts the ranks again',
    seed: 2005,
    noise: { seed: 2505, share: 0.1 },
    kind: 'hang',
    source:
      'PyTorch: the default time limit of NCCL collectives is 10 minutes; then a dump and the end of the process, about a minute more',
    machine: h100,
    phases: [
      train(H100, 55, 341, { stepSeconds: 7 }),
      spin(H100, 11),
      { forSeconds: 40, work: always(H100.free) },
      { forSeconds: 140, work: always({ ...H100.context, pcie: 3e9, nic: 2e9 }) },
      train(H100, 40, 342, { stepSeconds: 7 }),
    ],
    truth: hang(55 * MINUTE, 66 * MINUTE),
    steps: [all(0, 55 * MINUTE, 7)],
  },
  {
    name: 'two pauses of 8 minutes with a minute of work between them',
    seed: 2006,
    kind: 'hang',
    source: 'simulation: a link flaps, and the retries of the transport hold out for 8 minutes each time. Neither pause is 10 minutes long',
    machine: h100,
    phases: [
      train(H100, 60, 351, { stepSeconds: 6 }),
      spin(H100, 8),
      train(H100, 1, 352, { stepSeconds: 6 }),
      spin(H100, 8),
      train(H100, 45, 353, { stepSeconds: 6 }),
    ],
    steps: [all(0, 60 * MINUTE, 6)],
  },
  {
    name: 'a pause of 9 min, 40 s of work, then a hang for good',
    seed: 2007,
    noise: { seed: 2507, share: 0.1 },
    kind: 'hang',
    source: 'simulation: as a flapping link that goes down in the end',
    machine: h100,
    phases: [
      train(H100, 70, 361, { stepSeconds: 6 }),
      spin(H100, 9),
      { ...train(H100, 1, 362, { stepSeconds: 6 }), forSeconds: 40 },
      spin(H100, 35),
    ],
    truth: hang(79 * MINUTE + 40, 114 * MINUTE + 40),
    steps: [all(0, 70 * MINUTE, 6)],
  },
  {
    name: 'a hang in the first all-reduce, after 12 minutes in which a checkpoint was loaded',
    seed: 2008,
    kind: 'hang',
    source: 'simulation: a wrong network interface; no step was ever made, so it is not Stalled',
    machine: h100,
    phases: [{ forSeconds: 12 * MINUTE, work: always({ ...H100.context, watts: 130, pcie: 1.5e9, nic: 1.2e9 }) }, spin(H100, 50)],
    truth: busyWaiting(12 * MINUTE, 62 * MINUTE).map((one) => ({
      ...one,
      unknowable: 'a server that loaded its weights and then waits for requests reads the same, and counts as idle from its start',
    })),
  },
  {
    name: 'the step time drifts from 4 to 12 s with the length of the sequences, then the job hangs',
    seed: 2010,
    kind: 'hang',
    source: 'simulation: curriculum of sequence lengths over 2 hours',
    machine: h100,
    phases: [
      {
        forSeconds: 2 * HOUR,
        work: inSteps(
          (n, at) => 4 + (8 * at) / (2 * HOUR) + ((n * 37) % 11) / 40,
          (share) => (share > 0.78 ? H100.exchange : H100.compute),
        ),
      },
      spin(H100, 30),
    ],
    truth: hang(2 * HOUR, 2.5 * HOUR),
    steps: [all(0, 600, 4.3), all(2 * HOUR - 600, 2 * HOUR, 11.8)],
  },
  {
    name: 'steps of 10 min with tensor parallelism, then a hang in the middle of a step',
    seed: 2012,
    kind: 'hang',
    source: 'simulation: large batch in 150 small ones; NVLink is used all the time, the network in the last 40 s of a step',
    machine: h100,
    phases: [
      {
        forSeconds: 155 * MINUTE,
        work: inSteps(around(600, 0.012, 381), (share) => (share > 0.93 ? { ...H100.exchange, tensor: 0.1 } : H100.compute)),
      },
      spin(H100, 45),
    ],
    truth: hang(155 * MINUTE, 200 * MINUTE),
    steps: [all(0, 155 * MINUTE, 600)],
  },
  {
    name: 'MI300X without tensor and DRAM activity hangs at 23 % of power',
    seed: 2014,
    kind: 'hang',
    source: 'simulation: RCCL waits; 171 of 750 W, where 148 W is a context that does nothing',
    machine: { ...MI300X.machine, ...node },
    phases: [train(MI300X, 75, 401, { stepSeconds: 9 }), spin(MI300X, 40)],
    truth: hang(75 * MINUTE, 115 * MINUTE),
    steps: [all(0, 75 * MINUTE, 9)],
  },
  {
    name: 'A100 capped at 250 W hangs at 35 % of the limit in force',
    seed: 2015,
    noise: { seed: 2515, share: 0.1 },
    kind: 'hang',
    source: 'simulation: the site caps its cards; a spinning kernel draws 88 W all the same',
    machine: { ...a100, limitWatts: 250 },
    phases: [
      {
        forSeconds: 80 * MINUTE,
        work: steps({ stepSeconds: 8, seed: 411, compute: { ...A100.compute, watts: 247 }, exchange: { ...A100.exchange, watts: 205 } }),
      },
      spin(A100, 40),
    ],
    truth: hang(80 * MINUTE, 120 * MINUTE, 'GPM is absent and the power stays above 25 % of the limit, because the cap is low'),
    steps: [all(0, 80 * MINUTE, 8)],
  },
  {
    name: 'steps of 2 s read each second with much noise, then a hang in which the adapters still carry heartbeats',
    seed: 2016,
    kind: 'hang',
    source: 'simulation: storage and health checks go over the same adapters, about 0.3 % of the bytes of training; noise of 20 %',
    everySeconds: 1,
    fineSeconds: 0.1,
    machine: { ...H100.machine, gpus: 2, nics: 2 },
    phases: [
      train(H100, 40, 421, { stepSeconds: 2.1, jitter: 0.08 }),
      {
        forSeconds: 25 * MINUTE,
        // Beats of 3 s once a minute, and a thin stream between them.
        work: (seconds) => ({ ...H100.spin, nvlink: 0, nic: seconds % 60 < 3 ? 0.7e9 : 0.25e9, pcie: 0.1e9 }),
      },
    ],
    truth: hang(40 * MINUTE, 65 * MINUTE),
    steps: [all(0, 40 * MINUTE, 2.1)],
    finish: (history) => noisy(history, 422, 0.2),
  },
  {
    name: 'one H200 as measured: 1.4 s of multiplication, 0.4 s of copies, 0.2 s of sleep, then a kernel that spins',
    seed: 2017,
    noise: { seed: 2517, share: 0.1 },
    kind: 'hang',
    source:
      'measurement of ours on an H200: 528 W and tensor 0.58 on average, then 139.4 W; the copies move 20 GB/s by assumption, the length is stretched',
    everySeconds: 1,
    machine: { gpus: 1, nics: 0, limitWatts: 700, model: 'NVIDIA H200' },
    phases: [
      {
        forSeconds: 30 * MINUTE,
        work: inSteps(around(2, 0.005, 425), (share) => {
          if (share < 0.7) return { busy: true, tensor: 0.83, dram: 0.2, watts: 690, pcie: 0.5e9 };
          return { busy: false, watts: share < 0.9 ? 160 : 126, pcie: share < 0.9 ? 20e9 : 0 };
        }),
      },
      { forSeconds: 20 * MINUTE, work: always({ busy: true, tensor: 0, dram: 4e-6, watts: 139.4 }) },
    ],
    truth: hang(30 * MINUTE, 50 * MINUTE),
    steps: [all(0, 30 * MINUTE, 2)],
  },
  {
    name: 'the last barrier of a job never ends, because a node failed after its last step',
    seed: 2018,
    kind: 'dead-rank',
    source:
      'simulation: training, one checkpoint of 3 minutes, then the group is torn down and seven nodes wait for the eighth; the processes stay idle after that',
    machine: h100,
    phases: [
      train(H100, 65, 431, { stepSeconds: 4.5 }),
      { forSeconds: 3 * MINUTE, work: always({ ...H100.context, pcie: 3e9, nic: 2e9 }) },
      spin(H100, 30),
      still(H100, 30),
    ],
    truth: hang(68 * MINUTE, 98 * MINUTE),
    steps: [all(0, 65 * MINUTE, 4.5)],
  },
  {
    name: 'one rank gets slower for half an hour, then falls off the bus and the others hang',
    seed: 2020,
    kind: 'dead-rank',
    source: 'simulation: steps of 6 s become 8, then 11 s; after the fault gpu6 is not read at all (Xid 79)',
    machine: h100,
    phases: [
      train(H100, 60, 451, { stepSeconds: 6 }),
      train(H100, 15, 452, { stepSeconds: 8, exchangeShare: 0.4 }),
      train(H100, 15, 453, { stepSeconds: 11, exchangeShare: 0.55 }),
      spin(H100, 45),
    ],
    truth: hang(90 * MINUTE, 135 * MINUTE),
    steps: [all(0, 60 * MINUTE, 6)],
    finish: (history) => alter(history, (values, id, at) => (id === 'gpu6' && at > 90 * MINUTE ? undefined : values)),
  },
  {
    name: 'the agent restarts twice in the middle of a hang',
    seed: 4000,
    lacksFirstMeans: true,
    kind: 'restart',
    source: 'simulation: an upgrade 4 minutes after the begin, with a minute without agent, and a second one 5 minutes later',
    machine: h100,
    phases: [train(H100, 75, 501, { stepSeconds: 6 }), spin(H100, 40)],
    restarts: [
      { endedAtSeconds: 79 * MINUTE, startedAtSeconds: 80 * MINUTE },
      { endedAtSeconds: 85 * MINUTE, startedAtSeconds: 85 * MINUTE + 20 },
    ],
    truth: hang(75 * MINUTE, 115 * MINUTE),
    steps: [all(0, 75 * MINUTE, 6)],
  },
  {
    name: 'a hang begins while no agent runs for 25 minutes',
    seed: 4001,
    lacksFirstMeans: true,
    kind: 'restart',
    source: 'simulation: the image of the agent could not be pulled; the job hangs 15 minutes before the agent is back',
    machine: { ...A100.machine, gpus: 8, nics: 4 },
    phases: [train(A100, 80, 511, { stepSeconds: 20 }), spin(A100, 60)],
    restarts: [{ endedAtSeconds: 70 * MINUTE, startedAtSeconds: 95 * MINUTE }],
    truth: hang(80 * MINUTE, 140 * MINUTE),
    steps: [all(0, 70 * MINUTE, 20)],
  },
  {
    name: 'the agent ends every 7 minutes through training and hang',
    seed: 4002,
    lacksFirstMeans: true,
    kind: 'restart',
    source: 'simulation: killed for memory again and again, 15 s without agent each time',
    machine: h100,
    phases: [train(H100, 84, 521, { stepSeconds: 6 }), spin(H100, 56)],
    restarts: Array.from({ length: 19 }, (_, at) => ({
      endedAtSeconds: (at + 1) * 7 * MINUTE + 100,
      startedAtSeconds: (at + 1) * 7 * MINUTE + 115,
    })),
    truth: hang(84 * MINUTE, 140 * MINUTE),
    steps: [all(0, 84 * MINUTE, 6)],
  },
  {
    name: 'the agent is away for the working part of a step of 10 minutes',
    seed: 4004,
    lacksFirstMeans: true,
    kind: 'restart',
    source:
      'simulation: ranks work for 6 minutes and wait for 4; the gap hides one time of work, so all reads of 14 minutes are quiet, and the job is sound',
    machine: h100,
    phases: [
      {
        forSeconds: 160 * MINUTE,
        work: steps({
          stepSeconds: 600,
          jitter: 0.001,
          seed: 536,
          exchangeShare: 0.4,
          compute: { ...H100.compute, nic: 10e9 },
          exchange: H100.spin,
        }),
      },
    ],
    // The ninth step begins at 80 min.
    restarts: [{ endedAtSeconds: 79.8 * MINUTE, startedAtSeconds: 86.3 * MINUTE }],
    steps: [all(0, 160 * MINUTE, 600)],
  },
  {
    name: 'minutes without any value, a counter reset and an impossible rate within a hang',
    seed: 4005,
    lacksFirstMeans: true,
    kind: 'unread',
    source:
      'NVIDIA: byte counters wrap and begin anew with the driver library; simulation: 4 minutes unread, NVLink absent for 3 reads, then one read of 3.4 TB/s',
    machine: h100,
    phases: [train(H100, 80, 541, { stepSeconds: 5 }), spin(H100, 50)],
    truth: hang(80 * MINUTE, 130 * MINUTE),
    steps: [all(0, 80 * MINUTE, 5)],
    finish: (history) =>
      alter(history, (values, id, at) => {
        const since = at - 80 * MINUTE;
        if (since > 120 && since < 360) return undefined;
        if (since > 420 && since < 450) return leaveOut(values, ['nvlinkBytesPerSecond']);
        // 900 GB/s is the most that the links of the card can move.
        if (id === 'gpu3' && since > 455 && since < 466) return { ...values, nvlinkBytesPerSecond: 3.4e12 };
        return values;
      }),
  },
  {
    name: 'a third of all values fails at random, in training and in the hang',
    seed: 4006,
    lacksFirstMeans: true,
    kind: 'unread',
    source: 'simulation: the driver is slow and the agent gives up within its time',
    machine: h100,
    phases: [train(H100, 80, 551, { stepSeconds: 8 }), spin(H100, 40)],
    truth: hang(80 * MINUTE, 2 * HOUR),
    steps: [all(0, 80 * MINUTE, 8)],
    finish: (history) => {
      const fails = sometimes(552, 0.33);
      return alter(history, (values) => (fails() ? undefined : leaveOut(values, fails() ? ['utilization', 'nvlinkBytesPerSecond'] : [])));
    },
  },
  {
    name: 'H100 whose GPM is denied hangs',
    seed: 4008,
    lacksFirstMeans: true,
    kind: 'unread',
    source: 'NVIDIA: profiling may be restricted to administrators; NVLink bytes come from fields, PCIe bytes too',
    machine: { ...h100, lacks: ['tensor', 'dram'] },
    phases: [train(H100, 75, 571, { stepSeconds: 6 }), spin(H100, 45)],
    truth: hang(
      75 * MINUTE,
      2 * HOUR,
      'tensor and DRAM activity are not read though the chip has them; the definition takes power only for a chip without them',
    ),
    steps: [all(0, 75 * MINUTE, 6)],
  },
  {
    name: 'adapter counters stick at their end after 20 minutes, and training goes on',
    seed: 4009,
    lacksFirstMeans: true,
    kind: 'unread',
    source:
      'RDMA specification: classic port counters stay at all ones and do not wrap; simulation: one adapter, PCIe of the GPUs not read',
    machine: { ...L40S.machine, gpus: 4, nics: 1, lacks: ['tensor', 'dram', 'nvlinkBytesPerSecond', 'pcieBytesPerSecond'] },
    phases: [train(L40S, 100, 581, { stepSeconds: 2.3 })],
    steps: [all(0, 100 * MINUTE, 2.3)],
    finish: (history) => alter(history, (values, id, at) => (id === 'nic0' && at > 20 * MINUTE ? { nicBytesPerSecond: 0 } : values)),
  },
  {
    name: 'a training pod ends, and a server that polls from its start gets the same devices',
    seed: 4010,
    lacksFirstMeans: true,
    kind: 'idle-inference',
    source: 'simulation: the server is another container, so the bytes of the training are not its own',
    machine: { ...H100.machine, gpus: 8, nics: 0 },
    phases: [
      train(H100, 70, 591, { stepSeconds: 4 }),
      { forSeconds: 45, work: always(H100.free) },
      { forSeconds: 50, work: always({ ...H100.context, pcie: 4e9 }) },
      { forSeconds: 80 * MINUTE, work: always({ ...H100.spin, watts: 145 }) },
    ],
    steps: [all(0, 70 * MINUTE, 4)],
    finish: (history) => ({
      ...history,
      containers: [
        { pod: POD, container: CONTAINER, devices: ids('gpu', 0, 8), toSeconds: 70 * MINUTE },
        { pod: 'server-0', container: CONTAINER, devices: ids('gpu', 0, 8), fromSeconds: 70 * MINUTE + 40 },
      ],
    }),
  },
  {
    name: 'a pod hangs, is deleted, and its successor trains on the same devices and hangs again',
    seed: 4011,
    lacksFirstMeans: true,
    kind: 'hang',
    source: 'simulation: the same bad cable breaks both runs; the second one compiles for 6 minutes first',
    machine: h100,
    phases: [
      train(H100, 60, 601, { stepSeconds: 7 }),
      spin(H100, 25),
      { forSeconds: MINUTE, work: always(H100.free) },
      { forSeconds: 6 * MINUTE, work: always(H100.context) },
      train(H100, 48, 602, { stepSeconds: 7 }),
      spin(H100, 20),
    ],
    truth: [...hang(60 * MINUTE, 85 * MINUTE), ...inside(hang(140 * MINUTE, 160 * MINUTE), 'job-0-retry')],
    steps: [all(0, 60 * MINUTE, 7), { ...all(92 * MINUTE, 140 * MINUTE, 7), pod: 'job-0-retry' }],
    finish: (history) => ({
      ...history,
      containers: [
        { pod: POD, container: CONTAINER, devices: [...ids('gpu', 0, 8), ...ids('nic', 0, 8)], toSeconds: 85 * MINUTE },
        { pod: 'job-0-retry', container: CONTAINER, devices: [...ids('gpu', 0, 8), ...ids('nic', 0, 8)], fromSeconds: 86 * MINUTE },
      ],
    }),
  },
  {
    name: 'two containers of one pod: the trainer holds the GPUs, a helper holds the adapters; the job hangs',
    seed: 4012,
    lacksFirstMeans: true,
    kind: 'hang',
    source:
      'simulation: as clouds whose network needs a receiving process in a container of its own. The helper has no engine, so it is neither',
    machine: { ...h100, nics: 4 },
    phases: [train(H100, 70, 611, { stepSeconds: 9 }), spin(H100, 40)],
    truth: hang(70 * MINUTE, 110 * MINUTE),
    steps: [all(0, 70 * MINUTE, 9)],
    finish: (history) => ({
      ...history,
      containers: [
        { pod: POD, container: CONTAINER, devices: ids('gpu', 0, 8) },
        { pod: POD, container: 'network-helper', devices: ids('nic', 0, 4) },
      ],
    }),
  },
  {
    name: 'steps of 10 min in which the ranks meet for 25 s only',
    seed: 1003,
    noise: { seed: 1503, share: 0.1 },
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
    seed: 1004,
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
    seed: 1005,
    noise: { seed: 1505, share: 0.1 },
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
    seed: 1006,
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
    name: 'a straggler on another node makes each step last 9 minutes, of which all GPUs here spin 8.5',
    seed: 1009,
    noise: { seed: 1509, share: 0.1 },
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
    name: 'L40S checkpoint of 20 min: GPUs spin at 24 % of power while the shards go out over PCIe and network',
    seed: 1011,
    noise: { seed: 1511, share: 0.1 },
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
    name: 'evaluation of 16 min: each GPU generates text alone, no byte goes over any link',
    seed: 1014,
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
    seed: 1015,
    noise: { seed: 1515, share: 0.1 },
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
    name: 'one rank compiles anew for 12 minutes inside training: its GPU idles and seven spin',
    seed: 1017,
    noise: { seed: 1517, share: 0.1 },
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
    name: 'the loader of another node has no data for 15 minutes: all GPUs here spin, then go on',
    seed: 1019,
    noise: { seed: 1519, share: 0.1 },
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

const storied = stories.map(({ finish = (history) => history, noise, lacksFirstMeans, ...plan }): HistorySource => {
  const make = () => (lacksFirstMeans === true ? withoutFirstMeans(playCoarsely(plan)) : playCoarsely(plan));
  return { name: plan.name, make: () => (noise === undefined ? finish(make()) : noisy(finish(make()), noise.seed, noise.share)) };
});

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

const source = (name: string, make: () => StallHistory): HistorySource => ({ name, make });

/** A server whose ranks poll inside a kernel for the next request, as persistent kernels and some tensor-parallel loops do. */
const POLLING: Moment = { ...H100.spin, watts: 146 };
const DECODE: Moment = { busy: true, tensor: 0.08, dram: 0.5, watts: 450, nvlink: 22e9, pcie: 0.02e9 };

const server = (
  name: string,
  kind: string,
  text: string,
  seed: number,
  phases: readonly Phase[],
  truth: StallHistory['truth'] = [],
): HistorySource =>
  source(name, () => play({ name, kind, source: text, seed, machine: { ...H100.machine, gpus: 8, nics: 0 }, phases, truth }));

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

export const histories: readonly HistorySource[] = [...storied, reinforcement, batches, same, tenants];
