import { isDeepStrictEqual } from 'node:util';
import type { ServerWritableStream } from '@grpc/grpc-js';
import type { Device, Empty, ListAndWatchResponse } from '../../generated/deviceplugin/v1beta1/api.ts';
import type { Clock } from '../../host/clock.ts';
import { type PluginResource, selectorsOf } from '../../model/plugin-resource.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { type DeviceDirectory, PathWatch } from './device-paths.ts';
import { type HealthRule, kubeletDevices, type Offer, selectDevices, takeInventory } from './inventory.ts';

/** Source of snapshots. */
export interface SnapshotSource {
  snapshot(): Snapshot | undefined;
  /** Calls `listener` without data after each change. Returns the function that ends the subscription. */
  subscribe(listener: () => void): () => void;
}

export interface OffersDependencies {
  readonly store: SnapshotSource;
  readonly healthOf: HealthRule;
  /** Whether containers can get devices of a family. Default: of each. */
  readonly canServe?: (family: string) => boolean;
  readonly clock: Clock;
  /** Access to `/dev`. When it is absent, resources made of paths have no devices. */
  readonly dev?: DeviceDirectory;
  /** How long an absent device node is still offered as unhealthy. */
  readonly missingRetentionMs: number;
  /** Resources whose devices this resource must not offer too. */
  readonly rivals: readonly PluginResource[];
}

/** The current offers of one resource to the kubelet. */
export class ResourceOffers {
  readonly resource: PluginResource;
  readonly #store: SnapshotSource;
  readonly #healthOf: HealthRule;
  readonly #canServe: (family: string) => boolean;
  readonly #paths: PathWatch | undefined;
  readonly #rivals: readonly PluginResource[];
  readonly #listeners = new Set<() => void>();
  #unsubscribe = (): void => {};

  constructor(resource: PluginResource, parts: OffersDependencies) {
    const { store, healthOf, canServe = () => true, clock, dev, missingRetentionMs: retentionMs } = parts;
    this.#rivals = parts.rivals;
    this.resource = resource;
    this.#store = store;
    this.#healthOf = healthOf;
    this.#canServe = canServe;
    if (resource.paths !== undefined && dev !== undefined) this.#paths = new PathWatch({ globs: resource.paths, dev, clock, retentionMs });
  }

  start(): void {
    const notifyAll = (): void => {
      for (const listener of [...this.#listeners]) listener();
    };
    this.#unsubscribe = this.#store.subscribe(notifyAll);
    this.#paths?.start(notifyAll);
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
   * False until each selected family has data: a probe of it ended, or its devices are known from before a restart. An earlier list
   * would be empty, and the kubelet would permanently reject the pods that it admits again after its restart.
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

  current(): readonly Offer[] {
    const devices = (this.#store.snapshot()?.devices ?? []).filter(({ device }) => this.#canServe(device.family));
    const paths = this.#paths?.paths() ?? [];
    const taken = new Set(this.#rivals.flatMap((rival) => selectDevices(rival, devices).map(({ key }) => key)));
    return takeInventory(this.resource, devices, this.#healthOf, paths, taken);
  }

  /** The ids of this resource that the kubelet offers to pods, and when it was asked; undefined when it does not report them. */
  offered(): { readonly ids: readonly string[]; readonly askedMs: number } | undefined {
    const podResources = this.#store.snapshot()?.podResources;
    if (podResources?.allocatable === undefined || podResources.allocatableAskedMs === undefined) return undefined;
    const own = podResources.allocatable.devices.find(({ resource }) => resource === this.resource.resource);
    return { ids: own?.deviceIds ?? [], askedMs: podResources.allocatableAskedMs };
  }
}

export type ListCall = ServerWritableStream<Empty, ListAndWatchResponse>;

/**
 * One open `ListAndWatch` stream. It sends the complete list immediately, and again when the list differs from the last one sent. A slow
 * kubelet gets the newest list at its next read and skips those in between.
 */
export class ListStream {
  readonly #call: ListCall;
  readonly #offers: ResourceOffers;
  readonly #onSending: (devices: readonly Device[]) => () => void;
  readonly #unsubscribe: () => void;
  readonly #onEnd: (stream: ListStream) => void;
  #sent: readonly Device[] | undefined;
  #isBlocked = false;
  #isOver = false;

  /** Calls `onSending` with each list, and calls the function that it returns after the list was written. */
  constructor(
    call: ListCall,
    offers: ResourceOffers,
    onSending: (devices: readonly Device[]) => () => void,
    onEnd: (stream: ListStream) => void,
  ) {
    this.#call = call;
    this.#offers = offers;
    this.#onSending = onSending;
    this.#onEnd = onEnd;
    this.#unsubscribe = offers.onChange(() => this.#send());
    for (const event of ['cancelled', 'close', 'error', 'finish']) call.on(event, () => this.drop());
    this.#send();
  }

  /** Ends the stream from the server side in the regular way. */
  end(): void {
    if (!this.#isOver) this.#call.end();
  }

  /** Marks the stream as ended, even when the gRPC library has not reported the end yet. */
  drop(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#unsubscribe();
    this.#onEnd(this);
  }

  /** Sends the list although it is the same. */
  repeat(): void {
    this.#sent = undefined;
    this.#send();
  }

  #send(): void {
    if (this.#isOver || this.#isBlocked) return;
    const devices = kubeletDevices(this.#offers.current());
    if (isDeepStrictEqual(this.#sent, devices)) return;
    this.#sent = devices;
    this.#isBlocked = true;
    const written = this.#onSending(devices);
    // The stream would buffer sixteen lists before it signals back-pressure, so this waits for each write.
    this.#call.write({ devices: [...devices] }, (error?: Error | null) => {
      this.#isBlocked = false;
      if (error) return;
      written();
      this.#send();
    });
  }
}
