import type { ContainerAllocateResponse } from '../../generated/deviceplugin/v1beta1/api.ts';
import type { PluginConnection } from './plugin-connection.ts';
import type { SimulatedDevice } from './pods.ts';
import { placed, type ResourceState } from './resource-states.ts';

/** Requests of one container at the admission of its pod. Later containers reuse the devices of plain init containers. */
export interface ContainerRequest {
  readonly container: string;
  readonly kind?: 'app' | 'sidecar' | 'init';
  readonly wants: readonly { readonly resource: string; readonly count: number }[];
  /** True when a restarted kubelet finds the container running; it then keeps its devices. */
  readonly isRunning?: boolean;
}

/** A pod to admit; its init containers and sidecars come first. */
export interface PodRequest {
  readonly podUid: string;
  readonly containers: readonly ContainerRequest[];
}

/** The devices of one resource that a container received. */
export interface ContainerGrant {
  readonly podUid: string;
  readonly container: string;
  readonly resource: string;
  readonly deviceIds: readonly string[];
  readonly devices: readonly SimulatedDevice[];
  readonly response: ContainerAllocateResponse;
}

export interface AllocationsDependencies {
  /** Undefined when no plugin has registered the resource. */
  state(resource: string): ResourceState | undefined;
  plugin(resource: string): PluginConnection | undefined;
}

/** Allocates devices of plugins to containers. */
export interface Allocations {
  /**
   * Allocates container by container. Fails with an {@link AdmissionError}; earlier allocations then stay. `onGrant`: called when a plugin has
   * answered; until then nobody sees the allocation.
   */
  admit(pod: PodRequest, onGrant?: (grant: ContainerGrant) => void): Promise<ContainerGrant[]>;
  release(podUid: string): void;
}

/** Why a pod is not admitted, with the kubelet's text. */
export class AdmissionError extends Error {
  readonly reason: 'UnexpectedAdmissionError' | 'TopologyAffinityError';

  constructor(reason: AdmissionError['reason'], message: string) {
    super(message);
    this.name = 'AdmissionError';
    this.reason = reason;
  }
}

export const refusal = (message: string): AdmissionError =>
  new AdmissionError('UnexpectedAdmissionError', `Allocate failed due to ${message}, which is unexpected`);

/** Devices that a plugin is asked to allocate. Nobody else gets them meanwhile, and no list has them. */
type Reservation = Pick<ContainerGrant, 'resource' | 'deviceIds'>;

/**
 * Allocates to each container the free devices that its plugin proposes. Ignores resources that no plugin has registered. Admissions of several
 * pods may overlap.
 */
export class PlainAllocations implements Allocations {
  readonly #parts: AllocationsDependencies;
  readonly #reserved = new Set<Reservation>();
  #grants: readonly ContainerGrant[] = [];

  constructor(parts: AllocationsDependencies) {
    this.#parts = parts;
  }

  async admit({ podUid, containers }: PodRequest, onGrant: (grant: ContainerGrant) => void = () => {}): Promise<ContainerGrant[]> {
    const grants: ContainerGrant[] = [];
    for (const { container, wants } of containers) {
      for (const { resource, count } of wants) {
        const state = this.#parts.state(resource);
        if (state === undefined || count === 0) continue;
        const grant = await this.#allocate(podUid, container, state, await this.#reserve(state, count));
        grants.push(grant);
        onGrant(grant);
      }
    }
    return grants;
  }

  release(podUid: string): void {
    this.#grants = this.#grants.filter((grant) => grant.podUid !== podUid);
  }

  /** What was free before the plugin proposed can be reserved for another pod after it. */
  async #reserve(state: ResourceState, count: number): Promise<Reservation> {
    const { resource } = state;
    const proposed = (await this.#parts.plugin(resource)?.prefer(this.#free(state, count), [], count)) ?? [];
    const free = this.#free(state, count);
    const inOrder = [...new Set([...proposed.filter((id) => free.includes(id)), ...free])];
    const reservation = { resource, deviceIds: inOrder.slice(0, count) };
    this.#reserved.add(reservation);
    return reservation;
  }

  #free({ resource, healthy }: ResourceState, count: number): readonly string[] {
    const taken = [...this.#grants, ...this.#reserved].flatMap((one) => (one.resource === resource ? one.deviceIds : []));
    const free = [...healthy].filter((id) => !taken.includes(id));
    if (free.length >= count) return free;
    throw refusal(`requested number of devices unavailable for ${resource}. Requested: ${count}, Available: ${free.length}`);
  }

  async #allocate(podUid: string, container: string, state: ResourceState, reservation: Reservation): Promise<ContainerGrant> {
    const { resource, deviceIds } = reservation;
    try {
      const response = await this.#parts.plugin(resource)?.allocate(deviceIds);
      if (response === undefined) throw refusal(`no healthy devices present; cannot allocate unhealthy devices ${resource}`);
      const devices = deviceIds.map((id) => placed(resource, id, state.devices.get(id)));
      const grant = { podUid, container, resource, deviceIds, devices, response };
      this.#grants = [...this.#grants, grant];
      return grant;
    } finally {
      this.#reserved.delete(reservation);
    }
  }
}
