import { status } from '@grpc/grpc-js';
import { AllocatableResourcesRequest, ListPodResourcesRequest, PodResourcesListerService as v1 } from '../generated/podresources/v1/api.ts';
import { PodResourcesListerService as v1alpha1 } from '../generated/podresources/v1alpha1/api.ts';
import type { Clock } from '../host/clock.ts';
import { type SocketState, socketAt } from '../host/fs/socket-file.ts';
import type { Allocatable } from '../model/pod-resources.ts';
import { allocatableFrom } from './allocatable.ts';
import type { Attribution } from './allocations.ts';
import { type CallResult, Connection, type Method } from './connection.ts';
import { callFailure, type Failure, isUnsupported, pathFailure, statusName } from './failure.ts';
import { ListReader } from './list-reader.ts';
import type { PodResourcesOptions } from './options.ts';

export type ListResult =
  /** `identity` is that of the socket that answered: another one means another kubelet process. */
  | { readonly ok: true; readonly api: 'v1' | 'v1alpha1'; readonly attribution: Attribution; readonly identity: string }
  | { readonly ok: false; readonly failure: Failure };

/** `unsupported`: this kubelet does not have it, which is no trouble. */
export type AllocatableResult =
  | { readonly kind: 'answer'; readonly allocatable: Allocatable }
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'failed'; readonly failure: Failure };

/** One question: method and gRPC status name (`OK`, `UNAVAILABLE`, …). */
export interface AskedQuestion {
  readonly method: 'List' | 'GetAllocatableResources';
  readonly code: string;
  /** How long it took; absent when there was no socket to ask at. */
  readonly durationMs?: number;
}

/** v1alpha1 uses the same field numbers and knows fewer of them, so its answer reads as one of v1. */
function listMethods(read: (bytes: Buffer) => Attribution): Record<'v1' | 'v1alpha1', Method<ListPodResourcesRequest, Attribution>> {
  const { path, requestSerialize } = v1.list;
  const list = { path, requestSerialize, responseDeserialize: read };
  return { v1: list, v1alpha1: { ...list, path: v1alpha1.list.path } };
}

/** Asks the kubelet; one question at a time. Never throws. */
export class PodResourcesClient {
  readonly #options: Pick<PodResourcesOptions, 'socket' | 'timeout' | 'max-message-bytes'>;
  readonly #clock: Clock;
  readonly #onAsked: (question: AskedQuestion) => void;
  readonly #connection: Connection;
  readonly #reader = new ListReader();
  readonly #methods = listMethods((bytes) => this.#reader.read(bytes));
  #identity: string | undefined;
  #api: 'v1' | 'v1alpha1' = 'v1';
  #hasAllocatable = true;

  constructor(
    options: Pick<PodResourcesOptions, 'socket' | 'timeout' | 'max-message-bytes'>,
    clock: Clock,
    onAsked: (question: AskedQuestion) => void = () => {},
  ) {
    this.#options = options;
    this.#clock = clock;
    this.#onAsked = onAsked;
    this.#connection = new Connection(options.socket, options['max-message-bytes']);
  }

  async list(): Promise<ListResult> {
    const { socket } = this.#options;
    const state = socketAt(socket);
    this.#meet(state);
    if (state.kind !== 'socket') {
      this.#onAsked({ method: 'List', code: statusName(status.UNAVAILABLE) });
      return { ok: false, failure: pathFailure(socket, state) };
    }
    const asked = await this.#list();
    if (asked.error !== undefined) return { ok: false, failure: await callFailure(socket, 'List', asked.error) };
    const now = socketAt(socket);
    // Replaced between the look and the answer: nobody knows whose answer it is, and that of a new kubelet lists no pods yet.
    if (now.kind === 'socket' && now.identity !== state.identity) return this.list();
    return { ok: true, api: this.#api, attribution: asked.response, identity: state.identity };
  }

  /** To be asked after a `List` that was answered. */
  async allocatable(): Promise<AllocatableResult> {
    if (this.#api !== 'v1' || !this.#hasAllocatable) return { kind: 'unsupported' };
    const asked = await this.#ask('GetAllocatableResources', v1.getAllocatableResources, AllocatableResourcesRequest.create());
    if (asked.error === undefined) return { kind: 'answer', allocatable: allocatableFrom(asked.response) };
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

  async #list(): Promise<CallResult<Attribution>> {
    const request = ListPodResourcesRequest.create();
    if (this.#api === 'v1') {
      const asked = await this.#ask('List', this.#methods.v1, request);
      if (asked.error?.code !== status.UNIMPLEMENTED) return asked;
    }
    const asked = await this.#ask('List', this.#methods.v1alpha1, request);
    if (asked.error === undefined) this.#api = 'v1alpha1';
    return asked;
  }

  async #ask<Request, Response>(
    name: AskedQuestion['method'],
    method: Method<Request, Response>,
    request: Request,
  ): Promise<CallResult<Response>> {
    const started = this.#clock.monotonic();
    const result = await this.#connection.call(method, request, this.#options.timeout);
    const durationMs = this.#clock.monotonic() - started;
    this.#onAsked({ method: name, code: statusName(result.error?.code ?? status.OK), durationMs });
    return result;
  }
}
