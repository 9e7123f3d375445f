import type { ContainerAllocateResponse } from '../../generated/deviceplugin/v1beta1/api.ts';
import { type ResourceState, usableDevices } from './capacity.ts';
import { AdmissionError, chooseDevices, refusal } from './device-choice.ts';
import type { PluginConnection } from './plugin-connection.ts';
import { hintsFor, mergeHints, type NodeMask, type TopologyPolicy, type Wish } from './topology-hints.ts';

/** One container's wishes at the admission of its pod. Plain init containers leave their devices to those that come after them. */
export interface ContainerRequest {
  readonly podUid: string;
  readonly container: string;
  readonly kind?: 'app' | 'sidecar' | 'init';
  readonly wants: readonly { readonly resource: string; readonly count: number }[];
}

export interface ContainerGrant {
  readonly podUid: string;
  readonly container: string;
  readonly resource: string;
  readonly deviceIds: readonly string[];
  readonly response: ContainerAllocateResponse;
}

export interface AllocationsParts {
  readonly policy: TopologyPolicy;
  readonly numaNodes: number;
  /** Undefined when nobody has registered the resource, ever. */
  state(resource: string): ResourceState | undefined;
  plugin(resource: string): PluginConnection | undefined;
}

type Want = ContainerRequest['wants'][number];

/** Who was given what, and how the kubelet comes to give it. */
export class DeviceAllocations {
  readonly #parts: AllocationsParts;
  readonly #grants = new Map<string, ContainerGrant>();
  /** Of the pod that is being admitted, by resource. */
  #reusable: { readonly podUid: string; readonly ids: Map<string, Set<string>> } = { podUid: '', ids: new Map() };

  constructor(parts: AllocationsParts) {
    this.#parts = parts;
  }

  /** What a container was given it keeps; asked again, it gets the same without a call to the plugin. Unknown resources are passed over. */
  async allocate(request: ContainerRequest): Promise<ContainerGrant[]> {
    const { podUid, container, kind = 'app', wants } = request;
    if (this.#reusable.podUid !== podUid) this.#reusable = { podUid, ids: new Map() };
    const known = wants.filter(({ resource }) => this.#parts.state(resource) !== undefined);
    const nodes = this.#affinity(podUid, container, known);
    const grants: ContainerGrant[] = [];
    for (const want of known) grants.push(await this.#grant(request, want, nodes));
    for (const { resource, deviceIds } of grants) this.#leave(resource, deviceIds, kind === 'init');
    return grants;
  }

  release(podUid: string): void {
    for (const [key, grant] of this.#grants) if (grant.podUid === podUid) this.#grants.delete(key);
  }

  of(podUid: string): readonly ContainerGrant[] {
    return [...this.#grants.values()].filter((grant) => grant.podUid === podUid);
  }

  #affinity(podUid: string, container: string, wants: readonly Want[]): NodeMask {
    const fresh = wants.filter(({ resource }) => !this.#grants.has(keyOf(podUid, container, resource)));
    const { policy, numaNodes } = this.#parts;
    const { nodes, admitted } = mergeHints(
      fresh.map((want) => hintsFor(this.#wish(want))),
      policy,
      numaNodes,
    );
    if (!admitted) throw new AdmissionError('TopologyAffinityError', 'Resources cannot be allocated with Topology locality');
    return nodes;
  }

  #wish({ resource, count }: Want): Wish {
    const state = this.#parts.state(resource) as ResourceState;
    const held = new Set([...this.#grants.values()].flatMap((grant) => (grant.resource === resource ? grant.deviceIds : [])));
    const free = new Set(
      usableDevices(state)
        .map(({ ID }) => ID)
        .filter((id) => !held.has(id)),
    );
    return { devices: state.devices, free, reusable: this.#reusable.ids.get(resource) ?? new Set(), count };
  }

  async #grant({ podUid, container }: ContainerRequest, want: Want, nodes: NodeMask): Promise<ContainerGrant> {
    const { resource } = want;
    const key = keyOf(podUid, container, resource);
    const known = this.#grants.get(key);
    if (known !== undefined) return known;
    const connection = this.#parts.plugin(resource);
    if (connection === undefined || usableDevices(this.#parts.state(resource) as ResourceState).length === 0) {
      throw refusal(`no healthy devices present; cannot allocate unhealthy devices ${resource}`);
    }
    try {
      const deviceIds = await chooseDevices(resource, this.#wish(want), nodes, (...asked) => connection.prefer(...asked));
      const [response] = (await connection.allocate(deviceIds)).containerResponses;
      if (response === undefined)
        throw new Error(
          'no containers return in allocation response &AllocateResponse{ContainerResponses:[]*ContainerAllocateResponse{},}',
        );
      const grant = { podUid, container, resource, deviceIds, response };
      this.#grants.set(key, grant);
      return grant;
    } catch (error) {
      throw error instanceof AdmissionError ? error : refusal((error as Error).message);
    }
  }

  /** What an init container has used is free for the next container of its pod, until one takes it that does not end. */
  #leave(resource: string, deviceIds: readonly string[], isFree: boolean): void {
    const ids = this.#reusable.ids.get(resource) ?? new Set();
    this.#reusable.ids.set(resource, ids);
    for (const id of deviceIds) {
      if (isFree) ids.add(id);
      else ids.delete(id);
    }
  }
}

const keyOf = (...parts: string[]): string => parts.join('\u0000');
