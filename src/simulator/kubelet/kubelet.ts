import { chmodSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Server, status } from '@grpc/grpc-js';
import { type Clock, systemClock } from '../../host/clock.ts';
import { checkpointText, writeCheckpoint } from './checkpoint-file.ts';
import type { Random } from './encode.ts';
import { createImpostor, type Impostor } from './impostors.ts';
import { type AdmitAgain, KnownPods, type RefusedPod } from './known-pods.ts';
import { ALL_APIS, addPodResources, type ServedApis, type StatusAnswer } from './pod-resources-service.ts';
import type { SimulatedPod, SimulatedStock } from './pods.ts';
import { KUBELET_RATE, type Rate, TokenBucket } from './rate-limit.ts';
import { bindGrpc, listen, makeRenamedSocket } from './renamed-socket.ts';

export interface SimulatedKubeletSettings {
  /** Stands for `/var/lib/kubelet`. */
  readonly directory: string;
  /** Default: the kubelet's own, which nobody can set there. */
  readonly rate?: Rate;
  readonly random?: Random;
  readonly clock?: Clock;
  /** Asked of each pod that has not ended when the pod sources deliver after a restart. Absent: pods stay as they are. */
  readonly admitAgain?: AdmitAgain;
}

/** What is wrong with its answers. `hang` never answers, `huge` lists one more pod of that many bytes. */
export type KubeletFault =
  | { readonly kind: 'slow'; readonly delayMs: number }
  | { readonly kind: 'hang' }
  | { readonly kind: 'rate-limited' }
  | { readonly kind: 'huge'; readonly bytes: number };

export interface RestartSettings {
  /** How long nobody listens. Default 0. */
  readonly downForMs?: number;
  /** How long it then lists no pods, as until its sources have delivered. Default 0; `Infinity` until `deliverPods`. */
  readonly emptyForMs?: number;
  /** Another version comes up. */
  readonly apis?: ServedApis;
}

const EMPTY_STOCK: SimulatedStock = { devices: [], cpus: [], memory: [] };

/** A kubelet as far as its sockets and files go: a real gRPC server with the habits of the real one. */
export class SimulatedKubelet {
  readonly podResourcesSocket: string;
  readonly checkpoint: string;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #bucket: TokenBucket;
  readonly #pods: KnownPods;
  readonly #calls = new Map<string, number>();
  #stock: SimulatedStock = EMPTY_STOCK;
  #apis: ServedApis = ALL_APIS;
  #fault: KubeletFault | undefined;
  #cancelDelivery = (): void => {};
  #end: (() => Promise<void>) | undefined;

  constructor({ directory, rate = KUBELET_RATE, random = Math.random, clock = systemClock, admitAgain }: SimulatedKubeletSettings) {
    this.podResourcesSocket = join(directory, 'pod-resources', 'kubelet.sock');
    this.checkpoint = join(directory, 'device-plugins', 'kubelet_internal_checkpoint');
    this.#clock = clock;
    this.#random = random;
    this.#bucket = new TokenBucket(rate, clock);
    this.#pods = new KnownPods(admitAgain);
  }

  async start(apis: ServedApis = this.#apis): Promise<void> {
    await this.stop();
    this.#apis = apis;
    const server = new Server();
    const state = { pods: () => this.#listed(), freeEnded: () => this.#pods.freeEnded(), stock: () => this.#stock, random: this.#random };
    addPodResources(
      server,
      state,
      apis,
      (method) => this.#gate(method),
      (method) => this.#count(method),
    );
    await makeRenamedSocket(this.podResourcesSocket, (path) => bindGrpc(server, path));
    this.#end = async () => server.forceShutdown();
  }

  /** Ends it as a signal does: connections are cut, the socket file stays. */
  async stop(): Promise<void> {
    this.#cancelDelivery();
    const end = this.#end;
    this.#end = undefined;
    await end?.();
  }

  async restart({ downForMs = 0, emptyForMs = 0, apis = this.#apis }: RestartSettings = {}): Promise<void> {
    await this.stop();
    if (downForMs > 0) await new Promise<void>((resolve) => this.#clock.after(downForMs, resolve));
    this.#pods.forget();
    if (emptyForMs === 0) await this.deliverPods();
    await this.start(apis);
    if (emptyForMs > 0 && emptyForMs < Number.POSITIVE_INFINITY) {
      this.#cancelDelivery = this.#clock.after(emptyForMs, () => void this.deliverPods());
    }
  }

  /** The pod sources deliver now: each pod is known again, and admitted again. Gives those that were refused. */
  deliverPods(): Promise<readonly RefusedPod[]> {
    this.#cancelDelivery();
    return this.#pods.deliver();
  }

  /** Something else answers at its socket until the next start. */
  async impersonate(kind: Impostor): Promise<void> {
    await this.stop();
    const { server, end } = createImpostor(kind);
    await makeRenamedSocket(this.podResourcesSocket, (path) => listen(server, path));
    this.#end = end;
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

  /** It has come to its end and is still known. */
  endPod(namespace: string, name: string): void {
    const pod = this.#pods.find(namespace, name);
    if (pod !== undefined) this.admitPod({ ...pod, ended: true });
  }

  /** Its containers end, and it goes on: as after the reboot of a node. */
  takeDown(namespace: string, name: string): void {
    this.#pods.takeDown(namespace, name);
  }

  /** The checkpoint goes on naming the pod until its devices were freed and something else has it written. */
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

  setFault(fault: KubeletFault | undefined): void {
    this.#fault = fault;
  }

  setSocketMode(mode: number): void {
    chmodSync(this.podResourcesSocket, mode);
  }

  /** Calls that arrived so far, by version and method: `v1.List`. */
  calls(method: string): number {
    return this.#calls.get(method) ?? 0;
  }

  #listed(): readonly SimulatedPod[] {
    const delivered = this.#pods.delivered();
    if (this.#fault?.kind !== 'huge') return delivered;
    return [...delivered, { namespace: 'x', name: 'x'.repeat(this.#fault.bytes), uid: 'x', containers: [] }];
  }

  #writeCheckpoint(): void {
    writeCheckpoint(this.checkpoint, checkpointText(this.#pods.holding(), this.#stock));
  }

  #count(method: string): void {
    this.#calls.set(method, this.calls(method) + 1);
  }

  async #gate(method: string): Promise<StatusAnswer | undefined> {
    this.#count(method);
    const fault = this.#fault;
    if (fault?.kind === 'rate-limited' || !this.#bucket.take()) {
      return { code: status.RESOURCE_EXHAUSTED, details: 'rejected by rate limit' };
    }
    if (fault?.kind === 'hang') return new Promise(() => {});
    if (fault?.kind === 'slow') await new Promise<void>((resolve) => this.#clock.after(fault.delayMs, resolve));
    return undefined;
  }
}
