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
  /** Allocates container by container. Fails with an {@link AdmissionError}; earlier allocations then stay. */
  admit(pod: PodRequest): Promise<ContainerGrant[]>;
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

/** Allocates to each container the free devices that its plugin proposes. Ignores resources that no plugin has registered. */
export class PlainAllocations implements Allocations {
  readonly #parts: AllocationsDependencies;
  #grants: readonly ContainerGrant[] = [];

  constructor(parts: AllocationsDependencies) {
    this.#parts = parts;
  }

  async admit({ podUid, containers }: PodRequest): Promise<ContainerGrant[]> {
    const grants: ContainerGrant[] = [];
    for (const { container, wants } of containers) {
      for (const { resource, count } of wants) {
        const state = this.#parts.state(resource);
        if (state === undefined || count === 0) continue;
        const deviceIds = await this.#choose(state, count);
        grants.push(await this.#allocate(podUid, container, state, deviceIds));
      }
    }
    return grants;
  }

  release(podUid: string): void {
    this.#grants = this.#grants.filter((grant) => grant.podUid !== podUid);
  }

  async #choose({ resource, healthy }: ResourceState, count: number): Promise<readonly string[]> {
    const held = new Set(this.#grants.flatMap((grant) => (grant.resource === resource ? grant.deviceIds : [])));
    const free = [...healthy].filter((id) => !held.has(id));
    if (free.length < count) {
      throw refusal(`requested number of devices unavailable for ${resource}. Requested: ${count}, Available: ${free.length}`);
    }
    const proposed = (await this.#parts.plugin(resource)?.prefer(free, [], count)) ?? [];
    return [...new Set([...proposed, ...free])].slice(0, count);
  }

  async #allocate(podUid: string, container: string, state: ResourceState, deviceIds: readonly string[]): Promise<ContainerGrant> {
    const { resource } = state;
    const response = await this.#parts.plugin(resource)?.allocate(deviceIds);
    if (response === undefined) throw refusal(`no healthy devices present; cannot allocate unhealthy devices ${resource}`);
    const devices = deviceIds.map((id) => placed(resource, id, state.devices.get(id)));
    const grant = { podUid, container, resource, deviceIds, devices, response };
    this.#grants = [...this.#grants, grant];
    return grant;
  }
}
