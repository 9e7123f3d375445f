import type { Allocation } from './allocation.ts';
import type { DeviceProcess } from './collection.ts';
import type { DeviceActivity } from './device-activity.ts';
import type { ContainerWaiting } from './usage.ts';

/** A pod that holds or held a device. */
export interface HoldingPod {
  readonly namespace: string;
  readonly pod: string;
  /** Absent while neither the kubelet's checkpoint nor its Pods API has it. */
  readonly uid?: string;
}

/** The pods that hold a device, or that held it last. Plain data, saved over restarts. */
export interface LastHolders {
  readonly pods: readonly HoldingPod[];
  /** Wall clock at which the device was first seen without a holder; absent while it is held. */
  readonly endedAtMs?: number;
}

/**
 * A pod whose processes use a device that the kubelet does not name for it. It is a stranger, unless a holder of the device, or the id that
 * the pod itself has, delegates the use.
 */
export interface DeviceUser {
  readonly uid: string;
  /** Absent while nothing names the pod. */
  readonly namespace?: string;
  readonly pod?: string;
  readonly processes: readonly DeviceProcess[];
}

/** As containers are named in accounts and series. */
export type ContainerName = Pick<Allocation, 'namespace' | 'pod' | 'container' | 'resource'>;

/** The kubelet names no container and no resource for a user. Without the name of the pod, its UID takes that place. */
export const containerNameOf = ({ uid, namespace = '', pod = uid }: Omit<DeviceUser, 'processes'>): ContainerName => ({
  ...{ namespace, pod, container: '', resource: '' },
});

/** Says who uses devices that the kubelet does not name for them: schedulers that share devices by themselves. Patterns with `*`. */
export interface DelegationRules {
  /** Pods that hold a device for others: `namespace/pod`, or `label=value`. */
  readonly holders: readonly string[];
  /** Resources, or `resource:id`, whose ids do not tell which device the container uses. */
  readonly ids: readonly string[];
}

/**
 * Whom a process belongs to, compared with who holds the device.
 *
 * `holder`: its pod holds the device, a part of it or its parent. `delegate`: a pod that uses the device by delegation. `former`: its pod
 * held the device last, and no pod holds it now. `pod`: another pod, a stranger. `outside`: no pod. `unknown`: its cgroup or the UID of a
 * holder could not be read.
 */
export type ProcessOwner = 'holder' | 'delegate' | 'former' | 'pod' | 'outside' | 'unknown';

export interface OwnedProcess extends DeviceProcess {
  readonly owner: ProcessOwner;
  /** `namespace/pod`, or the UID where nothing names the pod; absent for a process outside pods. */
  readonly podName?: string;
}

/** What one device does and who holds it, from one current read. Plain data. */
export interface DeviceUse {
  /** Monotonic clock of the read. */
  readonly monotonicMs: number;
  /** Absent when the family declares no activity. */
  readonly activity?: DeviceActivity;
  /** Share of time of an engine up to which the device counts as idle; absent when the family has no engines. */
  readonly idleShare?: number;
  /** Only processes of holders have business on the device. */
  readonly isForHoldersOnly: boolean;
  /** The device contains other devices: a GPU that is split into instances. */
  readonly hasParts: boolean;
  /** The device is a part of another device. */
  readonly isPart: boolean;
  /** The kubelet answers, so holders are those of the present. */
  readonly areHoldersKnown: boolean;
  /** The read began after the present holders were first seen. An earlier read shows the processes of earlier holders. */
  readonly isReadWithHolders: boolean;
  /** Pods that hold the device itself, as `namespace/pod`, each once. */
  readonly holders: readonly string[];
  /** A pod holds the device, a part of it or its parent. */
  readonly isHeld: boolean;
  /** Absent while no holder was ever known. */
  readonly lastHolders?: LastHolders;
  /** Pods, as `namespace/pod`, that have one and the same id of the device plugin at once; absent: none. */
  readonly sameId?: readonly string[];
  /** Whether its container waits; absent while that is not judged. */
  readonly waiting?: Pick<ContainerWaiting, 'state' | 'sinceMs' | 'lastProgressMs' | 'stepSeconds'>;
  readonly processes: readonly OwnedProcess[];
  /** Nothing else uses the device. */
  readonly hasAllProcesses: boolean;
  /** Absent when it was not read. */
  readonly memoryUsedBytes?: number;
  /** State of each port that the device reports: true for up. */
  readonly ports: readonly boolean[];
  /** The family's own conditions say that the ports are down, or can say it after this read for the first time. */
  readonly isPortFaultTold: boolean;
}

/** What counts as allowed and as left behind. */
export interface UseLimits {
  /** Names of processes, cut as the kernel cuts them. */
  readonly allowed: ReadonlySet<string>;
  readonly dirtyBytes: number;
}
