/** Sizes and offsets of nvml.h. They are the same on x86-64 and arm64, little endian. */

/** Returns the first word of a versioned struct. A library that requires another version returns 25 (argument version mismatch). */
export const versionWord = (size: number, version: number): number => (size | (version << 24)) >>> 0;

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
