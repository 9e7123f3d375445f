import type { Problem } from '../../model/collection.ts';
import type { Failure } from './cell.ts';
import type { FabricFault, FabricHealth, FabricState, Recovery } from './states.ts';
import type { ValueKey, Values } from './values.ts';
import type { SurplusFault } from './wordings.ts';

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

/** A part of a sample that one call gives. */
export type Part = ValueKey | 'recovery' | 'fabric' | keyof EccSample | 'links' | 'peers';

/** Monotonic clock of the earlier read that gave each part which the present read kept; see `readMs` of a reading. */
export type KeptTimes = ReadonlyMap<Part, number>;

/** Result of one read of one GPU. A member is absent when the board, the driver or the permissions do not provide it. */
export interface GpuSample {
  readonly identity?: GpuIdentity;
  readonly values?: Values;
  readonly ecc?: EccSample;
  readonly fabric?: FabricSample;
  /** Recovery action that the driver reports. */
  readonly recovery?: Recovery | undefined;
  readonly processes?: ProcessList;
  readonly links?: readonly LinkSample[];
  /** Absent by `nvidia-smi`. */
  readonly linkStates?: LinkStates | undefined;
  /** GPUs of the node that this GPU reaches over NVLink, directly or through switches. */
  readonly peers?: readonly LinkPeer[];
  readonly instances?: readonly MigSample[];
  readonly unread?: readonly Unread[];
  /** Absent by `nvidia-smi`, which reads all values each time. */
  readonly times?: KeptTimes | undefined;
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
  readonly value: ValueKey | 'recovery' | 'fabric' | 'ecc' | 'instances';
  /** Path in `nvidia-smi -q -x`, for both sources. For messages only. */
  readonly name: string;
}

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
    | 'gspFirmware']?: string | undefined;
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
  readonly faults?: readonly FabricFault[] | undefined;
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
  readonly transmittedBytes?: number | undefined;
  readonly receivedBytes?: number | undefined;
  readonly errors?: Readonly<Record<string, number>>;
}

/** What the health of the links of a GPU is judged by. */
export interface LinkStates {
  /** Links whose state was read. */
  readonly links: readonly LinkState[];
  /** The state of each link was read. */
  readonly isComplete: boolean;
}

/** Remote end of a link to a switch. */
export const SWITCH_END = 'a switch';

export interface LinkState {
  readonly number: number;
  readonly isUp: boolean;
  /** Remote end: a PCI address, or {@link SWITCH_END}. */
  readonly end?: string | undefined;
  /** Absent when the board does not count errors of the link, or the link is down. */
  readonly errors?: LinkErrorMinutes | undefined;
}

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

/** Merges the samples of several answers. */
export const joined = (parts: readonly GpuSample[]): GpuSample => ({
  identity: Object.assign({}, ...parts.map(({ identity }) => identity)),
  values: Object.assign({}, ...parts.map(({ values }) => values)),
  ecc: Object.assign({}, ...parts.map(({ ecc }) => ecc)),
  fabric: Object.assign({}, ...parts.map(({ fabric }) => fabric)),
  recovery: parts.map(({ recovery }) => recovery).find((each) => each !== undefined),
  unread: parts.flatMap(({ unread = [] }) => unread),
});
