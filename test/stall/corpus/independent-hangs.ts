import { seededRandom } from '../../support/seeded.ts';
import type { HistorySource, StallHistory } from '../history.ts';
import {
  A100,
  a100,
  all,
  alter,
  around,
  B200,
  type Chip,
  endsAt,
  H100,
  HOUR,
  h100,
  inSteps,
  leaveOut,
  MI300X,
  MINUTE,
  noisy,
  playCoarsely,
  V100,
  waitsAtLeast,
} from './mix.ts';
import { always, busyWaiting, hang, type Phase, type Play, type Step, steps } from './simulation.ts';

// Jobs that stop, and jobs that only seem to stop.

const node = { gpus: 8, nics: 8 };

const train = (chip: Chip, minutes: number, seed: number, step: Pick<Step, 'stepSeconds'> & Partial<Step>): Phase => ({
  forSeconds: minutes * MINUTE,
  work: steps({ seed, compute: chip.compute, exchange: chip.exchange, ...step }),
});
const spin = (chip: Chip, minutes: number): Phase => ({ forSeconds: minutes * MINUTE, work: always(chip.spin) });
const still = (chip: Chip, minutes: number): Phase => ({ forSeconds: minutes * MINUTE, work: always(chip.context) });

interface Story extends Omit<Play, 'seed'> {
  readonly finish?: (history: StallHistory) => StallHistory;
}

const stories: readonly Story[] = [
  {
    name: 'eight H100 with NVLink alone hang in an all-reduce',
    kind: 'nvlink-only',
    source: 'simulation: one node, no network adapter; a rank skips a collective, so the others wait for it and it waits in the next one',
    machine: { ...H100.machine, gpus: 8, nics: 0 },
    phases: [train(H100, 80, 301, { stepSeconds: 2.6 }), spin(H100, 40)],
    truth: hang(80 * MINUTE, 120 * MINUTE),
    steps: [all(0, 80 * MINUTE, 2.6)],
  },
  {
    name: 'NVLink-only training with flat adapters goes on',
    kind: 'nvlink-only',
    source: 'simulation: the container holds eight adapters and uses none of them',
    machine: h100,
    phases: [
      {
        forSeconds: 100 * MINUTE,
        work: steps({ stepSeconds: 1.7, seed: 302, compute: H100.compute, exchange: { ...H100.exchange, nic: 0, pcie: 0.2e9 } }),
      },
    ],
    steps: [all(0, 100 * MINUTE, 1.7)],
  },
  {
    name: 'B200 after the death of a rank: 98.55 % and 984 W, then 100 % for 33 minutes',
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
    name: 'a rank of this node dies: its GPU is free, seven spin for 50 minutes',
    kind: 'dead-rank',
    source: 'simulation: one process gets killed for memory and the launcher does not end the others',
    machine: h100,
    phases: [train(H100, 60, 321, { stepSeconds: 5 }), { forSeconds: 50 * MINUTE, work: (_, gpu) => (gpu === 3 ? H100.free : H100.spin) }],
    truth: hang(
      60 * MINUTE,
      110 * MINUTE,
      'together the engines are at 87.5 %, below the 95 % of the definition, as when one rank compiles anew; only its length tells',
    ),
    steps: [all(0, 60 * MINUTE, 5)],
  },
  {
    name: 'V100 hang at 100 % and 40 to 47 of 250 W',
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
    name: 'a hang in the first collective with nothing before it',
    kind: 'hang',
    source:
      'simulation: ranks import libraries for 2 minutes, then wait for a rank that never comes. No earlier median: by the definition it is neither',
    machine: h100,
    phases: [still(H100, 2), spin(H100, 70)],
  },
  {
    name: 'the step time drifts from 4 to 12 s with the length of the sequences, then the job hangs',
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
    name: 'irregular steps of 5 to 60 s, then a hang',
    kind: 'hang',
    source: 'simulation: videos of all lengths; the length of a step is lognormal with a factor of 1.8',
    machine: h100,
    phases: [
      {
        forSeconds: 100 * MINUTE,
        work: ((random) =>
          inSteps(
            () => Math.min(60, Math.max(5, 16 * Math.exp(0.6 * 1.73 * (random() + random() + random() + random() - 2)))),
            (share) => (share > 0.8 ? H100.exchange : H100.compute),
          ))(seededRandom(371)),
      },
      spin(H100, 40),
    ],
    truth: waitsAtLeast(
      100 * MINUTE,
      140 * MINUTE,
      'the steps differ so much in length that the definition does not decide whether they are periodic',
    ),
  },
  {
    name: 'steps of 10 min with tensor parallelism, then a hang in the middle of a step',
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
    name: 'steps of 10 min in which bytes move for 25 s only, then a hang',
    kind: 'hang',
    source: 'simulation: local accumulation without tensor parallelism on A100',
    machine: a100,
    phases: [
      {
        forSeconds: 160 * MINUTE,
        work: inSteps(around(600, 0.01, 391), (share) => (share > 0.958 ? A100.exchange : { busy: true, watts: 375, pcie: 0 })),
      },
      spin(A100, 60),
    ],
    truth: hang(
      160 * MINUTE,
      220 * MINUTE,
      'the median of the bytes before is what the driver itself moves, so nothing falls below a hundredth of it; the power tells, the definition does not',
    ),
    steps: [all(0, 160 * MINUTE, 600)],
  },
  {
    name: 'MI300X without tensor and DRAM activity hangs at 23 % of power',
    kind: 'hang',
    source: 'simulation: RCCL waits; 171 of 750 W, where 148 W is a context that does nothing',
    machine: { ...MI300X.machine, ...node },
    phases: [train(MI300X, 75, 401, { stepSeconds: 9 }), spin(MI300X, 40)],
    truth: hang(75 * MINUTE, 115 * MINUTE),
    steps: [all(0, 75 * MINUTE, 9)],
  },
  {
    name: 'A100 capped at 250 W hangs at 35 % of the limit in force',
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
    name: 'a job ends well and its processes stay with their memory for an hour',
    kind: 'training',
    source: 'simulation: an interactive session keeps the context; no kernel runs',
    machine: { ...a100, nics: 0 },
    phases: [train(A100, 50, 441, { stepSeconds: 3 }), still(A100, 60)],
    steps: [all(0, 50 * MINUTE, 3)],
  },
  {
    name: 'one rank gets slower for half an hour, then falls off the bus and the others hang',
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
    name: 'a GPU processor stops: 100 % at idle power, and tensor and DRAM activity fail with it',
    kind: 'unread',
    source: 'NVIDIA Xid 119; operators saw 100 % and about 70 W in a hang; simulation of the rest',
    machine: { ...H100.machine, gpus: 4, nics: 4 },
    phases: [train(H100, 70, 461, { stepSeconds: 5 }), { forSeconds: 40 * MINUTE, work: always({ ...H100.spin, watts: 74 }) }],
    truth: hang(
      70 * MINUTE,
      110 * MINUTE,
      'tensor and DRAM activity and the bytes of GPM are not read, though the chip has them; the definition takes power only for a chip without them',
    ),
    steps: [all(0, 70 * MINUTE, 5)],
    finish: (history) =>
      alter(history, (values, id, at) =>
        id.startsWith('gpu') && at > 70 * MINUTE
          ? leaveOut(values, ['tensor', 'dram', 'nvlinkBytesPerSecond', 'pcieBytesPerSecond'])
          : values,
      ),
  },
];

export const histories: readonly HistorySource[] = stories.map(({ finish = (history) => history, ...plan }, at): HistorySource => {
  const make = () => finish(playCoarsely({ ...plan, seed: 2000 + at }));
  // Every second one is read on a noisy machine.
  return { name: plan.name, make: () => (at % 2 === 0 ? make() : noisy(make(), 2500 + at, 0.1)) };
});
