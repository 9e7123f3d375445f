import type { Problem } from '../../model/collection.ts';
import type { SurplusFault } from './smi.ts';
import type { FabricHealth, FabricState, Recovery } from './states.ts';
import type { Values } from './values.ts';

/** What one look told of the node, by whichever way. */
export interface NodeSample {
  /** The way, for people. */
  readonly source: string;
  readonly driver?: string | undefined;
  readonly cudaVersion?: string | undefined;
  /** How many GPUs the driver has, by its own word; 0 where it does not say. */
  readonly announced: number;
  readonly gpus: readonly GpuSample[];
  /** GPUs of which only an address is known, and what is wrong with them. */
  readonly faults: readonly SurplusFault[];
  readonly problems: readonly Problem[];
  /** False where a GPU from before may be there and is not named. */
  readonly isComplete: boolean;
  readonly problem?: undefined;
}

/** What one look told of one GPU, by whichever way. What is not told is absent: this board, this driver, these rights do not tell it. */
export interface GpuSample {
  readonly identity?: GpuIdentity;
  readonly values?: Values;
  readonly ecc?: EccSample;
  readonly fabric?: FabricSample;
  /** What the driver asks for. */
  readonly recovery?: Recovery | undefined;
  readonly processes?: ProcessList;
  readonly links?: readonly LinkSample[];
  /** GPUs of the node that it reaches over NVLink, directly or through switches. */
  readonly peers?: readonly LinkPeer[];
  readonly instances?: readonly MigSample[];
  readonly unread?: readonly Unread[];
}

/** What one look told of one MIG instance. */
export interface MigSample extends Pick<GpuSample, 'values' | 'ecc' | 'unread'> {
  readonly index?: string | undefined;
  readonly gpuInstance: string;
  readonly computeInstance: string;
  /** Absent while the driver does not tell it. */
  readonly name?: MigName | undefined;
}

/** By what a container asks for an instance. */
export interface MigName {
  readonly uuid: string;
  /** `1g.10gb`. */
  readonly profile: string;
}

/** What the driver said in the place of a value. */
export interface Unread {
  /** Where `nvidia-smi -q -x` has the value, by whichever way it was asked for. */
  readonly name: string;
  readonly said: string;
  /** `error`: the driver failed to read the value. `unknown`: nobody knows what the words mean. */
  readonly kind: 'lost' | 'error' | 'unknown';
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
  /** Since the driver was loaded, by memory. */
  readonly volatile?: readonly EccCount[];
  /** In the life of the board. */
  readonly lifetime?: readonly EccCount[];
}

/** Errors of one severity in one memory. */
export interface EccCount {
  readonly severity: EccSeverity;
  readonly location: string;
  /** Absent where the driver failed to tell it, so that no sum can be made. */
  readonly count?: bigint;
}

/** Undefined when the board counts none of that severity, or one of the counts could not be read. */
export function totalOf(counts: readonly EccCount[] = [], severity: EccSeverity): bigint | undefined {
  const values = counts.filter((each) => each.severity === severity).map(({ count }) => count);
  if (values.length === 0 || values.includes(undefined)) return undefined;
  return values.reduce<bigint>((sum, value) => sum + (value ?? 0n), 0n);
}

export interface FabricSample {
  readonly state?: FabricState | undefined;
  /** How the registration ended, in the driver's words. */
  readonly status?: string | undefined;
  readonly health?: FabricHealth | undefined;
}

export interface ProcessList {
  /** Absent where the driver does not tell of all of them. */
  readonly count?: number;
  readonly list: readonly ProcessSample[];
}

export interface ProcessSample {
  readonly pid: number;
  readonly memoryBytes?: number | undefined;
  /** Present for a process inside a MIG instance. */
  readonly gpuInstance?: string | undefined;
  readonly computeInstance?: string | undefined;
  /** Share of its time that each engine spent on it. */
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

export interface LinkPeer {
  readonly uuid: string;
  readonly links: number;
}

/** What the answers to several questions told, together. */
export const joined = (parts: readonly GpuSample[]): GpuSample => ({
  identity: Object.assign({}, ...parts.map(({ identity }) => identity)),
  values: Object.assign({}, ...parts.map(({ values }) => values)),
  ecc: Object.assign({}, ...parts.map(({ ecc }) => ecc)),
  fabric: Object.assign({}, ...parts.map(({ fabric }) => fabric)),
  recovery: parts.map(({ recovery }) => recovery).find((each) => each !== undefined),
  unread: parts.flatMap(({ unread = [] }) => unread),
});
