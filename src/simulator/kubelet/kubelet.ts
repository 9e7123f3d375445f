import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Server } from '@grpc/grpc-js';
import { checkpointData, writeCheckpoint } from './checkpoint.ts';
import { addPodResources, type PodResourcesState } from './pod-resources-service.ts';
import { PodsByName, type SimulatedPod, type SimulatedPods, type SimulatedStock } from './pods.ts';
import { bindGrpc, makeRenamedSocket } from './sockets.ts';

export interface SimulatedKubeletSettings {
  /** Stands for `/var/lib/kubelet`. */
  readonly directory: string;
  /** Between 0 (included) and 1: the order of what is listed. */
  readonly random?: () => number;
  /** Where its pods are kept. */
  readonly pods?: SimulatedPods;
}

/** A kubelet as far as its socket for PodResources and its checkpoint go: a real gRPC server with the habits of the real one. */
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

  /** Ends it as a signal does: connections are cut, the socket file stays. */
  async stop(): Promise<void> {
    const end = this.#end;
    this.#end = undefined;
    await end?.();
  }

  /** Ends it and takes its files along. */
  async close(): Promise<void> {
    await this.stop();
    for (const path of [this.podResourcesSocket, this.checkpoint]) rmSync(path, { force: true, recursive: true });
  }

  /** The checkpoint is written, as after an allocation, unless the pod has ended. A pod of the same name is replaced. */
  admitPod(pod: SimulatedPod): void {
    if (pod.ended !== true) this.#pods.freeEnded();
    this.#pods.put(pod);
    if (pod.ended !== true) this.#writeCheckpoint();
  }

  /** The checkpoint goes on naming the pod until something else has it written. */
  removePod(namespace: string, name: string): void {
    this.#pods.remove(namespace, name);
  }

  pods(): readonly SimulatedPod[] {
    return this.#pods.all();
  }

  /** As before an allocation: frees what ended pods held, and gives the UIDs of the others if all are known. */
  freeEnded(): readonly string[] | undefined {
    return this.#pods.freeEnded();
  }

  /** The checkpoint is written, as when a plugin sends another list. */
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

  /** The checksum of the checkpoint. The agent looks at none. */
  protected checksum(_data: ReturnType<typeof checkpointData>): number {
    return 0;
  }

  /** Makes the socket; `end` ends what listens on it. */
  protected async listen(bind: (path: string) => Promise<unknown>, end: () => Promise<void>): Promise<void> {
    await makeRenamedSocket(this.podResourcesSocket, bind);
    this.#end = end;
  }

  #writeCheckpoint(): void {
    const data = checkpointData(this.#pods.holding(), this.#stock);
    writeCheckpoint(this.checkpoint, JSON.stringify({ Data: data, Checksum: this.checksum(data) }));
  }
}
