import type { Clock } from '../../host/clock.ts';
import { type PluginResource, selectorsOf } from '../../model/plugin-resource.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { type DeviceDirectory, PathWatch } from './device-paths.ts';
import { type HealthRule, type Offer, takeInventory } from './inventory.ts';

/** Where snapshots come from. */
export interface SnapshotSource {
  snapshot(): Snapshot | undefined;
  /** `look` carries no data. Returns the way to end the subscription. */
  subscribe(look: () => void): () => void;
}

export interface OffersParts {
  readonly store: SnapshotSource;
  readonly healthOf: HealthRule;
  readonly clock: Clock;
  /** `/dev`; without it, resources made of paths have no devices. */
  readonly dev?: DeviceDirectory;
  /** How long a device node that went away is still offered, as unhealthy. */
  readonly missingRetentionMs: number;
}

/** What one resource offers to the kubelet at this moment. */
export class ResourceOffers {
  readonly resource: PluginResource;
  readonly #store: SnapshotSource;
  readonly #healthOf: HealthRule;
  readonly #paths: PathWatch | undefined;
  readonly #listeners = new Set<() => void>();
  #unsubscribe = (): void => {};

  constructor(resource: PluginResource, { store, healthOf, clock, dev, missingRetentionMs: retentionMs }: OffersParts) {
    this.resource = resource;
    this.#store = store;
    this.#healthOf = healthOf;
    if (resource.paths !== undefined && dev !== undefined) this.#paths = new PathWatch({ globs: resource.paths, dev, clock, retentionMs });
  }

  start(): void {
    const tellAll = (): void => {
      for (const listener of [...this.#listeners]) listener();
    };
    this.#unsubscribe = this.#store.subscribe(tellAll);
    this.#paths?.start(tellAll);
  }

  stop(): void {
    this.#unsubscribe();
    this.#paths?.stop();
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
    const snapshot = this.#store.snapshot();
    if (snapshot === undefined) return false;
    const named = selectorsOf(this.resource.select).map(({ family }) => family);
    const relevant = snapshot.families.filter(({ family }) => named.includes(undefined) || named.includes(family));
    const remembered = new Set(snapshot.devices.map(({ device }) => device.family));
    return relevant.every(({ family, ...run }) => remembered.has(family) || run.succeeded !== undefined || run.abandoned > 0 || run.hung);
  }

  current(): Offer[] {
    return takeInventory(this.resource, this.#store.snapshot()?.devices ?? [], this.#healthOf, this.#paths?.paths());
  }

  /** How many of its ids the kubelet says it can hand out, and when it was asked; undefined when it does not tell. */
  allocatable(): { readonly count: number; readonly askedMs: number } | undefined {
    const podResources = this.#store.snapshot()?.podResources;
    if (podResources?.allocatable === undefined || podResources.allocatableAskedMs === undefined) return undefined;
    const own = podResources.allocatable.devices.find(({ resource }) => resource === this.resource.resource);
    return { count: own?.deviceIds.length ?? 0, askedMs: podResources.allocatableAskedMs };
  }
}
