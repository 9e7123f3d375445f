import type { Release } from './build.ts';
import type { Admission, Given, Refused, StartSettings, ToldCapacity, ToldPod, WantedPod } from './exchanged.ts';
import type { VendorPlugin } from './vendor-plugin.ts';

/** What a case needs of a kubelet, so that the same case can be put to the real code and to the simulation. */
export interface AnyKubelet {
  readonly pluginDirectory: string;
  readonly registry: string;
  readonly podResourcesSocket: string;
  start(settings?: StartSettings): Promise<void>;
  /** Ends it as a signal does. */
  end(): Promise<void>;
  /** The pod sources deliver; gives the pods that are refused now. */
  deliver(): Promise<readonly Refused[]>;
  /** All containers of a pod end while the pod goes on, as after the reboot of a node. */
  takeDown(pod: Pick<WantedPod, 'namespace' | 'name'>): Promise<unknown>;
  /** The start of a container whose pod was admitted before. */
  startAgain(pod: Pick<WantedPod, 'namespace' | 'name'>, container: string): Promise<Given>;
  /** As if the plugin of a resource, which is gone, had left that much earlier. */
  age(resource: string, forMs: number): Promise<unknown>;
  admit(pod: WantedPod): Promise<Admission>;
  remove(pod: Pick<WantedPod, 'namespace' | 'name'>): Promise<unknown>;
  finish(pod: Pick<WantedPod, 'namespace' | 'name'>): Promise<unknown>;
  status(pod: Pick<WantedPod, 'namespace' | 'name'>): Promise<Record<string, Record<string, Record<string, string>>>>;
  capacity(): Promise<ToldCapacity>;
  list(): Promise<readonly ToldPod[]>;
  allocatable(resource: string): Promise<readonly string[]>;
  /** The text of the checkpoint as it lies on disk. */
  checkpointText(): string;
  close(): Promise<void>;
}

/** The tools of one case. Plugins are closed after it. */
export interface Stage {
  readonly kubelet: AnyKubelet;
  plugin(settings: ConstructorParameters<typeof VendorPlugin>[1]): VendorPlugin;
  /** A plugin that found its way into the registry of the plugin watcher instead. */
  watched(settings: ConstructorParameters<typeof VendorPlugin>[1], folder?: string): VendorPlugin;
  /** Waits until something is so. */
  until(what: string, isTrue: () => boolean | Promise<boolean>): Promise<void>;
}

/** What both are asked to do, and what the answer is. Order that is random in the real one is sorted away by the case. */
export interface Case {
  readonly name: string;
  /** Topology policy of the kubelet. Default none. */
  readonly policy?: 'none' | 'best-effort' | 'restricted' | 'single-numa-node';
  /** Only the oldest PodResources service is offered. */
  readonly onlyV1alpha1?: boolean;
  /** Default container. */
  readonly scope?: 'container' | 'pod';
  observe(stage: Stage): Promise<unknown>;
  readonly expected: unknown;
  /** The one release that does so. Absent: each does. */
  readonly only?: Release;
}
