import type { Problem } from '../../model/collection.ts';
import type { Remedy, Severity } from '../../model/health.ts';
import type { ProblemCode } from './declaration.ts';
import type { ValueKey, Values } from './values.ts';

/** Result of one read of the node, from the library or from `nvidia-smi`. */
export interface NodeSample {
  /** Name of the source for messages. */
  readonly source: string;
  readonly driver?: string | undefined;
  readonly cudaVersion?: string | undefined;
  /** Number of GPUs that the driver announces; 0 when it does not announce it. */
  readonly announced: number;
  readonly gpus: readonly GpuSample[];
  /** Faults of GPUs of which only the address or the index is known. */
  readonly faults: readonly SurplusFault[];
  /** Addresses of GPUs that are left out because an earlier call hangs. */
  readonly hung?: readonly string[];
  readonly problems: readonly Problem[];
  readonly problem?: undefined;
}

/** Why a source read nothing. */
export interface ReadFailure {
  readonly problem: { readonly code: ProblemCode; readonly message: string };
  /** Lines that the command printed in place of a document. */
  readonly surplus: string;
}

/**
 * A fault of one GPU that a text of the driver reports. `lost`: the driver cannot reach it. `closed`: the reader has no permission to open it.
 * `inforom`: its infoROM is damaged.
 */
export interface SurplusFault {
  /** Normalized PCI address; absent when the text does not have it. */
  readonly pciAddress?: string;
  /** Number of the GPU in the order of the driver, which is that of the addresses. */
  readonly index?: number;
  readonly fault: 'lost' | 'inforom' | 'closed';
  readonly line: string;
  /** Problem code of the GPU. */
  readonly problem: ProblemCode;
}

/** A part of a sample that one call gives. */
export type Part = ValueKey | 'recovery' | 'fabric' | keyof EccSample | 'links' | 'peers';

/** Monotonic clock of the earlier read that gave each part which the present read kept; see `readMs` of a reading. */
export type PartTimes = ReadonlyMap<Part, number>;

/** Result of one read of one GPU. A member is absent when the board, the driver or the permissions do not provide it. */
export interface GpuSample {
  readonly identity?: GpuIdentity;
  readonly values?: Values;
  readonly ecc?: EccSample;
  readonly fabric?: FabricSample;
  /** Recovery action that the driver reports. */
  readonly recovery?: Recovery | undefined;
  /** True when the driver has checked the infoROM, and it is sound. */
  readonly isInforomSound?: boolean | undefined;
  readonly processes?: ProcessList;
  /** NVLinks whose state was read. Absent by `nvidia-smi`. */
  readonly links?: readonly LinkSample[];
  /** The state of each link was read. */
  readonly hasAllLinks?: boolean;
  /** GPUs of the node that this GPU reaches over NVLink, directly or through switches. */
  readonly peers?: readonly LinkPeer[];
  readonly instances?: readonly MigSample[];
  readonly unread?: readonly Unread[];
  /** Absent by `nvidia-smi`, which reads all values each time. */
  readonly times?: PartTimes | undefined;
}

/** Result of one read of one MIG instance. */
export interface MigSample extends Pick<GpuSample, 'values' | 'ecc' | 'unread' | 'times'> {
  readonly index?: string | undefined;
  readonly gpuInstance: string;
  readonly computeInstance: string;
  /** Absent while it is unknown. */
  readonly name?: MigName | undefined;
  /** The driver failed to list the instances, or to name this one: it is known from an earlier read, and may have been made again since. */
  readonly isUnlisted?: boolean;
}

/** Names with which a container requests an instance. */
export interface MigName {
  readonly uuid: string;
  /** `1g.10gb`. */
  readonly profile: string;
}

/** Value, or another part of a sample, that may be unreadable. */
export interface Place {
  readonly value: ValueKey | 'recovery' | 'fabric' | 'ecc' | 'inforom' | 'instances';
  /** Path in `nvidia-smi -q -x`, for both sources. For messages only. */
  readonly name: string;
}

/** Why a value has no answer: the GPU is lost, it answers only after a reset, or the driver failed for another reason. */
export type Failure = 'lost' | 'reset-required' | 'error';

/** A value that the driver did not provide although the board has it. */
export interface Unread extends Place {
  /** `unknown`: the meaning of the driver's text is unknown. */
  readonly kind: Failure | 'unknown';
  /** Text of `nvidia-smi` in place of the value. For messages only. */
  readonly text: string;
}

/** Texts as the driver writes them. */
export type GpuIdentity = {
  readonly [name in
    | 'busId'
    | 'pciDeviceId'
    | 'uuid'
    | 'name'
    | 'serial'
    | 'minor'
    | 'moduleId'
    | 'brand'
    | 'architecture'
    | 'vbios'
    | 'boardPart'
    | 'gpuPart'
    | 'computeMode'
    | 'virtualization'
    | 'gspFirmware'
    | 'chassis'
    | 'slot'
    | 'tray'
    | 'host']?: string | undefined;
};

export const SEVERITIES = ['correctable', 'uncorrectable'] as const;
export type EccSeverity = (typeof SEVERITIES)[number];

export interface EccSample {
  /** Errors of each memory since the driver was loaded. */
  readonly volatile?: readonly EccCount[];
  /** Errors of each memory in the lifetime of the board. */
  readonly lifetime?: readonly EccCount[];
}

/** Errors of one severity in one memory. */
export interface EccCount {
  readonly severity: EccSeverity;
  readonly location: string;
  /** Absent when the driver failed to read it; then there is no total. */
  readonly count?: bigint;
}

/** Returns undefined when the board does not count this severity, or when one of the counts could not be read. */
export function totalOf(counts: readonly EccCount[] = [], severity: EccSeverity): bigint | undefined {
  const values = counts.filter((each) => each.severity === severity).map(({ count }) => count);
  if (values.length === 0 || values.includes(undefined)) return undefined;
  return values.reduce<bigint>((sum, value) => sum + (value ?? 0n), 0n);
}

export interface FabricSample {
  readonly state?: FabricState | undefined;
  /** Result of the registration, as the driver prints it. */
  readonly status?: string | undefined;
  /** True when the registration has ended without success. */
  readonly hasFailed?: boolean;
  readonly health?: FabricHealth | undefined;
  /** Faults that the health mask names, the worst first; empty when it says that there is none. Absent when no mask was read. */
  readonly faults?: readonly FabricFault[];
  /** Whether the GPU sees each fault of the mask, of those that it tells. */
  readonly told?: Readonly<Record<string, boolean>>;
  /** Number of the group of GPUs that reach each other, and UUID of the domain. Absent before the registration has ended. */
  readonly clique?: string | undefined;
  readonly cluster?: string | undefined;
}

export interface ProcessList {
  /** Absent when the driver does not list all processes. */
  readonly count?: number;
  readonly list: readonly ProcessSample[];
}

export interface ProcessSample {
  readonly pid: number;
  readonly memoryBytes?: number | undefined;
  /** Present for a process inside a MIG instance. */
  readonly gpuInstance?: string | undefined;
  readonly computeInstance?: string | undefined;
  /** Its kernels run through an MPS server. */
  readonly isMpsClient?: true;
  /** Share of the time of each engine that the process used, keyed by engine. */
  readonly utilizationRatio?: Readonly<Record<string, number>> | undefined;
}

/** One NVLink. */
export interface LinkSample {
  readonly number: number;
  readonly isUp: boolean;
  readonly bytesPerSecond?: number | undefined;
  readonly transmittedBytes?: number | undefined;
  readonly receivedBytes?: number | undefined;
  /** Counters by kind. */
  readonly errors?: Readonly<Record<string, number>>;
  /** Remote end: a PCI address, or {@link SWITCH_END}. */
  readonly end?: string | undefined;
  /** Absent when the board does not count errors of the link, or the link is down. */
  readonly errorMinutes?: LinkErrorMinutes | undefined;
}

/** Remote end of a link to a switch. */
export const SWITCH_END = 'a switch';

/** Errors a second of one kind that are a fault of the link by themselves. DCGM has this limit for CRC errors. */
export const INTENSE_PER_SECOND = 100;

/** Minutes with new errors of one link since the library was opened. They never fall. */
export interface LinkErrorMinutes {
  /** Absent while the driver has counted no error. */
  readonly minutes?: number | undefined;
  /** Minutes with a new recovery, successful or not. Absent while the driver has counted none. */
  readonly recoveryMinutes?: number | undefined;
  /** Kinds of the latest errors. */
  readonly kinds: readonly string[];
  /** New errors a second of the most frequent kind between the last two reads. Absent at the first read. */
  readonly perSecond?: number;
}

/** A GPU that another GPU reaches over NVLink. */
export interface LinkPeer {
  readonly uuid: string;
  readonly links: number;
  /** Absent by `nvidia-smi`. */
  readonly pciAddress?: string;
  /** Whether programs can use the memory of the peer over NVLink. Absent when the driver did not say. */
  readonly hasAccess?: boolean | undefined;
}

/** States of the registration with the NVLink fabric, and its healths. Their numbers in nvml.h are the positions, from 1 on. */
export const FABRIC_STATES = ['not_started', 'in_progress', 'completed'] as const;
export const FABRIC_HEALTHS = ['healthy', 'unhealthy', 'limited_capacity'] as const;
export type FabricState = (typeof FABRIC_STATES)[number];
type FabricHealth = (typeof FABRIC_HEALTHS)[number];

/**
 * Faults that the health mask of the registration names, the worst first. A reset helps only where the routes of this GPU are wrong: the others
 * are to be repaired where the fabric is managed, or end by themselves.
 */
export const FABRIC_FAULTS = [
  { fault: 'route_unhealthy', ...means('RouteUnhealthy', 'fatal', 'reset', 'a route of the GPU is unhealthy') },
  { fault: 'no_partition', ...means('NoPartition', 'fatal', 'inspect', 'the fabric manager has given the GPU no partition') },
  { fault: 'too_few_nvlinks', ...means('TooFewNvLinks', 'fatal', 'inspect', 'the GPU has too few NVLinks') },
  { fault: 'system_guid', ...means('WrongConfiguration', 'fatal', 'inspect', 'the GUID of the system is wrong') },
  { fault: 'chassis_serial', ...means('WrongConfiguration', 'fatal', 'inspect', 'the serial number of the chassis is wrong') },
  { fault: 'gpu_firmware', ...means('WrongConfiguration', 'fatal', 'inspect', 'the firmware of the GPU does not fit the fabric') },
  { fault: 'gpu_location', ...means('WrongConfiguration', 'fatal', 'inspect', 'the location of the GPU is wrong') },
  { fault: 'gpu_state', ...means('WrongConfiguration', 'fatal', 'inspect', 'the state of the GPU does not fit the fabric') },
  { fault: 'configuration', ...means('WrongConfiguration', 'fatal', 'inspect', 'the configuration is wrong') },
  { fault: 'route_recovery', ...means('RouteRecovery', 'degraded', 'inspect', 'a recovery of routes is running') },
  {
    fault: 'access_timeout_recovery',
    ...means('AccessTimeoutRecovery', 'degraded', 'inspect', 'a recovery of an access timeout is running'),
  },
  { fault: 'degraded_bandwidth', ...means('DegradedBandwidth', 'degraded', 'inspect', 'the bandwidth is degraded') },
] as const;
type FabricFault = (typeof FABRIC_FAULTS)[number];

function means<R extends string>(reason: R, severity: Severity, remedy: Remedy, meaning: string) {
  return { reason, severity, remedy, meaning } as const;
}

/**
 * Actions that the driver asks for. Their numbers in `nvmlDeviceGpuRecoveryAction_t` of nvml.h, in the field of the library and in Xid 154,
 * are the positions. `word` is the text of `nvidia-smi`. Some drivers of the 570 and 580 branches print `oldWord`.
 */
export const RECOVERY_ACTIONS = [
  { action: 'none', word: 'None' },
  { action: 'gpu_reset', word: 'GPU Reset', oldWord: 'Reset', ...needs('GpuReset', 'fatal', 'reset', 'a reset of the GPU') },
  { action: 'node_reboot', word: 'Node Reboot', oldWord: 'Reboot', ...needs('NodeReboot', 'fatal', 'reboot', 'a reboot of the node') },
  { action: 'drain_p2p', word: 'Drain P2P', ...needs('DrainP2p', 'degraded', 'restart-workload', 'an end of all peer-to-peer workloads') },
  {
    action: 'drain_and_reset',
    word: 'Drain and Reset',
    ...needs('DrainAndReset', 'fatal', 'reset', 'an end of its workloads and then a reset of the GPU'),
  },
  {
    action: 'recover_imex_domain',
    word: 'Recover IMEX Domain',
    oldWord: 'IMEX Domain Recovery',
    ...needs('RecoverImexDomain', 'degraded', 'inspect', 'a recovery of the IMEX domain'),
  },
  { action: 'bus_reset', word: 'Bus Reset', ...needs('BusReset', 'fatal', 'reset', 'a reset of the bus') },
  { action: 'system_reboot', word: 'System Reboot', ...needs('SystemReboot', 'fatal', 'reboot', 'a reboot of the whole system') },
] as const;
export type RecoveryAction = (typeof RECOVERY_ACTIONS)[number];

function needs<R extends string>(reason: R, severity: Severity, remedy: Remedy, meaning: string) {
  return { need: { reason, severity, remedy }, meaning } as const;
}

/** Recovery action that the driver reports. */
export interface Recovery {
  /** Text as the driver prints it. */
  readonly word: string;
  /** Absent when the action is unknown. */
  readonly action?: RecoveryAction | undefined;
}

/**
 * Combines the recovery action with two flags, which the 535 to 570 branches print instead. When both are present, the one that
 * requests an action has priority.
 */
export function combinedRecovery(printed: Recovery | undefined, reset: boolean | undefined, drain?: boolean): Recovery | undefined {
  if (printed !== undefined && printed.action?.action !== 'none') return printed;
  if (reset === true) return { word: 'gpu reset', action: RECOVERY_ACTIONS[1] };
  if (drain === true) return { word: 'drain and reset', action: RECOVERY_ACTIONS[4] };
  return printed ?? ((reset ?? drain) === undefined ? undefined : { word: 'none', action: RECOVERY_ACTIONS[0] });
}
