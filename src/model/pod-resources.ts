import type { Allocation } from './allocation.ts';

/** Why the kubelet could not be asked. Closed set: value of the label `reason`. */
export const POD_RESOURCES_REASONS = [
  'socket-missing',
  'refused',
  'permission-denied',
  'not-a-socket',
  'timeout',
  'protocol-error',
  'too-large',
  'rate-limited',
  'unimplemented',
  'other',
] as const;
export type PodResourcesReason = (typeof POD_RESOURCES_REASONS)[number];

/** CPUs and memory that one container has for itself. */
export interface ExclusiveResources {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly cpus: readonly number[];
  readonly memory: readonly MemoryBlock[];
}

export interface MemoryBlock {
  /** `memory`, `hugepages-2Mi`, … */
  readonly type: string;
  readonly bytes: bigint;
  readonly numaNodes: readonly number[];
}

/** What the kubelet can hand out in all: healthy devices, in use or not. */
export interface Allocatable {
  readonly devices: readonly { readonly resource: string; readonly deviceIds: readonly string[] }[];
  readonly cpus: readonly number[];
  readonly memory: readonly MemoryBlock[];
}

/** The latest word of the kubelet, and how good it is. */
export interface PodResources {
  /** API version in use; absent before the first answer. */
  readonly api?: 'v1' | 'v1alpha1';
  readonly allocations: readonly Allocation[];
  /** Keys of the allocations that the last answer no longer had but that are kept for the grace after a kubelet restart. */
  readonly held: ReadonlySet<string>;
  readonly exclusive: readonly ExclusiveResources[];
  readonly allocatable?: Allocatable;
  /** Wall clock of the question that `allocatable` answers. */
  readonly allocatableAskedMs?: number;
  /** Wall clock of the last good `List`; absent before the first. */
  readonly answeredAtMs?: number;
  /** Present while the kubelet cannot be asked. */
  readonly problem?: { readonly reason: PodResourcesReason; readonly message: string };
}

/** Ties a pod's UID to what it holds, from the kubelet's device checkpoint. */
export interface CheckpointEntry {
  readonly podUid: string;
  readonly container: string;
  readonly resource: string;
  readonly deviceIds: readonly string[];
}
