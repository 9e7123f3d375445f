import type { Machine, Moment } from './simulation.ts';
import { always, steps, type Work } from './simulation.ts';

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
