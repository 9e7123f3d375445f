import {
  AdmissionError,
  type Allocations,
  type AllocationsDependencies,
  type ContainerGrant,
  type ContainerRequest,
  type PodRequest,
  refusal,
} from '../../../src/sim/kubelet/allocations.ts';
import type { PluginConnection } from '../../../src/sim/kubelet/plugin-connection.ts';
import { placed } from '../../../src/sim/kubelet/resource-states.ts';
import type { ReadCheckpoint } from './checkpoint.ts';
import { chooseDevices } from './device-choice.ts';
import { type Hint, hintsFor, mergeHints, type NodeMask, type TopologyPolicy, type TopologyScope, type Wish } from './topology-hints.ts';

export interface DeviceAllocationsParts extends AllocationsDependencies {
  readonly policy: TopologyPolicy;
  readonly scope: TopologyScope;
  readonly numaNodes: number;
  /** Called before anything is allocated: UIDs of the pods that have not ended. Undefined while not all are known. */
  activePods(): readonly string[] | undefined;
}

type Want = ContainerRequest['wants'][number];

/** Who was given what, and how the kubelet comes to give it. */
export class DeviceAllocations implements Allocations {
  readonly #parts: DeviceAllocationsParts;
  readonly #grants = new Map<string, ContainerGrant>();
  readonly #leftOvers = new LeftOvers();

  constructor(parts: DeviceAllocationsParts) {
    this.#parts = parts;
  }

  /** Container by container, as far as it comes. What a container was given it keeps. Resources that nobody knows are passed over. */
  async admit({ podUid, containers }: PodRequest): Promise<ContainerGrant[]> {
    this.#leftOvers.begin(podUid);
    this.#forgetEnded(podUid, containers);
    const together = this.#parts.scope === 'pod' ? { nodes: this.#podAffinity(podUid, containers) } : undefined;
    const grants: ContainerGrant[] = [];
    for (const request of containers) {
      const known = request.wants.filter(({ resource }) => this.#isKnown(resource));
      const { nodes } = together ?? { nodes: this.#containerAffinity(podUid, request.container, known) };
      for (const want of known) {
        const grant = await this.#grant(podUid, request, want, nodes);
        if (grant !== undefined) grants.push(grant);
        this.#leftOvers.used(want.resource, grant?.deviceIds ?? [], request.kind === 'init');
      }
    }
    return grants;
  }

  release(podUid: string): void {
    for (const [key, grant] of this.#grants) if (grant.podUid === podUid) this.#grants.delete(key);
  }

  of(podUid: string): readonly ContainerGrant[] {
    return [...this.#grants.values()].filter((grant) => grant.podUid === podUid);
  }

  /** Forgets everything but what a checkpoint says. */
  restore(grants: ReadCheckpoint['grants']): void {
    this.#grants.clear();
    this.#leftOvers.begin('');
    for (const grant of grants) {
      const { podUid, container, resource, devices } = grant;
      this.#grants.set(keyOf(podUid, container, resource), { ...grant, deviceIds: devices.map(({ id }) => id) });
    }
  }

  /** Not for a pod that is none of the device manager's business, unless there are topology hints to be given. */
  #forgetEnded(podUid: string, containers: readonly ContainerRequest[]): void {
    const isAsked = containers.some(({ wants }) => wants.some(({ resource }) => this.#isKnown(resource)));
    const active = isAsked || this.#parts.policy !== 'none' ? this.#parts.activePods() : undefined;
    if (active === undefined) return;
    const kept = new Set([...active, podUid]);
    for (const [key, grant] of this.#grants) if (!kept.has(grant.podUid)) this.#grants.delete(key);
  }

  /** Somebody has registered it, or some container still holds devices of it. */
  #isKnown(resource: string): boolean {
    return this.#parts.state(resource) !== undefined || this.#heldOf(resource).size > 0;
  }

  #containerAffinity(podUid: string, container: string, wants: readonly Want[]): NodeMask {
    return this.#affinity(
      wants.map(({ resource, count }) => {
        const held = this.#grants.get(keyOf(podUid, container, resource))?.deviceIds ?? [];
        return this.#hints(held, this.#wish(resource, count));
      }),
    );
  }

  /** As if the pod were one container; what its init containers leave over does not count. */
  #podAffinity(podUid: string, containers: readonly ContainerRequest[]): NodeMask {
    const wants = [...podWants(containers)].filter(([resource]) => this.#isKnown(resource));
    return this.#affinity(
      wants.map(([resource, count]) => {
        const held = this.of(podUid).flatMap((grant) => (grant.resource === resource ? grant.deviceIds : []));
        return this.#hints(held, { ...this.#wish(resource, count), reusable: new Set() });
      }),
    );
  }

  /** What is held already is taken for the only choice there is, if it is as much as is wanted. */
  #hints(held: readonly string[], wish: Wish): readonly Hint[] | undefined {
    const ids = new Set(held);
    if (ids.size === 0) return hintsFor(wish);
    return hintsFor({ ...wish, free: ids.size === wish.count ? ids : new Set(), reusable: new Set() });
  }

  #affinity(hints: readonly (readonly Hint[] | undefined)[]): NodeMask {
    const { nodes, admitted } = mergeHints(hints, this.#parts.policy, this.#parts.numaNodes);
    if (!admitted) throw new AdmissionError('TopologyAffinityError', 'Resources cannot be allocated with Topology locality');
    return nodes;
  }

  #heldOf(resource: string): Set<string> {
    return new Set([...this.#grants.values()].flatMap((grant) => (grant.resource === resource ? grant.deviceIds : [])));
  }

  #usable(resource: string): readonly string[] {
    const state = this.#parts.state(resource);
    return [...(state?.devices.keys() ?? [])].filter((id) => state?.healthy.has(id));
  }

  #wish(resource: string, count: number): Wish {
    const held = this.#heldOf(resource);
    return {
      devices: this.#parts.state(resource)?.devices ?? new Map(),
      free: new Set(this.#usable(resource).filter((id) => !held.has(id))),
      reusable: this.#leftOvers.of(resource),
      count,
      numaNodes: this.#parts.numaNodes,
    };
  }

  async #grant(podUid: string, request: ContainerRequest, want: Want, nodes: NodeMask): Promise<ContainerGrant | undefined> {
    const { resource, count } = want;
    const { container } = request;
    const key = keyOf(podUid, container, resource);
    const held = this.#grants.get(key);
    if (held !== undefined && held.deviceIds.length !== count) {
      const change = `from ${held.deviceIds.length} to ${count}`;
      throw refusal(`pod "${podUid}" container "${container}" changed request for resource "${resource}" ${change}`);
    }
    if (request.isRunning === true) return held;
    const connection = this.#connectionFor(resource, held);
    if (held !== undefined || count === 0) return held;
    try {
      const deviceIds = await chooseDevices(resource, this.#wish(resource, count), nodes, (...asked) => connection.prefer(...asked));
      const response = await connection.allocate(deviceIds);
      if (response === undefined)
        throw new Error(
          'no containers return in allocation response &AllocateResponse{ContainerResponses:[]*ContainerAllocateResponse{},}',
        );
      const grant = {
        podUid,
        container,
        resource,
        deviceIds,
        devices: deviceIds.map((id) => placed(resource, id, this.#parts.state(resource)?.devices.get(id))),
        response,
      };
      this.#grants.set(key, grant);
      return grant;
    } catch (error) {
      throw error instanceof AdmissionError ? error : refusal((error as Error).message);
    }
  }

  /** Even of a container that has its devices the plugin must be there, and they must be well. */
  #connectionFor(resource: string, held: ContainerGrant | undefined): PluginConnection {
    if (this.#parts.state(resource) === undefined) throw refusal(`cannot allocate unregistered device ${resource}`);
    const connection = this.#parts.plugin(resource);
    const usable = this.#usable(resource);
    if (connection === undefined || usable.length === 0) {
      throw refusal(`no healthy devices present; cannot allocate unhealthy devices ${resource}`);
    }
    if (held?.deviceIds.some((id) => !usable.includes(id)) === true) {
      throw refusal(`previously allocated devices are no longer healthy; cannot allocate unhealthy devices ${resource}`);
    }
    return connection;
  }
}

const keyOf = (...parts: string[]): string => parts.join('\u0000');

/**
 * How many of each resource a pod needs at the time when it needs most: all apps and sidecars together, or an init container with the
 * sidecars that were started before it.
 */
function podWants(containers: readonly ContainerRequest[]): Map<string, number> {
  const together = new Map<string, number>();
  const sidecars = new Map<string, number>();
  const atOnce = new Map<string, number>();
  const add = (to: Map<string, number>, resource: string, count: number): number => {
    const sum = (to.get(resource) ?? 0) + count;
    to.set(resource, sum);
    return sum;
  };
  for (const { kind = 'app', wants } of containers) {
    for (const { resource, count } of wants) {
      if (kind !== 'init') add(together, resource, count);
      if (kind === 'app') continue;
      const needed = kind === 'sidecar' ? add(sidecars, resource, count) : (sidecars.get(resource) ?? 0) + count;
      atOnce.set(resource, Math.max(atOnce.get(resource) ?? 0, needed));
    }
  }
  for (const [resource, count] of atOnce) together.set(resource, Math.max(together.get(resource) ?? 0, count));
  return together;
}

/** Devices that the init containers of the pod that is being admitted leave to those that come after them. */
class LeftOvers {
  #podUid = '';
  readonly #ids = new Map<string, Set<string>>();

  /** Those of another pod are forgotten. */
  begin(podUid: string): void {
    if (podUid !== this.#podUid) this.#ids.clear();
    this.#podUid = podUid;
  }

  of(resource: string): ReadonlySet<string> {
    return this.#ids.get(resource) ?? new Set();
  }

  /** What an init container has used is free for the next one, until one takes it that does not end. */
  used(resource: string, deviceIds: readonly string[], byInit: boolean): void {
    const ids = new Set(this.#ids.get(resource));
    this.#ids.set(resource, ids);
    for (const id of deviceIds) {
      if (byInit) ids.add(id);
      else ids.delete(id);
    }
  }
}
