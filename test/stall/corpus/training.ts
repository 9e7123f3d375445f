import type { HistorySource, StallHistory } from '../history.ts';
import { COMPUTE, EXCHANGE, H200, HOPPER, HOPPER_BOARD, IDLE, idle, onProcessors, SPIN, spinning, training } from './figures.ts';
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

const stepsOf = [
  { stepSeconds: 2, everySeconds: 10, fineSeconds: 0.1 },
  { stepSeconds: 2.7, everySeconds: 1, fineSeconds: 0.1 },
  { stepSeconds: 30, everySeconds: 10, fineSeconds: 0.5 },
  { stepSeconds: 47, everySeconds: 10, fineSeconds: 0.5 },
  { stepSeconds: 600, everySeconds: 10, fineSeconds: 1 },
];

const sound = stepsOf.map(({ stepSeconds, ...read }, at) =>
  source({
    name: `training in steps of ${stepSeconds} s, read each ${read.everySeconds} s`,
    kind: 'training',
    seed: 100 + at,
    ...read,
    machine: at === 0 ? HOPPER_BOARD : HOPPER,
    phases: [for_(read.everySeconds === 1 ? HOUR : 2 * HOUR, training(stepSeconds, at))],
    steps: made(stepSeconds, HOUR),
  }),
);

/** A rank elsewhere died; the others wait for it. */
const dead = stepsOf.map(({ stepSeconds, ...read }, at) => {
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

const published = source({
  name: 'a job of 512 GPUs that hung at 100 % for 33 minutes',
  kind: 'dead-rank',
  source:
    'marin issue 7344: 98.55 % and 984 W while it works, then 100 % for 33 minutes; simulated steps of 40 s, a quarter of the power while it spins',
  seed: 301,
  fineSeconds: 0.5,
  machine: { ...HOPPER_BOARD, gpus: 4, nics: 4, limitWatts: 1_000, model: 'NVIDIA B200' },
  phases: [
    for_(HOUR, steps({ stepSeconds: 40, seed: 3, compute: { ...COMPUTE, watts: 1_000 }, exchange: { ...EXCHANGE, watts: 930 } })),
    for_(33 * MINUTE, always({ ...SPIN, watts: 245 })),
    for_(10 * MINUTE, always({ ...IDLE, memoryBytes: 0 })),
  ],
  truth: hang(HOUR, HOUR + 33 * MINUTE),
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
const checkpoints = ([5, 20] as const).flatMap((minutes) => [
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

const starvation = (
  [
    { share: 0.03, seconds: 60 },
    { share: 0.01, seconds: 900 },
  ] as const
).map(({ share, seconds }, at) =>
  source({
    name: `the data loader is slow: work for ${share * 100} % of steps of ${seconds} s`,
    kind: 'starvation',
    seed: 370 + at,
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
    name: 'training of one node over NVLink alone',
    kind: 'nvlink-only',
    seed: 380,
    fineSeconds: 0.5,
    machine: { ...HOPPER, nics: 0 },
    phases: [for_(2 * HOUR, training(33, 80))],
    steps: made(33, 2 * HOUR),
  }),
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
const stragglers = [1.5, 6].map((factor, at) =>
  source({
    name: `one rank takes ${factor} times as long`,
    kind: 'straggler',
    seed: 390 + at,
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

export const histories: readonly HistorySource[] = [
  ...sound,
  ...dead,
  published,
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
];
