import { seededRandom } from '../../support/seeded.ts';
import type { DeviceValues, HistoryContainer, HistoryTruth, StallHistory } from '../history.ts';
import { CONTAINER, type Machine, type Moment, type Phase, type Play, POD, play, type Work } from './simulation.ts';

// Pieces that the independent histories share: chips with their usual figures, and ways to put work together.

export const MINUTE = 60;
export const HOUR = 3600;

/** What a GPU of one model draws and moves in the usual situations. */
export interface Chip {
  readonly machine: Omit<Machine, 'gpus' | 'nics'>;
  readonly compute: Moment;
  readonly exchange: Moment;
  /** A communication kernel waits for another rank. */
  readonly spin: Moment;
  /** A process holds memory and runs nothing. */
  readonly context: Moment;
  /** No process uses the GPU. */
  readonly free: Moment;
}

const NO_GPM = ['tensor', 'dram'] as const;

/** Spinning and context as we measured on an H200, some watts lower. Tensor 0.45 is about the 40 % of model FLOPs that Llama 3 reports. */
export const H100: Chip = {
  machine: { limitWatts: 700, model: 'NVIDIA H100 80GB HBM3' },
  compute: { busy: true, tensor: 0.45, dram: 0.35, watts: 640, nvlink: 120e9, pcie: 0.3e9 },
  exchange: { busy: true, tensor: 0.04, dram: 0.22, watts: 400, nvlink: 180e9, pcie: 18e9, nic: 20e9 },
  spin: { busy: true, tensor: 0, dram: 4e-6, watts: 138 },
  context: { busy: false, watts: 124 },
  free: { busy: false, watts: 72, memoryBytes: 0.5e9 },
};

/** No GPM before Hopper. Operators report 80 to 95 W for a communication kernel that waits. */
export const A100: Chip = {
  machine: { limitWatts: 400, model: 'NVIDIA A100-SXM4-80GB', lacks: NO_GPM },
  compute: { busy: true, watts: 372, nvlink: 70e9, pcie: 0.2e9 },
  exchange: { busy: true, watts: 240, nvlink: 100e9, pcie: 8e9, nic: 9e9 },
  spin: { busy: true, watts: 88 },
  context: { busy: false, watts: 67 },
  free: { busy: false, watts: 54, memoryBytes: 0.4e9 },
};

/** The PCIe card: a hang at 100 % and 40 to 47 of 250 W is published. */
export const V100: Chip = {
  machine: { limitWatts: 250, model: 'Tesla V100-PCIE-16GB', lacks: [...NO_GPM, 'nvlinkBytesPerSecond'] },
  compute: { busy: true, watts: 214, pcie: 0.4e9, memoryBytes: 14e9 },
  exchange: { busy: true, watts: 118, pcie: 9e9, nic: 2e9, memoryBytes: 14e9 },
  spin: { busy: true, watts: 43.5, memoryBytes: 14e9 },
  context: { busy: false, watts: 38, memoryBytes: 14e9 },
  free: { busy: false, watts: 25, memoryBytes: 0.01e9 },
};

/** Limit of 1000 W; at work 984 W were published. */
export const B200: Chip = {
  machine: { limitWatts: 1000, model: 'NVIDIA B200' },
  compute: { busy: true, tensor: 0.52, dram: 0.4, watts: 990, nvlink: 260e9, pcie: 0.5e9, memoryBytes: 150e9 },
  exchange: { busy: true, tensor: 0.05, dram: 0.25, watts: 640, nvlink: 420e9, pcie: 30e9, nic: 36e9, memoryBytes: 150e9 },
  spin: { busy: true, tensor: 0, dram: 5e-6, watts: 208, memoryBytes: 150e9 },
  context: { busy: false, watts: 186, memoryBytes: 150e9 },
  free: { busy: false, watts: 140, memoryBytes: 0.8e9 },
};

/** 750 W limit; it idles near 140 W. The links are xGMI. */
export const MI300X: Chip = {
  machine: { limitWatts: 750, model: 'AMD Instinct MI300X', lacks: NO_GPM },
  compute: { busy: true, watts: 690, nvlink: 60e9, pcie: 0.3e9, memoryBytes: 160e9 },
  exchange: { busy: true, watts: 420, nvlink: 110e9, pcie: 16e9, nic: 18e9, memoryBytes: 160e9 },
  spin: { busy: true, watts: 171, memoryBytes: 160e9 },
  context: { busy: false, watts: 148, memoryBytes: 160e9 },
  free: { busy: false, watts: 139, memoryBytes: 0.3e9 },
};

/** No NVLink and no GPM: all gradients go over PCIe. */
export const L40S: Chip = {
  machine: { limitWatts: 350, model: 'NVIDIA L40S', lacks: [...NO_GPM, 'nvlinkBytesPerSecond'] },
  compute: { busy: true, watts: 328, pcie: 2e9, memoryBytes: 40e9 },
  exchange: { busy: true, watts: 190, pcie: 14e9, nic: 6e9, memoryBytes: 40e9 },
  spin: { busy: true, watts: 84, memoryBytes: 40e9 },
  context: { busy: false, watts: 38, memoryBytes: 40e9 },
  free: { busy: false, watts: 33, memoryBytes: 0.5e9 },
};

/** Machines of eight GPUs and eight adapters. */
export const h100 = { ...H100.machine, gpus: 8, nics: 8 };
export const a100 = { ...A100.machine, gpus: 8, nics: 8 };

/** Steps of the usual container. */
export const all = (fromSeconds: number, toSeconds: number, stepSeconds: number) => ({
  pod: POD,
  container: CONTAINER,
  fromSeconds,
  toSeconds,
  stepSeconds,
});

/** Work in steps of any length: `length` of step `n` that begins at `at`, and what a GPU does at a share of it. */
export function inSteps(length: (n: number, at: number) => number, moment: (share: number, n: number, gpu: number) => Moment): Work {
  const ends: number[] = [];
  return (seconds, gpu) => {
    while ((ends.at(-1) ?? 0) <= seconds) ends.push((ends.at(-1) ?? 0) + length(ends.length, ends.at(-1) ?? 0));
    let [low, high] = [0, ends.length - 1];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((ends[middle] as number) > seconds) high = middle;
      else low = middle + 1;
    }
    const begin = ends[low - 1] ?? 0;
    return moment((seconds - begin) / ((ends[low] as number) - begin), low, gpu);
  };
}

/** Phases one after the other as one work, so that GPUs of one node can go through different ones. */
export function inTurn(phases: readonly Phase[]): Work {
  const last = phases.at(-1) as Phase;
  return (seconds, gpu) => {
    let from = 0;
    for (const { forSeconds, work } of phases) {
      if (seconds < from + forSeconds) return work(seconds - from, gpu);
      from += forSeconds;
    }
    return last.work(seconds - from + last.forSeconds, gpu);
  };
}

/** The GPUs below `first` do one thing, the others another. */
export const apart =
  (first: number, work: Work, others: Work): Work =>
  (seconds, gpu) =>
    gpu < first ? work(seconds, gpu) : others(seconds, gpu);

/** Random steps around a length; each call with the same seed gives the same ones. */
export function around(seconds: number, jitter: number, seed: number): () => number {
  const random = seededRandom(seed);
  return () => seconds * Math.max(0.2, 1 + (random() + random() + random() + random() - 2) * 1.73 * jitter);
}

/** Changes or drops (undefined) what was read of single devices. */
export function alter(
  history: StallHistory,
  change: (values: DeviceValues, id: string, atSeconds: number) => DeviceValues | undefined,
): StallHistory {
  return {
    ...history,
    reads: history.reads.map(({ atSeconds, devices }) => ({
      atSeconds,
      devices: Object.fromEntries(
        Object.entries(devices).flatMap(([id, values]): [string, DeviceValues][] => {
          const now = change(values, id, atSeconds);
          return now === undefined ? [] : [[id, now]];
        }),
      ),
    })),
  };
}

export const leaveOut = (values: DeviceValues, names: readonly (keyof DeviceValues)[]): DeviceValues =>
  Object.fromEntries(Object.entries(values).filter(([name]) => !(names as readonly string[]).includes(name)));

/** The container of a simulation ends before the history does. */
export const endsAt = (history: StallHistory, toSeconds: number): StallHistory => ({
  ...history,
  containers: history.containers.map((one): HistoryContainer => ({ ...one, toSeconds })),
});

export const ids = (kind: 'gpu' | 'nic' | 'mig', from: number, to: number): string[] =>
  Array.from({ length: to - from }, (_, at) => `${kind}${from + at}`);

/** Truth for other names of pod and container. */
export const inside = (truth: readonly HistoryTruth[], pod: string, container = CONTAINER): HistoryTruth[] =>
  truth.map((one) => ({ ...one, pod, container }));

/** A container that certainly waits busily; whether it is `Stalled` neither the values nor the definition decide. */
export const waitsAtLeast = (fromSeconds: number, toSeconds: number, unknowable: string): HistoryTruth[] => [
  { state: 'BusyWaiting', pod: POD, container: CONTAINER, fromSeconds, toSeconds },
  { state: 'Stalled', pod: POD, container: CONTAINER, fromSeconds, toSeconds, unknowable },
];

/** Plays a plan as coarsely as its shortest step allows. */
export function playCoarsely(plan: Play): StallHistory {
  const shortest = Math.min(...(plan.steps ?? []).map(({ stepSeconds }) => stepSeconds));
  return play({ fineSeconds: Number.isFinite(shortest) ? Math.min(1, Math.max(0.1, shortest / 12)) : 0.25, ...plan });
}

/** More noise than the simulation has: `share` is the standard deviation of bytes and tensor activity. The same seed gives the same history. */
export function noisy(history: StallHistory, seed: number, share: number): StallHistory {
  const random = seededRandom(seed);
  const factor = () => Math.max(0, 1 + (random() + random() + random() + random() - 2) * 1.73 * share);
  return alter(history, (values) => ({
    ...values,
    ...(values.watts === undefined ? {} : { watts: values.watts * (1 + (factor() - 1) / 4) }),
    ...(values.tensor === undefined ? {} : { tensor: values.tensor * factor() }),
    ...(values.nvlinkBytesPerSecond === undefined ? {} : { nvlinkBytesPerSecond: values.nvlinkBytesPerSecond * factor() }),
    ...(values.nicBytesPerSecond === undefined ? {} : { nicBytesPerSecond: values.nicBytesPerSecond * factor() }),
    // A monitor of another user queries a GPU now and then.
    ...(values.pcieBytesPerSecond === undefined
      ? {}
      : { pcieBytesPerSecond: values.pcieBytesPerSecond * factor() + (random() < 0.02 ? 8e6 : 0) }),
  }));
}

/** The first read of an agent has nothing before it to take a mean from, so it has only what is sampled. */
export function withoutFirstMeans(history: StallHistory): StallHistory {
  const starts = [0, ...(history.restarts ?? []).map(({ startedAtSeconds }) => startedAtSeconds)];
  const first = new Set(starts.map((start) => history.reads.find(({ atSeconds }) => atSeconds >= start)?.atSeconds));
  return alter(history, (values, _, at) =>
    first.has(at) ? leaveOut(values, ['tensor', 'dram', 'nvlinkBytesPerSecond', 'pcieBytesPerSecond', 'nicBytesPerSecond']) : values,
  );
}
