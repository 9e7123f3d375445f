import type { Allocation } from './allocation.ts';

/** Why a query to the kubelet failed. Closed set: value of the label `reason`. */
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

/** Why a document of another program cannot be used. Closed set: value of the label `reason`. */
export const DOCUMENT_REASONS = ['not-a-file', 'too-large', 'unreadable', 'too-complex', 'too-slow'] as const;
export type DocumentReason = (typeof DOCUMENT_REASONS)[number];

/** Why a file of a DRA driver cannot be used. Closed set: value of the label `reason`. */
export const CLAIM_FILE_REASONS = [...DOCUMENT_REASONS, 'invalid'] as const;
export type ClaimFileReason = (typeof CLAIM_FILE_REASONS)[number];

/** Why the kubelet's checkpoint cannot be used. Closed set: value of the label `reason`. */
export const CHECKPOINT_REASONS = [...DOCUMENT_REASONS, 'timeout', 'not-a-checkpoint'] as const;
export type CheckpointReason = (typeof CHECKPOINT_REASONS)[number];

/** CPUs and memory that one pod holds exclusively. */
export interface PodExclusiveResources {
  readonly namespace: string;
  readonly pod: string;
  readonly cpus: readonly number[];
  readonly memory: readonly MemoryBlock[];
}

/** CPUs and memory that one container holds exclusively. They are parts of those of its pod, where the kubelet reports the pod's. */
export interface ExclusiveResources extends PodExclusiveResources {
  readonly container: string;
}

export interface MemoryBlock {
  /** `memory`, `hugepages-2Mi`, … */
  readonly type: string;
  readonly bytes: bigint;
  readonly numaNodes: readonly number[];
}

/** Everything that the kubelet can allocate: healthy devices, in use or not. */
export interface Allocatable {
  readonly devices: readonly { readonly resource: string; readonly deviceIds: readonly string[] }[];
  readonly cpus: readonly number[];
  readonly memory: readonly MemoryBlock[];
}

/** Latest answer of the kubelet, with its age and the present problem. */
export interface PodResources {
  /** API version in use; absent before the first answer. */
  readonly api?: 'v1' | 'v1alpha1';
  readonly allocations: readonly Allocation[];
  /** Keys of allocations that the last answer lacks but that are kept for the grace period after a kubelet restart. */
  readonly held: ReadonlySet<string>;
  readonly exclusive: readonly ExclusiveResources[];
  /** Pods with exclusive resources of their own, which contain those of their containers: never add the two. Since Kubernetes 1.37. */
  readonly podExclusive: readonly PodExclusiveResources[];
  readonly allocatable?: Allocatable;
  /** Monotonic time of the request that `allocatable` answers. */
  readonly allocatableAskedMs?: number;
  /** Wall clock of the last successful `List`; absent before the first. */
  readonly answeredAtMs?: number;
  /** The same on the monotonic clock. */
  readonly answeredMonotonicMs?: number;
  /** Present while queries to the kubelet fail, or while its answer is read only in part. */
  readonly problem?: { readonly reason: PodResourcesReason; readonly message: string };
}

/** Whether the kubelet says now who holds what. While it does not, a container that is not listed may go on. */
export const areHoldersKnown = ({ answeredAtMs, problem }: Pick<PodResources, 'answeredAtMs' | 'problem'>): boolean =>
  answeredAtMs !== undefined && problem === undefined;

/** Maps a pod's UID to its device ids, from the kubelet's device checkpoint. */
export interface CheckpointEntry {
  readonly podUid: string;
  readonly container: string;
  readonly resource: string;
  readonly deviceIds: readonly string[];
}

/** What the kubelet's Pods API says about one pod, beyond its name. */
export interface PodFacts {
  readonly namespace: string;
  readonly pod: string;
  readonly uid: string;
  /** `Pending`, `Running`, …; empty when the kubelet reports none. */
  readonly phase: string;
  /** Labels that the configuration asks for; absent when the pod has none of them. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Containers that were created, with init containers and sidecars. */
  readonly containers: readonly { readonly name: string /** Without the name of the runtime. */; readonly id: string }[];
  readonly extended?: readonly ExtendedResource[];
}

/** The only extended resource of a container, with the claim that serves it. */
export interface ExtendedResource {
  readonly container: string;
  readonly resource: string;
  /** Name of the claim that the scheduler made, in the namespace of the pod; absent before the kubelet lists it for the container. */
  readonly claim?: string;
}

/** With what the API server begins the name of a claim that it makes for a pod. {@link RANDOM_LENGTH} characters follow. */
export const claimBase = (pod: string, claim = EXTENDED): string => `${pod}-${claim}-`.slice(0, 58);
const EXTENDED = 'extended-resources';
const RANDOM_LENGTH = 5;

/** Whether a claim has the form of the one that the scheduler makes for the extended resources of a pod. */
export function isExtendedClaim(pod: string, claim: string): boolean {
  const base = claimBase(pod);
  return claim.length === base.length + RANDOM_LENGTH && claim.startsWith(base);
}

/** Maps `namespace` and `pod` to what is known of the pod. */
export type PodFactsByName = ReadonlyMap<string, PodFacts>;

export function podName({ namespace, pod }: Pick<PodFacts, 'namespace' | 'pod'>): string {
  return `${namespace}\u0000${pod}`;
}
