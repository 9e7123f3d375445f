import { chmodSync } from 'node:fs';
import { type Server, status } from '@grpc/grpc-js';
import { type Clock, systemClock } from '../../../src/host/clock.ts';
import type { CheckpointData } from '../../../src/sim/kubelet/checkpoint.ts';
import { SimulatedKubelet, type SimulatedKubeletSettings } from '../../../src/sim/kubelet/kubelet.ts';
import { CallRefused, type PodResourcesState } from '../../../src/sim/kubelet/pod-resources-service.ts';
import type { SimulatedPod } from '../../../src/sim/kubelet/pods.ts';
import { checksumOf } from './checkpoint.ts';
import { createImpostor, type Impostor } from './impostors.ts';
import { type AdmitAgain, KnownPods, type RefusedPod } from './known-pods.ts';
import { KUBELET_RATE, type Rate, TokenBucket } from './rate-limit.ts';
import { ALL_APIS, addApis, type ServedApis } from './served-apis.ts';
import { listen } from './sockets.ts';

export interface TestKubeletSettings extends Pick<SimulatedKubeletSettings, 'directory' | 'random'> {
  /** Default: the kubelet's own, which nobody can set there. */
  readonly rate?: Rate;
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
  /** How long it then lists no pods, as until its sources have delivered. Default 0; `Infinity` until `deliverPods`. */
  readonly emptyForMs?: number;
  /** Another version comes up. */
  readonly apis?: ServedApis;
}

/** The simulated kubelet with what a test may want of it: faults, other versions, restarts, a rate limit, the checkpoint's checksum. */
export class TestKubelet extends SimulatedKubelet {
  readonly #clock: Clock;
  readonly #bucket: TokenBucket;
  readonly #known: KnownPods;
  readonly #calls = new Map<string, number>();
  #apis: ServedApis = ALL_APIS;
  #fault: KubeletFault | undefined;
  #cancelDelivery = (): void => {};

  constructor({ rate = KUBELET_RATE, clock = systemClock, admitAgain, ...settings }: TestKubeletSettings) {
    const pods = new KnownPods(admitAgain);
    super({ ...settings, pods });
    this.#clock = clock;
    this.#bucket = new TokenBucket(rate, clock);
    this.#known = pods;
  }

  override async start(apis: ServedApis = this.#apis): Promise<void> {
    this.#apis = apis;
    await super.start();
  }

  override async stop(): Promise<void> {
    this.#cancelDelivery();
    await super.stop();
  }

  async restart({ emptyForMs = 0, apis = this.#apis }: RestartSettings = {}): Promise<void> {
    await this.stop();
    this.#known.forget();
    if (emptyForMs === 0) await this.deliverPods();
    await this.start(apis);
    if (emptyForMs > 0 && emptyForMs < Number.POSITIVE_INFINITY) {
      this.#cancelDelivery = this.#clock.after(emptyForMs, () => void this.deliverPods());
    }
  }

  /** The pod sources deliver now: each pod is known again, and admitted again. Gives those that were refused. */
  deliverPods(): Promise<readonly RefusedPod[]> {
    this.#cancelDelivery();
    return this.#known.deliver();
  }

  /** Something else answers at its socket until the next start. */
  async impersonate(kind: Impostor): Promise<void> {
    await this.stop();
    const { server, end } = createImpostor(kind);
    await this.listen((path) => listen(server, path), end);
  }

  /** It has come to its end and is still known. */
  endPod(namespace: string, name: string): void {
    const pod = this.#known.find(namespace, name);
    if (pod !== undefined) this.admitPod({ ...pod, ended: true });
  }

  /** Its containers end, and it goes on: as after the reboot of a node. */
  takeDown(namespace: string, name: string): void {
    const pod = this.#known.find(namespace, name);
    if (pod !== undefined) this.#known.put({ ...pod, isDown: true });
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

  protected override addServices(server: Server, state: PodResourcesState): void {
    addApis(server, state, this.#apis, {
      arrived: (method) => this.#count(method),
      missed: (method) => void this.#calls.set(method, this.calls(method) + 1),
    });
  }

  protected override listed(): readonly SimulatedPod[] {
    const pods = super.listed();
    if (this.#fault?.kind !== 'huge') return pods;
    return [...pods, { namespace: 'x', name: 'x'.repeat(this.#fault.bytes), uid: 'x', containers: [] }];
  }

  protected override checksum(data: CheckpointData): number {
    return checksumOf(data);
  }

  /** Counts a call, and lets it through, refuses it, or never comes back. */
  async #count(method: string): Promise<void> {
    this.#calls.set(method, this.calls(method) + 1);
    const fault = this.#fault;
    if (fault?.kind === 'rate-limited' || !this.#bucket.take()) throw new CallRefused(status.RESOURCE_EXHAUSTED, 'rejected by rate limit');
    if (fault?.kind === 'hang') await new Promise(() => {});
    if (fault?.kind === 'slow') await new Promise<void>((resolve) => this.#clock.after(fault.delayMs, resolve));
  }
}
