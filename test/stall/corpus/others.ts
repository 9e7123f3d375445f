import { seededRandom } from '../../support/seeded.ts';
import type { HistorySource, StallHistory } from '../history.ts';
import { COMPUTE, HOPPER, IDLE, SPIN, spinning, training, V100_COMPUTE, V100_EXCHANGE, VOLTA } from './figures.ts';
import { always, busyWaiting, hang, type Moment, type Phase, type Play, play, steps, type Work } from './simulation.ts';

const MINUTE = 60;
const HOUR = 3_600;
const source = (plan: Play): HistorySource => ({ name: plan.name, make: (): StallHistory => play(plan) });
const for_ = (forSeconds: number, work: Work): Phase => ({ forSeconds, work });

const V100_HANG = 'figures of a hang of V100s of 250 W: 100 %, 40 to 47 W (NVIDIA/nccl); simulated steps before it';
const v100Work = steps({ stepSeconds: 31, seed: 1, compute: V100_COMPUTE, exchange: V100_EXCHANGE });
const v100Hang: Work = (_, gpu) => ({ busy: true, watts: 40 + 7 * gpu });

const volta = [
  source({
    name: 'V100s that hang at 100 % and 40 to 47 W, with an adapter',
    kind: 'hang',
    source: V100_HANG,
    seed: 601,
    fineSeconds: 0.5,
    machine: VOLTA,
    phases: [for_(HOUR, v100Work), for_(40 * MINUTE, v100Hang)],
    truth: hang(HOUR, HOUR + 40 * MINUTE),
  }),
  source({
    name: 'V100s that hang at 100 % and 40 to 47 W, without any counter of bytes',
    kind: 'unread',
    source: V100_HANG,
    seed: 602,
    fineSeconds: 0.5,
    machine: { ...VOLTA, nics: 0 },
    phases: [for_(HOUR, v100Work), for_(40 * MINUTE, v100Hang)],
    truth: hang(HOUR, HOUR + 40 * MINUTE, 'no bytes are read'),
  }),
];

const SERVER = 'figures of a sound idle server: V100 of 300 W at 100 % and 66 W; simulated load of the model before it';
const loading = always({ busy: false, watts: 60, pcie: 6e9, nic: 1e9 });
const servers = [3, 12, 40].map((minutes, at) =>
  source({
    name: `an idle inference server that loaded its model for ${minutes} minutes`,
    kind: 'idle-inference',
    source: SERVER,
    seed: 610 + at,
    fineSeconds: 1,
    machine: { ...VOLTA, limitWatts: 300, lacks: ['tensor', 'dram'] },
    phases: [for_(minutes * MINUTE, loading), for_(3 * HOUR, always({ busy: true, watts: 66 }))],
  }),
);
const idleHopper = source({
  name: 'an idle inference server over two GPUs whose second rank spins, from the start on',
  kind: 'idle-inference',
  source: 'simulation; a server over several GPUs waits in a kernel for the next request',
  seed: 614,
  fineSeconds: 1,
  machine: { ...HOPPER, nics: 0 },
  phases: [
    for_(2 * MINUTE, always({ busy: false, dram: 0.004, watts: 140, pcie: 20e9 })),
    for_(1 * MINUTE, always({ busy: true, tensor: 0.3, dram: 0.6, watts: 450, nvlink: 5e9 })),
    for_(4 * HOUR, spinning),
  ],
});

/** Requests come at random; a token moves little. */
function bursts(seed: number, meanGapSeconds: number, meanBurstSeconds: number, between: Moment): Work {
  const random = seededRandom(seed);
  const ends: number[] = [];
  const serve: Moment = { busy: true, tensor: 0.2, dram: 0.7, watts: 480, nvlink: 20e9, pcie: 0.1e9 };
  const drawn = (mean: number): number => -Math.log(1 - random()) * mean;
  return (seconds) => {
    while ((ends.at(-1) ?? 0) <= seconds) ends.push((ends.at(-1) ?? 0) + drawn(ends.length % 2 === 0 ? meanGapSeconds : meanBurstSeconds));
    return ends.findIndex((end) => end > seconds) % 2 === 0 ? between : serve;
  };
}
const NO_NICS = { ...HOPPER, nics: 0 };
const bursty = [
  source({
    name: 'inference in random bursts, idle in between',
    kind: 'bursty-inference',
    source: 'simulation: exponential gaps of 40 s and bursts of 15 s',
    seed: 620,
    fineSeconds: 1,
    machine: NO_NICS,
    phases: [for_(4 * HOUR, bursts(1, 40, 15, IDLE))],
  }),
  source({
    name: 'inference in random bursts, spinning in between',
    kind: 'bursty-inference',
    source: 'simulation: exponential gaps of 60 s and bursts of 40 s',
    seed: 621,
    fineSeconds: 1,
    machine: NO_NICS,
    phases: [for_(4 * HOUR, bursts(2, 60, 40, SPIN))],
  }),
  source({
    name: 'inference in rare random bursts, spinning in between, most of the time without work',
    kind: 'bursty-inference',
    source: 'simulation: exponential gaps of 240 s and bursts of 60 s; the median of the bytes is that of spinning',
    seed: 622,
    fineSeconds: 1,
    machine: NO_NICS,
    phases: [for_(5 * HOUR, bursts(3, 240, 60, SPIN))],
  }),
  source({
    name: 'inference by day, no request by night while it spins',
    kind: 'bursty-inference',
    source: 'simulation: steady load of two hours, then two hours of nothing',
    seed: 623,
    fineSeconds: 1,
    machine: NO_NICS,
    phases: [for_(2 * HOUR, bursts(4, 2, 30, SPIN)), for_(2 * HOUR, spinning), for_(20 * MINUTE, bursts(5, 2, 30, SPIN))],
    truth: busyWaiting(2 * HOUR, 4 * HOUR),
  }),
];

const HANG_AT = 50 * MINUTE;
const HANG_END = 90 * MINUTE;
const hangs = [for_(HANG_AT, training(30, 7)), for_(HANG_END - HANG_AT, spinning)];
const SIMULATION = 'simulation; Hopper, steps of 30 s';

const unread = [
  source({
    name: 'a hang while the bytes of the adapters are not read',
    kind: 'unread',
    source: SIMULATION,
    seed: 630,
    fineSeconds: 0.5,
    machine: HOPPER,
    phases: hangs,
    unread: [{ fromSeconds: HANG_AT, toSeconds: HANG_END, values: ['nicBytesPerSecond'] }],
    truth: hang(HANG_AT, HANG_END, 'the adapters may move bytes'),
  }),
  source({
    name: 'a hang while the activity is not read',
    kind: 'unread',
    source: SIMULATION,
    seed: 631,
    fineSeconds: 0.5,
    machine: HOPPER,
    phases: hangs,
    unread: [{ fromSeconds: HANG_AT, toSeconds: HANG_END, values: ['tensor', 'dram'] }],
    truth: hang(HANG_AT, HANG_END, 'the engines may work'),
  }),
  source({
    name: 'a training whose activity and bytes are not read for 20 minutes',
    kind: 'unread',
    source: SIMULATION,
    seed: 632,
    fineSeconds: 0.5,
    machine: HOPPER,
    phases: [for_(2 * HOUR, training(30, 8))],
    unread: [
      {
        fromSeconds: HOUR,
        toSeconds: HOUR + 20 * MINUTE,
        values: ['tensor', 'dram', 'nicBytesPerSecond', 'nvlinkBytesPerSecond', 'watts', 'pcieBytesPerSecond'],
      },
    ],
  }),
  source({
    name: 'a hang in whose fifth minute the utilization is not read',
    kind: 'unread',
    source: SIMULATION,
    seed: 633,
    fineSeconds: 0.5,
    machine: HOPPER,
    phases: hangs,
    unread: [{ fromSeconds: HANG_AT + 4 * MINUTE, toSeconds: HANG_AT + 5 * MINUTE, values: ['utilization'] }],
    truth: hang(HANG_AT + 5 * MINUTE, HANG_END),
  }),
  source({
    name: 'a hang of Hopper without activity: only the power shows it',
    kind: 'unread',
    source: 'simulation; a profiler of the node keeps the activity from the agent',
    seed: 634,
    fineSeconds: 0.5,
    machine: { ...HOPPER, lacks: ['tensor', 'dram'] },
    phases: hangs,
    truth: hang(HANG_AT, HANG_END),
  }),
];

const restarts = [
  source({
    name: 'the agent restarts in the work, and the job hangs half an hour later',
    kind: 'restart',
    source: SIMULATION,
    seed: 640,
    fineSeconds: 0.5,
    machine: HOPPER,
    phases: hangs,
    restarts: [{ endedAtSeconds: 20 * MINUTE, startedAtSeconds: 20 * MINUTE + 15 }],
    truth: hang(HANG_AT, HANG_END),
  }),
  source({
    name: 'the agent restarts one minute before the hang',
    kind: 'restart',
    source: SIMULATION,
    seed: 641,
    fineSeconds: 0.5,
    machine: HOPPER,
    phases: hangs,
    restarts: [{ endedAtSeconds: HANG_AT - 75, startedAtSeconds: HANG_AT - 60 }],
    truth: hang(HANG_AT, HANG_END),
  }),
  source({
    name: 'the agent restarts in the seventh minute of the hang',
    kind: 'restart',
    source: `${SIMULATION}; what no agent read does not count, so the interval begins at its start`,
    seed: 642,
    fineSeconds: 0.5,
    machine: HOPPER,
    phases: hangs,
    restarts: [{ endedAtSeconds: HANG_AT + 7 * MINUTE, startedAtSeconds: HANG_AT + 8 * MINUTE }],
    truth: hang(HANG_AT + 8 * MINUTE, HANG_END),
  }),
  source({
    name: 'the agent restarts again and again in an idle inference server',
    kind: 'restart',
    source: SERVER,
    seed: 643,
    fineSeconds: 1,
    machine: { ...VOLTA, limitWatts: 300, lacks: ['tensor', 'dram'] },
    phases: [for_(12 * MINUTE, loading), for_(2 * HOUR, always({ busy: true, watts: 66 }))],
    restarts: [10, 30, 50, 70].map((minute) => ({ endedAtSeconds: minute * MINUTE, startedAtSeconds: minute * MINUTE + 30 })),
  }),
];

/** Two containers on one GPU: the device cannot tell whose kernels run. */
const shared: HistorySource = {
  name: 'two containers share a GPU, and one of them hangs',
  make(): StallHistory {
    const one = play({
      name: shared.name,
      kind: 'shared',
      source: SIMULATION,
      seed: 650,
      fineSeconds: 0.5,
      machine: { ...HOPPER, gpus: 1, nics: 0 },
      phases: hangs,
    });
    const [first] = one.containers;
    if (first === undefined) throw new Error('the history has no container');
    return { ...one, containers: [first, { ...first, pod: 'job-1' }], truth: hang(HANG_AT, HANG_END, 'another container shares the GPU') };
  },
};

/** An instance gives activity and no power, and no link is counted for it alone. */
const instance: HistorySource = {
  name: 'a training on a MIG instance hangs',
  make(): StallHistory {
    const one = play({
      name: instance.name,
      kind: 'shared',
      source: SIMULATION,
      seed: 651,
      fineSeconds: 0.5,
      machine: { ...HOPPER, gpus: 1, nics: 0, lacks: ['watts', 'nvlinkBytesPerSecond', 'pcieBytesPerSecond'] },
      phases: hangs,
      truth: hang(HANG_AT, HANG_END, 'no bytes are read'),
    });
    return { ...one, devices: Object.fromEntries(Object.keys(one.devices).map((id) => [id, { kind: 'mig' as const }])) };
  },
};

const notebook = source({
  name: 'a notebook that computes now and then, idle in between',
  kind: 'bursty-inference',
  source: 'simulation: exponential gaps of 20 minutes and work of 2 minutes',
  seed: 660,
  fineSeconds: 1,
  machine: { ...HOPPER, gpus: 1, nics: 0 },
  phases: [for_(5 * HOUR, bursts(9, 1_200, 120, IDLE))],
});

const memoryBound = source({
  name: 'inference bound by memory: no tensor activity, no bytes over links, little power',
  kind: 'bursty-inference',
  source: 'simulation: decoding of a small model for one client',
  seed: 661,
  fineSeconds: 1,
  machine: { ...HOPPER, gpus: 1, nics: 0 },
  phases: [for_(30 * MINUTE, always(COMPUTE)), for_(90 * MINUTE, always({ busy: true, tensor: 0.002, dram: 0.3, watts: 170, pcie: 1e5 }))],
});

export const histories: readonly HistorySource[] = [
  ...volta,
  ...servers,
  idleHopper,
  ...bursty,
  ...unread,
  ...restarts,
  shared,
  instance,
  notebook,
  memoryBound,
];
