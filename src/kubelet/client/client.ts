import { status } from '@grpc/grpc-js';
import {
  AllocatableResourcesRequest,
  ListPodResourcesRequest,
  ListPodResourcesResponse,
  PodResourcesListerService as v1,
} from '../../generated/podresources/v1/api.ts';
import { PodResourcesListerService as v1alpha1 } from '../../generated/podresources/v1alpha1/api.ts';
import type { Clock } from '../../host/clock.ts';
import { type SocketState, socketAt } from '../../host/fs/socket-file.ts';
import { type CallResult, GrpcConnection, type Method } from '../../host/grpc-connection.ts';
import { DurationTally } from '../../model/duration-counts.ts';
import type { Allocatable } from '../../model/pod-resources.ts';
import { allocatableFrom } from '../allocations/allocatable.ts';
import { type Attribution, attributionFrom } from '../allocations/allocations.ts';
import type { PodResourcesOptions } from '../options.ts';
import { callFailure, type Failure, isUnsupported, pathFailure, statusName } from './failure.ts';

export type ListResult =
  /** `identity` is that of the socket that answered: another one means another kubelet process. */
  | { readonly ok: true; readonly api: 'v1' | 'v1alpha1'; readonly attribution: Attribution; readonly identity: string }
  | { readonly ok: false; readonly failure: Failure };

/** `unsupported`: this kubelet does not have it, which is no trouble. */
export type AllocatableResult =
  | { readonly kind: 'answer'; readonly allocatable: Allocatable }
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'failed'; readonly failure: Failure };

type MethodName = 'List' | 'GetAllocatableResources';

/** How many questions of one kind ended with one gRPC status. */
export interface RequestCount {
  readonly method: MethodName;
  /** `OK`, `UNAVAILABLE`, …: a closed set. */
  readonly code: string;
  readonly count: number;
}

/** How long the questions of each kind took, answered or not. */
export type RequestDurations = ReturnType<DurationTally<MethodName>['list']>;

/** Asks the kubelet; one question at a time. Never throws. */
export class PodResourcesClient {
  readonly #options: Pick<PodResourcesOptions, 'socket' | 'timeout' | 'max-message-bytes'>;
  readonly #clock: Clock;
  readonly #connection: GrpcConnection;
  readonly #counts = new Map<string, RequestCount>();
  readonly #durations = new DurationTally<MethodName>();
  #identity: string | undefined;
  #api: 'v1' | 'v1alpha1' = 'v1';
  #hasAllocatable = true;

  constructor(options: Pick<PodResourcesOptions, 'socket' | 'timeout' | 'max-message-bytes'>, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
    this.#connection = new GrpcConnection(options.socket, options['max-message-bytes']);
  }

  requests(): readonly RequestCount[] {
    return [...this.#counts.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, count]) => count);
  }

  durations(): RequestDurations {
    return this.#durations.list();
  }

  async list(): Promise<ListResult> {
    const { socket } = this.#options;
    const state = socketAt(socket);
    this.#meet(state);
    if (state.kind !== 'socket') {
      this.#count('List', status.UNAVAILABLE);
      return { ok: false, failure: pathFailure(socket, state) };
    }
    const asked = await this.#list();
    if (asked.error !== undefined) return { ok: false, failure: await callFailure(socket, 'List', asked.error) };
    const now = socketAt(socket);
    // Replaced between the look and the answer: nobody knows whose answer it is, and that of a new kubelet lists no pods yet.
    if (now.kind === 'socket' && now.identity !== state.identity) return this.list();
    return { ok: true, api: this.#api, attribution: attributionFrom(asked.answer), identity: state.identity };
  }

  /** To be asked after a `List` that was answered. */
  async allocatable(): Promise<AllocatableResult> {
    if (this.#api !== 'v1' || !this.#hasAllocatable) return { kind: 'unsupported' };
    const asked = await this.#ask('GetAllocatableResources', v1.getAllocatableResources, AllocatableResourcesRequest.create());
    if (asked.error === undefined) return { kind: 'answer', allocatable: allocatableFrom(asked.answer) };
    if (isUnsupported(asked.error)) {
      this.#hasAllocatable = false;
      return { kind: 'unsupported' };
    }
    return { kind: 'failed', failure: await callFailure(this.#options.socket, 'GetAllocatableResources', asked.error) };
  }

  close(): void {
    this.#connection.close();
  }

  /** Another socket is another kubelet, perhaps of another version: what was learned about the last one is forgotten. */
  #meet(state: SocketState): void {
    const identity = state.kind === 'socket' ? state.identity : undefined;
    if (identity === this.#identity) return;
    this.#identity = identity;
    this.#api = 'v1';
    this.#hasAllocatable = true;
    this.#connection.reset();
  }

  async #list(): Promise<CallResult<ListPodResourcesResponse>> {
    const request = ListPodResourcesRequest.create();
    if (this.#api === 'v1') {
      const asked = await this.#ask('List', v1.list, request);
      if (asked.error?.code !== status.UNIMPLEMENTED) return asked;
    }
    const asked = await this.#ask('List', v1alpha1.list, request);
    if (asked.error !== undefined) return asked;
    this.#api = 'v1alpha1';
    // Its messages have fewer fields of the same names.
    return { answer: ListPodResourcesResponse.fromPartial(asked.answer) };
  }

  async #ask<Request, Answer>(name: MethodName, method: Method<Request, Answer>, request: Request): Promise<CallResult<Answer>> {
    const started = this.#clock.monotonic();
    const result = await this.#connection.call(method, request, this.#options.timeout);
    this.#durations.add(name, (this.#clock.monotonic() - started) / 1_000);
    this.#count(name, result.error?.code ?? status.OK);
    return result;
  }

  #count(method: MethodName, status: number): void {
    const code = statusName(status);
    const key = `${method} ${code}`;
    this.#counts.set(key, { method, code, count: (this.#counts.get(key)?.count ?? 0) + 1 });
  }
}
