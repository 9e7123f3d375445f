import type { ContainerAllocateResponse } from '../../generated/deviceplugin/v1beta1/api.ts';

/** A device in a container's hands or in the kubelet's stock. */
export interface SimulatedDevice {
  readonly resource: string;
  readonly id: string;
  /** Absent: the plugin sent no topology. Empty: it sent one without nodes, which makes the device vanish from the allocatable ones. */
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
  /** `sidecar` is a restartable init container; a plain init container holds devices and is never listed. */
  readonly kind?: 'app' | 'sidecar' | 'init';
  /** How many it wants of resources of plugins. */
  readonly wants?: readonly { readonly resource: string; readonly count: number }[];
  readonly devices?: readonly SimulatedDevice[];
  /** What plugins answered, by resource, for the checkpoint. */
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
  /** Exclusive CPUs of the pod as a whole: they overlap with those of its containers. */
  readonly podCpus?: readonly number[];
  /** Ended but not yet removed: v1 leaves it out, v1alpha1 lists it without devices. */
  readonly ended?: boolean;
  /** None of its containers runs, as after the reboot of a node. */
  readonly isDown?: boolean;
}

/** What the node can hand out in all. */
export interface SimulatedStock {
  readonly devices: readonly (SimulatedDevice & { readonly healthy?: boolean })[];
  /** Resources that are known though they may have no device. */
  readonly resources?: readonly string[];
  readonly cpus: readonly number[];
  readonly memory: readonly SimulatedMemory[];
}

export function podKey(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

/** The pods of a node. */
export interface SimulatedPods {
  /** A pod of the same name is replaced. */
  put(pod: SimulatedPod): void;
  remove(namespace: string, name: string): void;
  all(): readonly SimulatedPod[];
  /** Those that the kubelet tells of. */
  listed(): readonly SimulatedPod[];
  /** Those whose devices are not free. */
  holding(): readonly SimulatedPod[];
  /**
   * Frees what pods held that have ended, as happens before anything is listed or allocated. Gives the UIDs of the others; undefined
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
