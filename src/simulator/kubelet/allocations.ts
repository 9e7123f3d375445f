import type { ContainerAllocateResponse } from '../../generated/deviceplugin/v1beta1/api.ts';
import type { PluginConnection } from './plugin-connection.ts';
import type { SimulatedDevice } from './pods.ts';
import { placed, type ResourceState } from './resource-states.ts';

/** One container's wishes at the admission of its pod. Plain init containers leave their devices to those that come after them. */
export interface ContainerRequest {
  readonly container: string;
  readonly kind?: 'app' | 'sidecar' | 'init';
  readonly wants: readonly { readonly resource: string; readonly count: number }[];
  /** The kubelet has just started and found it running: it is left alone. */
  readonly isRunning?: boolean;
}

/** A pod that is to be admitted; its init containers and sidecars come first. */
export interface PodRequest {
  readonly podUid: string;
  readonly containers: readonly ContainerRequest[];
}

/** What a container was given of one resource. */
export interface ContainerGrant {
  readonly podUid: string;
  readonly container: string;
  readonly resource: string;
  readonly deviceIds: readonly string[];
  readonly devices: readonly SimulatedDevice[];
  readonly response: ContainerAllocateResponse;
}

export interface AllocationsParts {
  /** Undefined when nobody has registered the resource. */
  state(resource: string): ResourceState | undefined;
  plugin(resource: string): PluginConnection | undefined;
}

/** Gives devices of plugins to containers. */
export interface Allocations {
  /** Container by container, as far as it comes. Fails with an {@link AdmissionError}. */
  admit(pod: PodRequest): Promise<ContainerGrant[]>;
  release(podUid: string): void;
}

/** Why a pod is not admitted, in the kubelet's words. */
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

/** Gives each container what its plugin proposes of the free devices. Resources that nobody has registered are passed over. */
export class PlainAllocations implements Allocations {
  readonly #parts: AllocationsParts;
  #grants: readonly ContainerGrant[] = [];

  constructor(parts: AllocationsParts) {
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
