import type { ContainerAllocateResponse } from '../generated/deviceplugin/v1beta1/api.ts';
import type { Clock } from '../host/clock.ts';
import { type PluginResource, selectorsOf } from '../model/plugin-resource.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { type Access, allocateContainer, grantedOffers } from './allocate.ts';
import type { DeviceDirectory, PathState } from './device-paths.ts';
import { type Offer, type Tell, takeInventory } from './inventory.ts';
import { PathWatch } from './path-watch.ts';
import { placementsOf } from './placement.ts';
import { type PreferenceRequest, preferenceOf, preferredIds } from './preferred.ts';

/** Where snapshots come from. */
export interface SnapshotSource {
  snapshot(): Snapshot | undefined;
  /** `look` carries no data. Returns the way to end the subscription. */
  subscribe(look: () => void): () => void;
}

export interface SupplyParts {
  readonly store: SnapshotSource;
  readonly access: Access;
  readonly tell: Tell;
  readonly clock: Clock;
  /** `/dev`; without it, resources made of paths have no devices. */
  readonly dev?: DeviceDirectory;
  /** How long a device node that went away is still offered, as unhealthy. */
  readonly missingRetentionMs: number;
}

const NO_PATHS: readonly PathState[] = [];

/** What one resource offers at this moment, and the answers that follow from it. */
export class Supply {
  readonly resource: PluginResource;
  readonly #parts: SupplyParts;
  readonly #watch: PathWatch | undefined;
  readonly #listeners = new Set<() => void>();
  #unsubscribe = (): void => {};
  #taken: { readonly snapshot: Snapshot | undefined; readonly paths: readonly PathState[]; readonly offers: readonly Offer[] } | undefined;

  constructor(resource: PluginResource, parts: SupplyParts) {
    this.resource = resource;
    this.#parts = parts;
    const { dev, clock, missingRetentionMs: retentionMs } = parts;
    if (resource.paths !== undefined && dev !== undefined) this.#watch = new PathWatch({ globs: resource.paths, dev, clock, retentionMs });
  }

  start(): void {
    const tellAll = (): void => {
      for (const listener of [...this.#listeners]) listener();
    };
    this.#unsubscribe = this.#parts.store.subscribe(tellAll);
    this.#watch?.start(tellAll);
  }

  stop(): void {
    this.#unsubscribe();
    this.#watch?.stop();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /**
   * False until something is known of each family that is selected: a look at it ended, or devices are remembered from before a
   * restart. A list sent before that would take every device out of service, and the kubelet would reject the pods that it admits
   * anew for good.
   */
  isReady(): boolean {
    if (this.resource.paths !== undefined) return true;
    const snapshot = this.#parts.store.snapshot();
    if (snapshot === undefined) return false;
    const named = selectorsOf(this.resource.select).map(({ family }) => family);
    const relevant = snapshot.families.filter(({ family }) => named.includes(undefined) || named.includes(family));
    const remembered = new Set(snapshot.devices.map(({ device }) => device.family));
    return relevant.every(({ family, ...run }) => remembered.has(family) || run.succeeded !== undefined || run.abandoned > 0 || run.hung);
  }

  offers(): readonly Offer[] {
    const snapshot = this.#parts.store.snapshot();
    const paths = this.#watch?.paths() ?? NO_PATHS;
    if (this.#taken?.snapshot !== snapshot || this.#taken?.paths !== paths) {
      const offers = snapshot === undefined && this.resource.paths === undefined ? [] : this.#take(snapshot, paths);
      this.#taken = { snapshot, paths, offers };
    }
    return this.#taken?.offers ?? [];
  }

  /** How many of its ids the kubelet can hand out, and when it was asked; undefined when it does not tell. */
  listed(): { readonly count: number; readonly askedMs: number } | undefined {
    const podResources = this.#parts.store.snapshot()?.podResources;
    if (podResources?.allocatable === undefined || podResources.allocatableAskedMs === undefined) return undefined;
    const own = podResources.allocatable.devices.find(({ resource }) => resource === this.resource.resource);
    return { count: own?.deviceIds.length ?? 0, askedMs: podResources.allocatableAskedMs };
  }

  allocate(ids: readonly string[]): ContainerAllocateResponse {
    return allocateContainer(ids, this.offers(), this.resource, this.#parts.access, this.#parts.tell);
  }

  prefer(request: PreferenceRequest): string[] {
    return preferredIds(request, placementsOf(this.offers()), preferenceOf(this.resource));
  }

  /** Throws a refusal unless all of these may still be used. */
  check(ids: readonly string[]): void {
    grantedOffers(ids, this.offers(), this.resource.resource);
  }

  #take(snapshot: Snapshot | undefined, paths: readonly PathState[]): Offer[] {
    return takeInventory(this.resource, snapshot?.devices ?? [], this.#parts.tell, paths);
  }
}
