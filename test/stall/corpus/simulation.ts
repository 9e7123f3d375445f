import { seededRandom } from '../../support/seeded.ts';
import type { DeviceValues, HistoryContainer, HistoryDevice, HistoryRead, HistoryRestart, HistorySteps, StallHistory } from '../history.ts';

/** What one GPU does at one moment. Absent bytes are 0. */
export interface Moment {
  /** A kernel runs. */
  readonly busy: boolean;
  readonly tensor?: number;
  readonly dram?: number;
  readonly fp16?: number;
  readonly fp32?: number;
  readonly fp64?: number;
  readonly integer?: number;
  readonly encoder?: number;
  readonly decoder?: number;
  readonly watts: number;
  readonly memoryBytes?: number;
  readonly nvlink?: number;
  readonly pcie?: number;
  /** Of the network adapter of this GPU. */
  readonly nic?: number;
}

/** What all GPUs of a container do from one time on: `seconds` since then, `gpu` from 0. */
export type Work = (seconds: number, gpu: number) => Moment;

export interface Phase {
  readonly forSeconds: number;
  readonly work: Work;
}

export interface Machine {
  readonly gpus: number;
  /** Network adapters that the container holds, each beside one GPU. */
  readonly nics: number;
  readonly limitWatts: number;
  readonly model?: string;
  /** Pipes that are read beside tensor units and memory; none when absent. */
  readonly tells?: readonly (typeof OTHER_PIPES)[number][];
  /** Values that this kind of machine does not give. */
  readonly lacks?: readonly (keyof DeviceValues)[];
}

export interface Play {
  readonly name: string;
  readonly kind: string;
  readonly source: string;
  readonly seed: number;
  readonly everySeconds?: number;
  /** Fineness of the integration; at most a tenth of the shortest step. */
  readonly fineSeconds?: number;
  readonly machine: Machine;
  readonly phases: readonly Phase[];
  readonly restarts?: readonly HistoryRestart[];
  /** Times in which values are not read. */
  readonly unread?: readonly {
    readonly fromSeconds: number;
    readonly toSeconds: number;
    readonly values: readonly (keyof DeviceValues)[];
  }[];
  readonly truth?: StallHistory['truth'];
  readonly steps?: readonly HistorySteps[];
}

export const POD = 'job-0';
export const CONTAINER = 'main';

/** Reads of a container that holds all devices of a machine and goes through the phases. */
export function play(plan: Play): StallHistory {
  const { machine, phases, everySeconds = 10, restarts = [] } = plan;
  const gpus = Array.from({ length: machine.gpus }, (_, at) => `gpu${at}`);
  const nics = Array.from({ length: machine.nics }, (_, at) => `nic${at}`);
  const facts: Omit<HistoryDevice, 'kind'> = {
    limitWatts: machine.limitWatts,
    ...(machine.model === undefined ? {} : { model: machine.model }),
  };
  const container: HistoryContainer = { pod: POD, container: CONTAINER, devices: [...gpus, ...nics] };
  return {
    name: plan.name,
    kind: plan.kind,
    source: plan.source,
    everySeconds,
    devices: {
      ...Object.fromEntries(gpus.map((id): [string, HistoryDevice] => [id, { kind: 'gpu', ...facts }])),
      ...Object.fromEntries(nics.map((id): [string, HistoryDevice] => [id, { kind: 'nic' }])),
    },
    containers: [container],
    reads: reads(plan, phases, everySeconds).filter(
      ({ atSeconds }) => !restarts.some((one) => atSeconds > one.endedAtSeconds && atSeconds < one.startedAtSeconds),
    ),
    ...(restarts.length === 0 ? {} : { restarts }),
    truth: plan.truth ?? [],
    ...(plan.steps === undefined ? {} : { steps: plan.steps }),
  };
}

/** Truth of a container that hangs from one time to another. */
export const hang = (fromSeconds: number, toSeconds: number, unknowable?: string): StallHistory['truth'] =>
  (['BusyWaiting', 'Stalled'] as const).map((state) => ({
    state,
    pod: POD,
    container: CONTAINER,
    fromSeconds,
    toSeconds,
    ...(unknowable === undefined ? {} : { unknowable }),
  }));

/** Truth of a container that waits and does not hang. */
export const busyWaiting = (fromSeconds: number, toSeconds: number): StallHistory['truth'] =>
  hang(fromSeconds, toSeconds).filter(({ state }) => state === 'BusyWaiting');

function reads(plan: Play, phases: readonly Phase[], every: number): HistoryRead[] {
  const { machine, fineSeconds = 0.25, unread = [], seed } = plan;
  const random = seededRandom(seed);
  const total = phases.reduce((sum, { forSeconds }) => sum + forSeconds, 0);
  const all: HistoryRead[] = [];
  for (let from = 0; from + every <= total; ) {
    // Timers fire a little early or late.
    const to = from + every * (1 + (random() - 0.5) * 0.04);
    const lacks = new Set([
      ...(machine.lacks ?? []),
      ...unread.filter(({ fromSeconds, toSeconds }) => to > fromSeconds && to <= toSeconds).flatMap(({ values }) => values),
    ]);
    const values: [string, DeviceValues][] = [];
    for (let gpu = 0; gpu < machine.gpus; gpu += 1) {
      const mean = meanOf(phases, gpu, from, to, fineSeconds);
      const noise = (): number => 1 + (random() - 0.5) * 0.03;
      const ofGpu = {
        // The driver samples a fraction of a second before the read.
        utilization: shareBusy(phases, gpu, to),
        tensor: mean.tensor * noise(),
        dram: mean.dram * noise(),
        ...Object.fromEntries((machine.tells ?? []).map((pipe) => [pipe, mean[pipe]])),
        watts: mean.watts * noise(),
        memoryBytes: momentAt(phases, to - 1e-6, gpu).memoryBytes ?? 60e9,
        nvlinkBytesPerSecond: mean.nvlink * noise(),
        // Queries of the driver itself move some bytes.
        pcieBytesPerSecond: mean.pcie * noise() + 200_000 + 100_000 * random(),
      };
      values.push([`gpu${gpu}`, without(ofGpu, lacks)]);
      // Keepalives and queries of the subnet manager.
      if (gpu < machine.nics)
        values.push([`nic${gpu}`, without({ nicBytesPerSecond: mean.nic * noise() + 2_000 + 4_000 * random() }, lacks)]);
    }
    all.push({ atSeconds: to, devices: Object.fromEntries(values.filter(([, one]) => Object.keys(one).length > 0)) });
    from = to;
  }
  return all;
}

const without = (values: DeviceValues, lacks: ReadonlySet<string>): DeviceValues =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !lacks.has(name)));

function momentAt(phases: readonly Phase[], seconds: number, gpu: number): Moment {
  let from = 0;
  for (const { forSeconds, work } of phases) {
    if (seconds < from + forSeconds) return work(seconds - from, gpu);
    from += forSeconds;
  }
  const last = phases.at(-1) as Phase;
  return last.work(seconds - from + last.forSeconds, gpu);
}

/** Window of the driver. */
const SAMPLED_SECONDS = 0.2;

function shareBusy(phases: readonly Phase[], gpu: number, to: number): number {
  let busy = 0;
  for (let at = 1; at <= 10; at += 1) busy += momentAt(phases, Math.max(0, to - (SAMPLED_SECONDS * at) / 10), gpu).busy ? 1 : 0;
  return busy / 10;
}

export const OTHER_PIPES = ['fp16', 'fp32', 'fp64', 'integer', 'encoder', 'decoder'] as const;
const MEANS = ['tensor', 'dram', 'watts', 'nvlink', 'pcie', 'nic', ...OTHER_PIPES] as const;
type Mean = Record<(typeof MEANS)[number], number>;

function meanOf(phases: readonly Phase[], gpu: number, from: number, to: number, fine: number): Mean {
  const sum = Object.fromEntries(MEANS.map((name) => [name, 0])) as Mean;
  const count = Math.max(1, Math.round((to - from) / fine));
  for (let n = 0; n < count; n += 1) {
    const now = momentAt(phases, from + ((n + 0.5) * (to - from)) / count, gpu);
    for (const name of MEANS) sum[name] += (now[name] ?? 0) / count;
  }
  return sum;
}

export interface Step {
  readonly stepSeconds: number;
  /** Standard deviation of the length of a step, as share of it. */
  readonly jitter?: number;
  readonly seed?: number;
  /** Share of the step in which the ranks exchange gradients. */
  readonly exchangeShare?: number;
  readonly compute: Moment;
  readonly exchange: Moment;
}

/** Work in steps: first the computation, then the exchange. */
export function steps({ stepSeconds, jitter = 0.02, seed = 1, exchangeShare = 0.25, compute, exchange }: Step): Work {
  const random = seededRandom(seed);
  const ends: number[] = [];
  return (seconds) => {
    while ((ends.at(-1) ?? 0) <= seconds) {
      const gauss = random() + random() + random() + random() - 2;
      ends.push((ends.at(-1) ?? 0) + Math.max(0.2, 1 + gauss * 1.73 * jitter) * stepSeconds);
    }
    let [low, high] = [0, ends.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] as number) > seconds) high = middle;
      else low = middle + 1;
    }
    const begin = ends[low - 1] ?? 0;
    const end = ends[low] as number;
    return (seconds - begin) / (end - begin) < 1 - exchangeShare ? compute : exchange;
  };
}

export const always =
  (moment: Moment): Work =>
  () =>
    moment;
