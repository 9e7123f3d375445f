import { seededRandom } from '../../support/seeded.ts';
import type { HistorySource, StallHistory } from '../history.ts';
import {
  A100,
  all,
  alter,
  type Chip,
  H100,
  HOUR,
  h100,
  ids,
  inside,
  L40S,
  leaveOut,
  MINUTE,
  playCoarsely,
  withoutFirstMeans,
} from './mix.ts';
import { always, CONTAINER, hang, type Phase, type Play, POD, steps } from './simulation.ts';

// What is read is not whole: values fail, counters stick, agents restart, pods come and go on the same devices.

const train = (chip: Chip, minutes: number, seed: number, stepSeconds: number): Phase => ({
  forSeconds: minutes * MINUTE,
  work: steps({ stepSeconds, seed, compute: chip.compute, exchange: chip.exchange }),
});
const spin = (chip: Chip, minutes: number): Phase => ({ forSeconds: minutes * MINUTE, work: always(chip.spin) });

interface Story extends Omit<Play, 'seed'> {
  readonly finish?: (history: StallHistory) => StallHistory;
}

/** Fails at random, the same in each run. */
const sometimes = (seed: number, share: number): (() => boolean) => {
  const random = seededRandom(seed);
  return () => random() < share;
};

const stories: readonly Story[] = [
  {
    name: 'the agent restarts twice in the middle of a hang',
    kind: 'restart',
    source: 'simulation: an upgrade 4 minutes after the begin, with a minute without agent, and a second one 5 minutes later',
    machine: h100,
    phases: [train(H100, 75, 501, 6), spin(H100, 40)],
    restarts: [
      { endedAtSeconds: 79 * MINUTE, startedAtSeconds: 80 * MINUTE },
      { endedAtSeconds: 85 * MINUTE, startedAtSeconds: 85 * MINUTE + 20 },
    ],
    truth: hang(75 * MINUTE, 115 * MINUTE),
    steps: [all(0, 75 * MINUTE, 6)],
  },
  {
    name: 'a hang begins while no agent runs for 25 minutes',
    kind: 'restart',
    source: 'simulation: the image of the agent could not be pulled; the job hangs 15 minutes before the agent is back',
    machine: { ...A100.machine, gpus: 8, nics: 4 },
    phases: [train(A100, 80, 511, 20), spin(A100, 60)],
    restarts: [{ endedAtSeconds: 70 * MINUTE, startedAtSeconds: 95 * MINUTE }],
    truth: hang(80 * MINUTE, 140 * MINUTE),
    steps: [all(0, 70 * MINUTE, 20)],
  },
  {
    name: 'the agent ends every 7 minutes through training and hang',
    kind: 'restart',
    source: 'simulation: killed for memory again and again, 15 s without agent each time',
    machine: h100,
    phases: [train(H100, 84, 521, 6), spin(H100, 56)],
    restarts: Array.from({ length: 19 }, (_, at) => ({
      endedAtSeconds: (at + 1) * 7 * MINUTE + 100,
      startedAtSeconds: (at + 1) * 7 * MINUTE + 115,
    })),
    truth: hang(84 * MINUTE, 140 * MINUTE),
    steps: [all(0, 84 * MINUTE, 6)],
  },
  {
    name: 'the agent restarts during a sound step of 10 minutes',
    kind: 'restart',
    source:
      'simulation: the ranks wait 8 of 10 minutes for a central server of parameters; the gap hides one exchange, so no bytes are read for 18 minutes',
    machine: h100,
    phases: [
      {
        forSeconds: 3 * HOUR,
        work: steps({
          stepSeconds: 600,
          jitter: 0.005,
          seed: 531,
          exchangeShare: 0.8,
          compute: { ...H100.compute, nic: 10e9 },
          exchange: H100.spin,
        }),
      },
    ],
    // The ninth step begins at about 80 min and works for 2 min.
    restarts: [{ endedAtSeconds: 79 * MINUTE, startedAtSeconds: 83 * MINUTE }],
    steps: [all(0, 3 * HOUR, 600)],
  },
  {
    name: 'the agent is away for the working part of a step of 10 minutes',
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
    kind: 'unread',
    source:
      'NVIDIA: byte counters wrap and begin anew with the driver library; simulation: 4 minutes unread, NVLink absent for 3 reads, then one read of 3.4 TB/s',
    machine: h100,
    phases: [train(H100, 80, 541, 5), spin(H100, 50)],
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
    kind: 'unread',
    source: 'simulation: the driver is slow and the agent gives up within its time',
    machine: h100,
    phases: [train(H100, 80, 551, 8), spin(H100, 40)],
    truth: hang(80 * MINUTE, 2 * HOUR),
    steps: [all(0, 80 * MINUTE, 8)],
    finish: (history) => {
      const fails = sometimes(552, 0.33);
      return alter(history, (values) => (fails() ? undefined : leaveOut(values, fails() ? ['utilization', 'nvlinkBytesPerSecond'] : [])));
    },
  },
  {
    name: 'no bytes are read at all, and the job hangs',
    kind: 'unread',
    source: 'simulation: old driver on A100 in a virtual machine, adapters passed to the container outside of the view of the agent',
    machine: { ...A100.machine, gpus: 8, nics: 0, lacks: ['tensor', 'dram', 'nvlinkBytesPerSecond', 'pcieBytesPerSecond'] },
    phases: [train(A100, 75, 561, 30), spin(A100, 45)],
    truth: hang(75 * MINUTE, 2 * HOUR, 'no bytes are read; only utilisation and power are'),
    steps: [all(0, 75 * MINUTE, 30)],
  },
  {
    name: 'H100 whose GPM is denied hangs',
    kind: 'unread',
    source: 'NVIDIA: profiling may be restricted to administrators; NVLink bytes come from fields, PCIe bytes too',
    machine: { ...h100, lacks: ['tensor', 'dram'] },
    phases: [train(H100, 75, 571, 6), spin(H100, 45)],
    truth: hang(
      75 * MINUTE,
      2 * HOUR,
      'tensor and DRAM activity are not read though the chip has them; the definition takes power only for a chip without them',
    ),
    steps: [all(0, 75 * MINUTE, 6)],
  },
  {
    name: 'adapter counters stick at their end after 20 minutes, and training goes on',
    kind: 'unread',
    source:
      'RDMA specification: classic port counters stay at all ones and do not wrap; simulation: one adapter, PCIe of the GPUs not read',
    machine: { ...L40S.machine, gpus: 4, nics: 1, lacks: ['tensor', 'dram', 'nvlinkBytesPerSecond', 'pcieBytesPerSecond'] },
    phases: [train(L40S, 100, 581, 2.3)],
    steps: [all(0, 100 * MINUTE, 2.3)],
    finish: (history) => alter(history, (values, id, at) => (id === 'nic0' && at > 20 * MINUTE ? { nicBytesPerSecond: 0 } : values)),
  },
  {
    name: 'a training pod ends, and a server that polls from its start gets the same devices',
    kind: 'idle-inference',
    source: 'simulation: the server is another container, so the bytes of the training are not its own',
    machine: { ...H100.machine, gpus: 8, nics: 0 },
    phases: [
      train(H100, 70, 591, 4),
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
    kind: 'hang',
    source: 'simulation: the same bad cable breaks both runs; the second one compiles for 6 minutes first',
    machine: h100,
    phases: [
      train(H100, 60, 601, 7),
      spin(H100, 25),
      { forSeconds: MINUTE, work: always(H100.free) },
      { forSeconds: 6 * MINUTE, work: always(H100.context) },
      train(H100, 48, 602, 7),
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
    kind: 'hang',
    source:
      'simulation: as clouds whose network needs a receiving process in a container of its own. The helper has no engine, so it is neither',
    machine: { ...h100, nics: 4 },
    phases: [train(H100, 70, 611, 9), spin(H100, 40)],
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
];

export const histories: readonly HistorySource[] = stories.map(
  ({ finish = (history) => history, ...plan }, at): HistorySource => ({
    name: plan.name,
    make: () => finish(withoutFirstMeans(playCoarsely({ ...plan, seed: 4000 + at }))),
  }),
);
