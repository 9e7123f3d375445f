import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Server } from '@grpc/grpc-js';
import { checkpointData, writeCheckpoint } from './checkpoint.ts';
import { addPodResources, type PodResourcesState } from './pod-resources-service.ts';
import { PodsByName, type SimulatedPod, type SimulatedPods, type SimulatedStock } from './pods.ts';
import { bindGrpc, makeRenamedSocket } from './sockets.ts';

export interface SimulatedKubeletSettings {
  /** Replaces `/var/lib/kubelet`. */
  readonly directory: string;
  /** Returns a number from 0 (inclusive) to 1 (exclusive); sets the order of list entries. */
  readonly random?: () => number;
  /** Storage of the pods. */
  readonly pods?: SimulatedPods;
}

/** Simulates the kubelet's PodResources socket and its checkpoint: a gRPC server with the behaviour of the real kubelet. */
export class SimulatedKubelet {
  readonly podResourcesSocket: string;
  readonly checkpoint: string;
  readonly #pods: SimulatedPods;
  readonly #state: PodResourcesState;
  #stock: SimulatedStock = { devices: [], cpus: [], memory: [] };
  #end: (() => Promise<void>) | undefined;

  constructor({ directory, random = Math.random, pods = new PodsByName() }: SimulatedKubeletSettings) {
    this.podResourcesSocket = join(directory, 'pod-resources', 'kubelet.sock');
    this.checkpoint = join(directory, 'device-plugins', 'kubelet_internal_checkpoint');
    this.#pods = pods;
    this.#state = { pods: () => this.listed(), freeEnded: () => pods.freeEnded(), stock: () => this.#stock, random };
  }

  async start(): Promise<void> {
    await this.stop();
    const server = new Server();
    this.addServices(server, this.#state);
    await this.listen(
      (path) => bindGrpc(server, path),
      async () => server.forceShutdown(),
    );
  }

  /** Stops it as a signal does: closes all connections, but keeps the socket file. */
  async stop(): Promise<void> {
    const end = this.#end;
    this.#end = undefined;
    await end?.();
  }

  /** Stops it and removes its files. */
  async close(): Promise<void> {
    await this.stop();
    for (const path of [this.podResourcesSocket, this.checkpoint]) rmSync(path, { force: true, recursive: true });
  }

  /** Adds a pod, or replaces the pod of the same name. Writes the checkpoint, as after an allocation, unless the pod has ended. */
  admitPod(pod: SimulatedPod): void {
    if (pod.ended !== true) this.#pods.freeEnded();
    this.#pods.put(pod);
    if (pod.ended !== true) this.#writeCheckpoint();
  }

  /** Adds a pod whose plugins have not answered yet, with the devices that it has so far. The checkpoint does not have them. */
  announcePod(pod: SimulatedPod): void {
    this.#pods.put(pod);
  }

  /** Removes a pod. The checkpoint still contains it until the next write. */
  removePod(namespace: string, name: string): void {
    this.#pods.remove(namespace, name);
  }

  pods(): readonly SimulatedPod[] {
    return this.#pods.all();
  }

  /** Frees the devices of ended pods, as before an allocation. Returns the UIDs of the other pods if all are known. */
  freeEnded(): readonly string[] | undefined {
    return this.#pods.freeEnded();
  }

  /** Sets the devices of the node and writes the checkpoint, as after a new list of a plugin. */
  setStock(stock: SimulatedStock): void {
    this.#stock = stock;
    this.#writeCheckpoint();
  }

  protected addServices(server: Server, state: PodResourcesState): void {
    addPodResources(server, state);
  }

  protected listed(): readonly SimulatedPod[] {
    return this.#pods.listed();
  }

  /** Returns the checksum of the checkpoint, which the agent does not check. */
  protected checksum(_data: ReturnType<typeof checkpointData>): number {
    return 0;
  }

  /** Creates the socket; `end` stops the server on it. */
  protected async listen(bind: (path: string) => Promise<unknown>, end: () => Promise<void>): Promise<void> {
    await makeRenamedSocket(this.podResourcesSocket, bind);
    this.#end = end;
  }

  #writeCheckpoint(): void {
    const data = checkpointData(this.#pods.holding(), this.#stock);
    writeCheckpoint(this.checkpoint, JSON.stringify({ Data: data, Checksum: this.checksum(data) }));
  }
}
