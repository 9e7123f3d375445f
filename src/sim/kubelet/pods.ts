import type { ContainerAllocateResponse } from '../../generated/deviceplugin/v1beta1/api.ts';

/** A device of a container or of the kubelet's stock. */
export interface SimulatedDevice {
  readonly resource: string;
  readonly id: string;
  /** Absent: the plugin sent no topology. Empty: it sent a topology without nodes, so the device is missing in the allocatable devices. */
  readonly numaNodes?: readonly number[];
}

export interface SimulatedMemory {
  readonly type: string;
  readonly bytes: bigint;
  readonly numaNodes: readonly number[];
}

/** A ResourceClaim of a container with its prepared devices. */
export interface SimulatedClaim {
  readonly name: string;
  readonly namespace: string;
  readonly devices: readonly { readonly driver: string; readonly pool: string; readonly device: string; readonly shareId?: string }[];
}

export interface SimulatedContainer {
  readonly name: string;
  /** `sidecar` is a restartable init container. A plain init container holds devices but is never listed. */
  readonly kind?: 'app' | 'sidecar' | 'init';
  /** Requested counts of plugin resources. */
  readonly wants?: readonly { readonly resource: string; readonly count: number }[];
  readonly devices?: readonly SimulatedDevice[];
  /** Answers of the plugins for the checkpoint, keyed by resource. */
  readonly responses?: Readonly<Record<string, ContainerAllocateResponse>>;
  readonly cpus?: readonly number[];
  readonly memory?: readonly SimulatedMemory[];
  readonly claims?: readonly SimulatedClaim[];
}

export interface SimulatedPod {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly containers: readonly SimulatedContainer[];
  /** Exclusive CPUs of all containers of the pod; they overlap with those of its containers. */
  readonly podCpus?: readonly number[];
  /** True when the pod ended but is not removed: v1 omits it, v1alpha1 lists it without devices. */
  readonly ended?: boolean;
  /** True when none of its containers runs, as after a reboot of the node. */
  readonly isDown?: boolean;
}

/** All resources that the node can allocate. */
export interface SimulatedStock {
  readonly devices: readonly (SimulatedDevice & { readonly healthy?: boolean })[];
  /** Known resources, including those without devices. */
  readonly resources?: readonly string[];
  readonly cpus: readonly number[];
  readonly memory: readonly SimulatedMemory[];
}

export function podKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

/** The pods of a node. */
export interface SimulatedPods {
  /** Adds a pod, or replaces the pod of the same name. */
  put(pod: SimulatedPod): void;
  remove(namespace: string, name: string): void;
  all(): readonly SimulatedPod[];
  /** Returns the pods that the kubelet lists. */
  listed(): readonly SimulatedPod[];
  /** Returns the pods that hold devices. */
  holding(): readonly SimulatedPod[];
  /**
   * Frees the devices of ended pods, as the kubelet does before each list and allocation. Returns the UIDs of the other pods; undefined
   * while not all pods are known.
   */
  freeEnded(): readonly string[] | undefined;
}

export class PodsByName implements SimulatedPods {
  protected readonly byName = new Map<string, SimulatedPod>();

  put(pod: SimulatedPod): void {
    this.byName.set(podKey(pod.namespace, pod.name), pod);
  }

  remove(namespace: string, name: string): void {
    this.byName.delete(podKey(namespace, name));
  }

  all(): readonly SimulatedPod[] {
    return [...this.byName.values()];
  }

  listed(): readonly SimulatedPod[] {
    return this.all();
  }

  holding(): readonly SimulatedPod[] {
    return this.all();
  }

  freeEnded(): readonly string[] | undefined {
    for (const [key, pod] of this.byName) {
      if (pod.ended === true) this.byName.set(key, { ...pod, containers: pod.containers.map(withoutDevices) });
    }
    return this.all().flatMap(({ uid, ended }) => (ended === true ? [] : [uid]));
  }
}

const withoutDevices = ({ devices, responses, ...container }: SimulatedContainer): SimulatedContainer => container;
