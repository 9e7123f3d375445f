import type { Machine, Moment } from './simulation.ts';
import { always, OTHER_PIPES, steps, type Work } from './simulation.ts';

/** Eight GPUs of a Hopper board with adapters. Two of each stand for them where more would only repeat the same values. */
export const HOPPER: Machine = { gpus: 2, nics: 2, limitWatts: 700, model: 'NVIDIA H200' };
export const HOPPER_BOARD: Machine = { ...HOPPER, gpus: 8, nics: 8 };
/** Before Hopper no activity is read. */
export const VOLTA: Machine = {
  gpus: 2,
  nics: 1,
  limitWatts: 250,
  model: 'Tesla V100-PCIE-32GB',
  lacks: ['tensor', 'dram', 'nvlinkBytesPerSecond', 'pcieBytesPerSecond'],
};

/** Measured on an H200 of 700 W, driver 580.159.04, in steps of 1.4 s of products of matrices, 0.4 s of copies to the device, 0.2 s of nothing. */
export const H200 = {
  idleWithContext: { busy: false, watts: 126 },
  product: { busy: true, tensor: 0.83, dram: 0.2, watts: 690 },
  copy: { busy: false, dram: 0.02, watts: 160, pcie: 20e9 },
  pause: { busy: false, watts: 140 },
  /** 24 blocks of 544 threads, as a communication kernel waits. */
  spin: { busy: true, dram: 4e-6, watts: 139.4 },
  /** One thread. */
  spinSmall: { busy: true, watts: 127 },
  /** All multiprocessors. */
  spinLarge: { busy: true, watts: 146 },
} as const satisfies Record<string, Moment>;

export const COMPUTE: Moment = { busy: true, tensor: 0.62, dram: 0.35, watts: 620, nvlink: 15e9, pcie: 0.3e9 };
export const EXCHANGE: Moment = { busy: true, tensor: 0.02, dram: 0.15, watts: 330, nvlink: 120e9, pcie: 12e9, nic: 35e9 };
export const SPIN: Moment = H200.spin;
export const IDLE: Moment = H200.idleWithContext;

/** Training over several nodes, in steps of computation and exchange. */
export const training = (
  stepSeconds: number,
  seed: number,
  more: { readonly exchangeShare?: number; readonly jitter?: number } = {},
): Work => steps({ stepSeconds, seed, compute: COMPUTE, exchange: EXCHANGE, ...more });

export const V100_COMPUTE: Moment = { busy: true, watts: 215 };
export const V100_EXCHANGE: Moment = { busy: true, watts: 120, nic: 9e9 };

export const idle = always(IDLE);
export const spinning = always(SPIN);
/** Only the processors work. */
export const onProcessors = always(IDLE);

/** An H100 80GB HBM3 of 700 W, driver 580.159.04. */
export const H100: Machine = { gpus: 1, nics: 0, limitWatts: 700, model: 'NVIDIA H100 80GB HBM3', tells: OTHER_PIPES };

/** What one H100 does while its container computes, waits or rests, after steps of bf16 products. */
export interface Load {
  readonly name: string;
  /** `measured`: its figures were read on that H100 or an H200. Otherwise they are assumed, on the low side. */
  readonly source: string;
  readonly work: Work;
  readonly isWaiting: boolean;
}

const MEASURED = 'measured on an H100 with driver 580.159.04';
const every =
  (period: number, share: number, on: Moment, off: Moment): Work =>
  (seconds) =>
    seconds % period < share * period ? on : off;

export const LOADS: readonly Load[] = [
  { name: 'FP32 in registers, 57.8 TFLOP/s', source: MEASURED, work: always({ busy: true, fp32: 0.86, watts: 358 }), isWaiting: false },
  // A driver or a reader that does not tell the pipe: the power is left.
  { name: 'FP32, of which only the power is seen', source: MEASURED, work: always({ busy: true, watts: 358 }), isWaiting: false },
  // Ten blocks on 132 multiprocessors draw little.
  { name: 'FP32 on a few multiprocessors', source: 'assumed', work: always({ busy: true, fp32: 0.05, watts: 150 }), isWaiting: false },
  { name: 'FP64', source: 'assumed', work: always({ busy: true, fp64: 0.9, watts: 420 }), isWaiting: false },
  {
    name: 'integer operations, as hashes need',
    source: 'assumed',
    work: always({ busy: true, integer: 0.6, watts: 300 }),
    isWaiting: false,
  },
  {
    name: 'integer operations at little power',
    source: 'assumed',
    work: always({ busy: true, integer: 0.3, watts: 150 }),
    isWaiting: false,
  },
  { name: 'copies on the device, 3.02 TB/s', source: MEASURED, work: always({ busy: true, dram: 0.9, watts: 420 }), isWaiting: false },
  {
    name: 'sparse inference: a request of 0.4 s every 20 s',
    source: 'assumed',
    work: every(20, 0.02, { busy: true, tensor: 0.05, fp16: 0.1, dram: 0.6, watts: 350, pcie: 1e6 }, H200.idleWithContext),
    isWaiting: false,
  },
  {
    name: 'inference that polls in a kernel between requests every 20 s',
    source: 'assumed',
    work: every(
      20,
      0.05,
      { busy: true, tensor: 0.05, fp16: 0.1, dram: 0.6, watts: 350, pcie: 1e6 },
      { busy: true, integer: 0.02, watts: 136 },
    ),
    isWaiting: false,
  },
  { name: 'data loading: copies from the host', source: 'measured on an H200', work: always(H200.copy), isWaiting: false },
  {
    name: 'data loading: video decoding beside a kernel that waits',
    source: 'assumed',
    work: always({ busy: true, decoder: 0.5, watts: 140 }),
    isWaiting: false,
  },
  { name: 'a notebook at rest', source: 'measured on an H200', work: always(H200.idleWithContext), isWaiting: false },
  { name: '24 blocks that wait for a flag', source: MEASURED, work: always({ busy: true, fp32: 1e-5, watts: 135 }), isWaiting: true },
  {
    name: 'NCCL that waits for a rank: its loop compares and counts',
    source: 'measured power; the integer pipe is assumed',
    work: always({ busy: true, integer: 0.04, dram: 4e-6, watts: 139 }),
    isWaiting: true,
  },
];
