import type { Failure } from '../cell.ts';
import type { Place, Unread } from '../sample.ts';

/**
 * Kind of a return code. `absent` means no value and no fault; `flow` is a status for the caller; `device` is a fault of one GPU; `node`
 * concerns all GPUs. All other codes, including 999, are failures without a further reason.
 */
export type CodeKind = 'ok' | 'absent' | 'flow' | 'device' | 'node' | 'unknown';

/** The codes of `nvmlReturn_t` (nvml.h 13.3) that a reader can get. */
export const CODE = {
  success: 0,
  uninitialized: 1,
  invalidArgument: 2,
  notSupported: 3,
  noPermission: 4,
  notFound: 6,
  insufficientSize: 7,
  insufficientPower: 8,
  driverNotLoaded: 9,
  timeout: 10,
  irqIssue: 11,
  libraryNotFound: 12,
  functionNotFound: 13,
  corruptedInforom: 14,
  gpuIsLost: 15,
  resetRequired: 16,
  operatingSystem: 17,
  libraryMismatch: 18,
  versionMismatch: 25,
  gpuNotFound: 28,
  unknown: 999,
} as const;

const CODES: Readonly<Record<number, readonly [CodeKind, string]>> = {
  0: ['ok', 'Success'],
  1: ['node', 'Uninitialized'],
  2: ['flow', 'Invalid Argument'],
  3: ['absent', 'Not Supported'],
  4: ['absent', 'Insufficient Permissions'],
  5: ['flow', 'Already Initialized'],
  6: ['flow', 'Not Found'],
  7: ['flow', 'Insufficient Size'],
  8: ['device', 'Insufficient External Power'],
  9: ['node', 'Driver Not Loaded'],
  10: ['flow', 'Timeout'],
  11: ['device', 'Interrupt Request Issue'],
  12: ['node', 'NVML Shared Library Not Found'],
  13: ['absent', 'Function Not Found'],
  14: ['device', 'Corrupted infoROM'],
  15: ['device', 'GPU is lost'],
  16: ['device', 'GPU requires reset'],
  17: ['node', 'GPU access blocked by the operating system'],
  18: ['node', 'Driver/library version mismatch'],
  19: ['flow', 'In use by another client'],
  20: ['absent', 'Insufficient Memory'],
  21: ['absent', 'No data'],
  22: ['absent', 'ECC not supported by vGPU'],
  23: ['absent', 'Insufficient Resources'],
  24: ['absent', 'Frequency not supported'],
  25: ['flow', 'Argument version mismatch'],
  26: ['absent', 'Deprecated'],
  27: ['flow', 'Not ready'],
  28: ['node', 'GPU not found'],
  29: ['flow', 'Invalid state'],
  30: ['flow', 'Reset type not supported'],
};

export const kindOf = (code: number): CodeKind => CODES[code]?.[0] ?? 'unknown';

/** Returns the text of the library and of `nvidia-smi` for a code. */
export const textOf = (code: number): string => CODES[code]?.[1] ?? 'Unknown Error';

/** Returns why a call that fails with this code gives no value; undefined when there is no value, and no fault. */
export function failureOf(code: number): Failure | undefined {
  if (['ok', 'absent', 'flow'].includes(kindOf(code))) return undefined;
  return code === CODE.gpuIsLost ? 'lost' : code === CODE.resetRequired ? 'reset-required' : 'error';
}

/** Returns the values that a call with this code did not read. The text is that of `nvidia-smi`, found by comparison of its documents. */
export function unreadFor(code: number, places: readonly Place[]): readonly Unread[] {
  const kind = failureOf(code);
  return kind === undefined ? [] : places.map((place) => ({ ...place, kind, text: kind === 'error' ? 'Unknown Error' : textOf(code) }));
}
