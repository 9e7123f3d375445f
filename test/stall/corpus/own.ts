import { seededRandom } from '../../support/seeded.ts';
import type { HistorySource, StallHistory } from '../history.ts';
import {
  COMPUTE,
  EXCHANGE,
  H200,
  HOPPER,
  HOPPER_BOARD,
  IDLE,
  idle,
  onProcessors,
  SPIN,
  spinning,
  training,
  V100_COMPUTE,
  V100_EXCHANGE,
  VOLTA,
} from './figures.ts';
import { always, busyWaiting, CONTAINER, hang, type Moment, type Phase, type Play, POD, play, steps, type Work } from './simulation.ts';

const MINUTE = 60;
const HOUR = 3_600;
const SIMULATION = 'simulation; power, activity and bytes of the states as measured or published for Hopper';

const source = (plan: Omit<Play, 'source'> & { readonly source?: string }): HistorySource => ({
  name: plan.name,
  make: (): StallHistory => play({ source: SIMULATION, ...plan }),
});

const for_ = (forSeconds: number, work: Work): Phase => ({ forSeconds, work });
const made = (stepSeconds: number, toSeconds: number): NonNullable<Play['steps']> => [
  { pod: POD, container: CONTAINER, fromSeconds: 0, toSeconds, stepSeconds },
];

/** Work of GPUs that differ: the one with the number does something else. */
const except =
  (which: number, other: Work, rest: Work): Work =>
  (seconds, gpu) =>
    (gpu === which ? other : rest)(seconds, gpu);

const short = { at: 1, stepSeconds: 2.7, everySeconds: 1, fineSeconds: 0.1 };
const long = { at: 4, stepSeconds: 600, everySeconds: 10, fineSeconds: 1 };

const sound = [short, { at: 2, stepSeconds: 30, everySeconds: 10, fineSeconds: 0.5 }, long].map(({ at, stepSeconds, ...read }) =>
  source({
    name: `training in steps of ${stepSeconds} s, read each ${read.everySeconds} s`,
    kind: 'training',
    seed: 100 + at,
    ...read,
    machine: HOPPER,
    phases: [for_(read.everySeconds === 1 ? HOUR : 2 * HOUR, training(stepSeconds, at))],
    steps: made(stepSeconds, HOUR),
  }),
);

/** A rank elsewhere died; the others wait for it. */
const dead = [{ at: 0, stepSeconds: 2, everySeconds: 10, fineSeconds: 0.1 }, short, long].map(({ at, stepSeconds, ...read }) => {
  const before = stepSeconds === 600 ? 80 * MINUTE : read.everySeconds === 1 ? 30 * MINUTE : 50 * MINUTE;
  const from = before + 7.3 * at;
  return source({
    name: `spinning after a rank of another node died, steps of ${stepSeconds} s, read each ${read.everySeconds} s`,
    kind: 'dead-rank',
    seed: 200 + at,
    ...read,
    machine: HOPPER,
    phases: [for_(from, training(stepSeconds, at + 9)), for_(33 * MINUTE, spinning)],
    truth: hang(from, from + 33 * MINUTE),
    steps: made(stepSeconds, from),
  });
});

const measured = (spin: 'spin' | 'spinSmall' | 'spinLarge', everySeconds: number, seed: number): HistorySource =>
  source({
    name: `an H200 that works in steps of 2 s and then spins (${spin}), read each ${everySeconds} s`,
    kind: 'hang',
    source: 'our own measurement: H200 of 700 W, driver 580.159.04, virtual machine; the bytes over PCIe follow from its 0.4 s of copies',
    seed,
    everySeconds,
    fineSeconds: 0.05,
    machine: { ...HOPPER, gpus: 1, nics: 0 },
    phases: [
      for_(5 * MINUTE, always({ ...H200.idleWithContext })),
      for_(25 * MINUTE, measuredSteps()),
      for_(25 * MINUTE, always(H200[spin])),
    ],
    truth: hang(30 * MINUTE, 55 * MINUTE),
  });

function measuredSteps(): Work {
  return (seconds) => {
    const at = seconds % 2;
    return at < 1.4 ? H200.product : at < 1.8 ? H200.copy : H200.pause;
  };
}

const deadHere = source({
  name: 'a rank of this container died, and seven wait for it',
  kind: 'dead-rank',
  seed: 303,
  fineSeconds: 0.5,
  machine: HOPPER_BOARD,
  phases: [for_(40 * MINUTE, training(36, 4)), for_(30 * MINUTE, except(3, always({ busy: false, watts: 80, memoryBytes: 0 }), spinning))],
  truth: hang(40 * MINUTE, 70 * MINUTE),
});

const shortWait = source({
  name: 'waits of 4 and 8 minutes for a slow node, then the job goes on',
  kind: 'checkpoint',
  seed: 304,
  fineSeconds: 0.5,
  machine: HOPPER,
  phases: [
    for_(40 * MINUTE, training(30, 5)),
    for_(4 * MINUTE, spinning),
    for_(30 * MINUTE, training(30, 6)),
    for_(8 * MINUTE, spinning),
    for_(30 * MINUTE, training(30, 7)),
  ],
});

const COPY_OUT: Moment = { busy: false, watts: 140, pcie: 22e9 };

/** One in each half hour: the GPUs copy their state out, then the processors write it. */
const checkpoints = [20].flatMap((minutes) => [
  source({
    name: `checkpoints of ${minutes} minutes, the GPUs are idle`,
    kind: 'checkpoint',
    seed: 310 + minutes,
    fineSeconds: 0.5,
    machine: HOPPER,
    phases: [0, 1, 2].flatMap((at) => [
      for_(30 * MINUTE, training(30, 20 + at)),
      for_(20, always(COPY_OUT)),
      for_(minutes * MINUTE, onProcessors),
    ]),
  }),
  source({
    name: `checkpoints of ${minutes} minutes, one rank of the container writes and the others spin`,
    kind: 'checkpoint',
    seed: 320 + minutes,
    fineSeconds: 0.5,
    machine: { ...HOPPER, gpus: 4, nics: 4 },
    phases: [0, 1, 2].flatMap((at) => [
      for_(30 * MINUTE, training(30, 30 + at)),
      for_(20, except(0, always(COPY_OUT), spinning)),
      for_(minutes * MINUTE, except(0, idle, spinning)),
    ]),
  }),
]);

const elsewhere = source({
  name: 'three checkpoints of 20 minutes that another node writes, all ranks here spin',
  kind: 'checkpoint',
  source: `${SIMULATION}; only the other node knows that it writes`,
  seed: 340,
  fineSeconds: 0.5,
  machine: HOPPER,
  phases: [0, 1, 2]
    .flatMap((at) => [for_(40 * MINUTE, training(30, 41 + at)), for_(20 * MINUTE, spinning)])
    .concat(for_(20 * MINUTE, training(30, 45))),
  truth: [0, 1, 2].flatMap((at) => busyWaiting((60 * at + 40) * MINUTE, (60 * at + 60) * MINUTE)),
});

const evaluation = source({
  name: 'evaluation of 15 minutes after each half hour, without exchange between nodes',
  kind: 'evaluation',
  seed: 350,
  fineSeconds: 0.5,
  machine: HOPPER,
  phases: [0, 1, 2].flatMap((at) => [
    for_(30 * MINUTE, training(30, 50 + at)),
    for_(15 * MINUTE, always({ busy: true, tensor: 0.25, dram: 0.5, watts: 420, pcie: 2e6 })),
  ]),
});

const compile = source({
  name: 'compilation of 25 minutes at the start and of 14 minutes later',
  kind: 'compile',
  seed: 360,
  fineSeconds: 0.5,
  machine: HOPPER,
  phases: [
    for_(25 * MINUTE, onProcessors),
    for_(40 * MINUTE, training(30, 60)),
    for_(14 * MINUTE, onProcessors),
    for_(20 * MINUTE, training(30, 61)),
  ],
});

const starvation = ([{ share: 0.01, seconds: 900 }] as const).map(({ share, seconds }) =>
  source({
    name: `the data loader is slow: work for ${share * 100} % of steps of ${seconds} s`,
    kind: 'starvation',
    seed: 371,
    fineSeconds: 0.5,
    machine: HOPPER,
    phases: [
      for_(40 * MINUTE, training(30, 70)),
      for_(
        80 * MINUTE,
        steps({ stepSeconds: seconds, seed: 71, exchangeShare: share, compute: IDLE, exchange: { ...COMPUTE, nvlink: 60e9 } }),
      ),
    ],
  }),
);

const nvlinkOnly = [
  source({
    name: 'training of one node over NVLink alone, whose ranks wait for each other for ever',
    kind: 'nvlink-only',
    seed: 381,
    fineSeconds: 0.5,
    machine: { ...HOPPER, nics: 0 },
    phases: [for_(45 * MINUTE, training(33, 81)), for_(40 * MINUTE, spinning)],
    truth: hang(45 * MINUTE, 85 * MINUTE),
  }),
];

/** The fast ranks spin while they wait for the slow one. */
const stragglers = [6].map((factor) =>
  source({
    name: `one rank takes ${factor} times as long`,
    kind: 'straggler',
    seed: 391,
    fineSeconds: 0.5,
    machine: { ...HOPPER, gpus: 4, nics: 4 },
    phases: [
      for_(40 * MINUTE, training(30, 90)),
      for_(
        80 * MINUTE,
        except(
          2,
          steps({ stepSeconds: 30 * factor, jitter: 0, exchangeShare: 0.25 / factor, compute: COMPUTE, exchange: EXCHANGE }),
          waitingForOne(30, factor),
        ),
      ),
    ],
  }),
);

function waitingForOne(stepSeconds: number, factor: number): Work {
  const length = stepSeconds * factor;
  return (seconds) => {
    const at = seconds % length;
    return at < stepSeconds * 0.75 ? COMPUTE : at < length - stepSeconds * 0.25 ? SPIN : EXCHANGE;
  };
}

const slow = source({
  name: 'all ranks become four times slower together',
  kind: 'slow',
  seed: 400,
  fineSeconds: 0.5,
  machine: HOPPER,
  phases: [
    for_(40 * MINUTE, training(30, 95)),
    for_(
      80 * MINUTE,
      steps({ stepSeconds: 120, seed: 96, exchangeShare: 0.06, compute: { ...COMPUTE, tensor: 0.15, watts: 300 }, exchange: EXCHANGE }),
    ),
  ],
});

const earlyHang = source({
  name: 'a job that hangs after six minutes of work',
  kind: 'hang',
  source: `${SIMULATION}; too short to know what it usually moves`,
  seed: 410,
  fineSeconds: 0.5,
  machine: HOPPER,
  phases: [for_(6 * MINUTE, training(30, 97)), for_(40 * MINUTE, spinning)],
  truth: hang(6 * MINUTE, 46 * MINUTE),
});

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
const servers = [12].map((minutes) =>
  source({
    name: `an idle inference server that loaded its model for ${minutes} minutes`,
    kind: 'idle-inference',
    source: SERVER,
    seed: 611,
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
const HOPPERS = 'simulation; Hopper, steps of 30 s';

const unread = [
  source({
    name: 'a hang while the bytes of the adapters are not read',
    kind: 'unread',
    source: HOPPERS,
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
    source: HOPPERS,
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
    source: HOPPERS,
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
    source: HOPPERS,
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
    name: 'the agent restarts one minute before the hang',
    kind: 'restart',
    source: HOPPERS,
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
    source: `${HOPPERS}; what no agent read does not count, so the interval begins at its start`,
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
      source: HOPPERS,
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
      source: HOPPERS,
      seed: 651,
      fineSeconds: 0.5,
      machine: { ...HOPPER, gpus: 1, nics: 0, lacks: ['watts', 'nvlinkBytesPerSecond', 'pcieBytesPerSecond'] },
      phases: hangs,
      truth: hang(HANG_AT, HANG_END, 'no bytes are read'),
    });
    return { ...one, devices: Object.fromEntries(Object.keys(one.devices).map((id) => [id, { kind: 'mig' as const }])) };
  },
};

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
  ...sound,
  ...dead,
  measured('spin', 1, 501),
  measured('spinSmall', 10, 502),
  measured('spinLarge', 10, 503),
  deadHere,
  shortWait,
  ...checkpoints,
  elsewhere,
  evaluation,
  compile,
  ...starvation,
  ...nvlinkOnly,
  ...stragglers,
  slow,
  earlyHang,
  ...volta,
  ...servers,
  idleHopper,
  ...bursty,
  ...unread,
  ...restarts,
  shared,
  instance,
  memoryBound,
];
