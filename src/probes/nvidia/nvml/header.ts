import type { Failure, Place, Unread } from '../sample.ts';

/**
 * Kind of a return code. `absent` means no value and no fault; `flow` is a status for the caller; `device` is a fault of one GPU; `node`
 * concerns all GPUs. All other codes, including 999, are failures without a further reason.
 */
type CodeKind = 'ok' | 'absent' | 'flow' | 'device' | 'node' | 'unknown';

/** The codes of `nvmlReturn_t` (nvml.h 13.3), with the text of the library and of `nvidia-smi` for each. */
const CODES = {
  success: [0, 'ok', 'Success'],
  uninitialized: [1, 'node', 'Uninitialized'],
  invalidArgument: [2, 'flow', 'Invalid Argument'],
  notSupported: [3, 'absent', 'Not Supported'],
  noPermission: [4, 'absent', 'Insufficient Permissions'],
  alreadyInitialized: [5, 'flow', 'Already Initialized'],
  notFound: [6, 'flow', 'Not Found'],
  insufficientSize: [7, 'flow', 'Insufficient Size'],
  insufficientPower: [8, 'device', 'Insufficient External Power'],
  driverNotLoaded: [9, 'node', 'Driver Not Loaded'],
  timeout: [10, 'flow', 'Timeout'],
  irqIssue: [11, 'device', 'Interrupt Request Issue'],
  libraryNotFound: [12, 'node', 'NVML Shared Library Not Found'],
  functionNotFound: [13, 'absent', 'Function Not Found'],
  corruptedInforom: [14, 'device', 'Corrupted infoROM'],
  gpuIsLost: [15, 'device', 'GPU is lost'],
  resetRequired: [16, 'device', 'GPU requires reset'],
  operatingSystem: [17, 'node', 'GPU access blocked by the operating system'],
  libraryMismatch: [18, 'node', 'Driver/library version mismatch'],
  inUse: [19, 'flow', 'In use by another client'],
  memory: [20, 'absent', 'Insufficient Memory'],
  noData: [21, 'absent', 'No data'],
  vgpuEccNotSupported: [22, 'absent', 'ECC not supported by vGPU'],
  insufficientResources: [23, 'absent', 'Insufficient Resources'],
  freqNotSupported: [24, 'absent', 'Frequency not supported'],
  versionMismatch: [25, 'flow', 'Argument version mismatch'],
  deprecated: [26, 'absent', 'Deprecated'],
  notReady: [27, 'flow', 'Not ready'],
  gpuNotFound: [28, 'node', 'GPU not found'],
  invalidState: [29, 'flow', 'Invalid state'],
  resetTypeNotSupported: [30, 'flow', 'Reset type not supported'],
  unknown: [999, 'unknown', 'Unknown Error'],
} as const satisfies Readonly<Record<string, readonly [code: number, kind: CodeKind, text: string]>>;
export const CODE = Object.fromEntries(Object.entries(CODES).map(([name, [code]]) => [name, code])) as {
  readonly [name in keyof typeof CODES]: (typeof CODES)[name][0];
};
const BY_CODE = new Map<number, readonly [code: number, kind: CodeKind, text: string]>(Object.values(CODES).map((row) => [row[0], row]));

export const kindOf = (code: number): CodeKind => BY_CODE.get(code)?.[1] ?? 'unknown';

export const textOf = (code: number): string => BY_CODE.get(code)?.[2] ?? 'Unknown Error';

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

// Sizes and offsets of nvml.h. They are the same on x86-64 and arm64, little endian.

/** Returns the first word of a versioned struct. A library that requires another version returns 25 (argument version mismatch). */
const versionWord = (size: number, version: number): number => (size | (version << 24)) >>> 0;

/** All ones in a 32-bit field: no instance. */
export const NO_INSTANCE = 0xffff_ffff;

export const PCI_INFO = { size: 68, domain: 16, deviceId: 28, busId: 36, busIdLength: 32 } as const;
export const MEMORY = { size: 24, total: 0, free: 8, used: 16 } as const;
export const MEMORY_V2 = { size: 40, version: versionWord(40, 2), total: 8, reserved: 16, free: 24, used: 32 } as const;
export const UTILIZATION = { size: 8, gpu: 0, memory: 4 } as const;
/** `nvmlProcessInfo_t`, versions 2 and 3. Memory is all ones when it is unknown. */
export const PROCESS = { size: 24, pid: 0, memory: 8, gpuInstance: 16, computeInstance: 20 } as const;
/** `nvmlProcessUtilizationSample_t`. */
export const PROCESS_SAMPLE = { size: 32, pid: 0, timestamp: 8, engines: { gpu: 16, memory: 20, encoder: 24, decoder: 28 } } as const;
/** `nvmlProcessUtilizationInfo_v1_t`; `PROCESS_SHARES` is the struct that points to a list of them. */
export const PROCESS_SHARE = {
  size: 40,
  pid: 8,
  timestamp: 0,
  engines: { gpu: 12, memory: 16, encoder: 20, decoder: 24, jpeg: 28, ofa: 32 },
} as const;
export const PROCESS_SHARES = { size: 24, version: versionWord(24, 1), count: 4, since: 8, list: 16 } as const;
export const ATTRIBUTES = { size: 40, multiprocessors: 0 } as const;
export const FIELD = { size: 40, id: 0, scope: 4, type: 24, code: 28, value: 32 } as const;
export const EVENT = { size: 32, device: 0, type: 8, data: 16, gpuInstance: 24, computeInstance: 28 } as const;
/** `nvmlSystemEventSetCreateRequest_v1_t` and `nvmlSystemEventSetFreeRequest_v1_t`. */
export const SYSTEM_EVENT_SET = { size: 16, version: versionWord(16, 1), set: 8 } as const;
/** `nvmlSystemRegisterEventRequest_v1_t`. */
export const SYSTEM_REGISTER = { size: 24, version: versionWord(24, 1), types: 8, set: 16 } as const;
/** `nvmlSystemEventSetWaitRequest_v1_t`; `SYSTEM_EVENT` is an element of the list that it points to. */
export const SYSTEM_EVENT_WAIT = { size: 32, version: versionWord(32, 1), set: 8, events: 16, room: 24, count: 28 } as const;
export const SYSTEM_EVENT = { size: 16, type: 0 } as const;
export const REMAP_HISTOGRAM = { size: 20, max: 0, high: 4, partial: 8, low: 12, none: 16 } as const;
export const SRAM_STATUS = {
  size: 104,
  version: versionWord(104, 1),
  l2: 56,
  sm: 64,
  pcie: 72,
  microcontroller: 80,
  other: 88,
  thresholdExceeded: 96,
} as const;
export const TEMPERATURE = { size: 12, version: versionWord(12, 1), sensor: 4, value: 8 } as const;
export const MARGIN = { size: 8, version: versionWord(8, 1), value: 4 } as const;
export const REPAIR = { size: 12, version: versionWord(12, 1), channel: 4, tpc: 8 } as const;
/** Version 1 has another meaning of its serial number. */
export const PLATFORM = { size: 44, version: versionWord(44, 2), chassis: 20, chassisLength: 16, slot: 36, tray: 37, host: 38 } as const;
/** `nvmlGridLicensableFeatures_v4_t`. */
export const LICENCES = { count: 4, list: 8, size: 284, state: 4, most: 3 } as const;
/** `NVML_GPU_VIRTUALIZATION_MODE_VGPU` */
export const VGPU_MODE = 2;
export const FABRIC_V1 = { cluster: 0, status: 16, clique: 20, state: 24 } as const;
export const FABRIC_V2 = { size: 36, version: versionWord(36, 2), cluster: 4, status: 20, clique: 24, state: 28, healthMask: 32 } as const;
export const FABRIC_V3 = {
  size: 40,
  version: versionWord(40, 3),
  cluster: 4,
  status: 20,
  clique: 24,
  state: 28,
  healthMask: 32,
  healthSummary: 36,
} as const;
export const GPM_SUPPORT = { size: 8, version: 1, isSupported: 4 } as const;
export const GPM_METRIC = { size: 40, id: 0, code: 4, value: 8 } as const;
export const GPM_GET = { header: 24, version: 1, count: 4, sample1: 8, sample2: 16 } as const;
