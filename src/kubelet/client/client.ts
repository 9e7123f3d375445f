import { status } from '@grpc/grpc-js';
import {
  AllocatableResourcesRequest,
  AllocatableResourcesResponse,
  ListPodResourcesRequest,
  ListPodResourcesResponse,
  PodResourcesListerService as v1,
} from '../../generated/podresources/v1/api.ts';
import {
  ListPodResourcesResponse as ListPodResourcesResponseAlpha,
  PodResourcesListerService as v1alpha1,
} from '../../generated/podresources/v1alpha1/api.ts';
import type { Clock } from '../../host/clock.ts';
import { connectErrno, type SocketState, socketAt } from '../../host/fs/socket-file.ts';
import { type CallError, type CallResult, GrpcConnection, type Method, OTHER_TYPE } from '../../host/grpc-connection.ts';
import { DurationTally } from '../../model/duration-counts.ts';
import type { Observe, ObservedRequest } from '../../model/observation.ts';
import type { Allocatable, PodResourcesReason } from '../../model/pod-resources.ts';
import { type Attribution, allocatableFrom, attributionFrom } from '../allocations/allocations.ts';
import type { PodResourcesOptions } from '../options.ts';
import { byEntry } from './entries.ts';

export type ListResult =
  /** `identity` identifies the socket that answered. A different value means a different kubelet process. */
  | {
      readonly ok: true;
      readonly api: 'v1' | 'v1alpha1';
      readonly attribution: Attribution;
      readonly identity: string;
    }
  | { readonly ok: false; readonly failure: Failure };

/** `unsupported` means that this kubelet does not have the method, which is not a problem. */
export type AllocatableResult =
  | { readonly kind: 'answer'; readonly allocatable: Allocatable }
  | { readonly kind: 'unsupported' }
  | { readonly kind: 'failed'; readonly failure: Failure };

type MethodName = 'List' | 'GetAllocatableResources';

/** Number of requests of one method that ended with one gRPC status. */
export interface RequestCount {
  readonly method: MethodName;
  /** `OK`, `UNAVAILABLE`, …: a closed set. */
  readonly code: string;
  readonly count: number;
}

/** Durations of the requests per method, including failed ones. */
export type RequestDurations = ReturnType<DurationTally<MethodName>['list']>;

/** Client of the kubelet's PodResources API. The caller must send one request at a time. Methods never throw. */
export class PodResourcesClient {
  readonly #options: Pick<PodResourcesOptions, 'socket' | 'timeout' | 'max-message-bytes'>;
  readonly #clock: Clock;
  readonly #connection: GrpcConnection;
  readonly #counts = new Map<string, RequestCount>();
  readonly #durations = new DurationTally<MethodName>();
  #identity: string | undefined;
  #api: 'v1' | 'v1alpha1' = 'v1';
  #hasAllocatable = true;

  /** `observe` takes what the kubelet answers. */
  constructor(options: Pick<PodResourcesOptions, 'socket' | 'timeout' | 'max-message-bytes'>, clock: Clock, observe?: Observe) {
    this.#options = options;
    this.#clock = clock;
    const observeCall = (call: Pick<ObservedRequest, 'method' | 'answer' | 'error'>): void =>
      observe?.({ kind: 'request', identity: this.#identity ?? '', ...call });
    this.#connection = new GrpcConnection(options.socket, options['max-message-bytes'], observe && observeCall);
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
    this.#checkIdentity(state);
    if (state.kind !== 'socket') {
      this.#count('List', status.UNAVAILABLE);
      return { ok: false, failure: pathFailure(socket, state) };
    }
    const result = await this.#list();
    if (result.error !== undefined) return { ok: false, failure: await callFailure(socket, 'List', result.error) };
    const now = socketAt(socket);
    // The socket was replaced during the call. The answer may be from either kubelet, and a new one does not list pods yet: ask again.
    if (now.kind === 'socket' && now.identity !== state.identity) return this.list();
    return { ok: true, api: this.#api, attribution: result.answer, identity: state.identity };
  }

  /** Call this only after a successful `list`. */
  async allocatable(): Promise<AllocatableResult> {
    if (this.#api !== 'v1' || !this.#hasAllocatable) return { kind: 'unsupported' };
    const result = await this.#ask('GetAllocatableResources', ALLOCATABLE, AllocatableResourcesRequest.create());
    if (result.error === undefined) return { kind: 'answer', allocatable: result.answer };
    if (isUnsupported(result.error)) {
      this.#hasAllocatable = false;
      return { kind: 'unsupported' };
    }
    return { kind: 'failed', failure: await callFailure(this.#options.socket, 'GetAllocatableResources', result.error) };
  }

  close(): void {
    this.#connection.close();
  }

  /** A new socket means a new kubelet, possibly of another version, so this resets what was learned about the old one. */
  #checkIdentity(state: SocketState): void {
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
      const result = await this.#ask('List', LIST, request);
      if (result.error?.code !== status.UNIMPLEMENTED) return result;
    }
    const result = await this.#ask('List', LIST_ALPHA, request);
    if (result.error === undefined) this.#api = 'v1alpha1';
    return result;
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

const attributionOf = (answers: readonly ListPodResourcesResponse[]): Attribution =>
  attributionFrom({ podResources: answers.flatMap(({ podResources }) => podResources) });
const allocatableOf = (answers: readonly AllocatableResourcesResponse[]): Allocatable =>
  allocatableFrom({
    devices: answers.flatMap(({ devices }) => devices),
    cpuIds: answers.flatMap(({ cpuIds }) => cpuIds),
    memory: answers.flatMap(({ memory }) => memory),
  });

const LIST = { ...v1.list, responseDeserialize: byEntry((bytes) => ListPodResourcesResponse.decode(bytes), attributionOf) };
// v1alpha1 messages have a subset of the v1 fields, with the same names and numbers.
const LIST_ALPHA = {
  ...v1alpha1.list,
  responseDeserialize: byEntry((bytes) => ListPodResourcesResponse.fromPartial(ListPodResourcesResponseAlpha.decode(bytes)), attributionOf),
};
const ALLOCATABLE = {
  ...v1.getAllocatableResources,
  responseDeserialize: byEntry((bytes) => AllocatableResourcesResponse.decode(bytes), allocatableOf),
};

/** Why one request failed. `message` is identical for repeated failures with the same cause. */
export interface Failure {
  readonly reason: PodResourcesReason;
  readonly message: string;
}

/** Describes a socket path that is unusable. Does not connect. */
export function pathFailure(path: string, state: Exclude<SocketState, { kind: 'socket' }>): Failure {
  if (state.kind === 'missing') return { reason: 'socket-missing', message: `${path}: no such socket` };
  if (state.kind === 'not-a-socket') return { reason: 'not-a-socket', message: `${path}: a ${state.what}, not a socket` };
  return errnoFailure(path, state.errno);
}

/** Describes an errno of `stat` or `connect` on the path. A refused connection means that the kubelet ended and left its socket behind. */
export function errnoFailure(path: string, errno: string): Failure {
  const [reason, text] = ERRNOS[errno] ?? ['other', 'cannot connect'];
  return { reason, message: `${path}: ${text} (${errno})` };
}

const ERRNOS: Readonly<Record<string, readonly [PodResourcesReason, string]>> = {
  ENOENT: ['socket-missing', 'no such socket'],
  ENOTDIR: ['socket-missing', 'no such socket'],
  ECONNREFUSED: ['refused', 'no process listens on the socket'],
  EACCES: ['permission-denied', 'not allowed to connect'],
  EPERM: ['permission-denied', 'not allowed to connect'],
  EAGAIN: ['timeout', 'the listener does not accept connections'],
  EPROTOTYPE: ['protocol-error', 'a socket of another type'],
};

/** Classifies a failed call. For a bare "unavailable" it connects to the socket once more to find the errno. */
export async function callFailure(path: string, method: string, error: CallError): Promise<Failure> {
  if (error.code !== status.UNAVAILABLE) return statusFailure(path, method, error);
  const errno = error.errno ?? (await connectErrno(path));
  const state = socketAt(path);
  if (state.kind !== 'socket') return pathFailure(path, state);
  if (errno !== undefined) return errnoFailure(path, errno);
  return { reason: 'protocol-error', message: `${path}: ${method}: the connection was closed or the peer does not speak gRPC` };
}

/** Classifies a failed call by its gRPC status only. */
function statusFailure(path: string, method: string, { code, details }: CallError): Failure {
  const at = `${path}: ${method}: `;
  switch (code) {
    case status.DEADLINE_EXCEEDED:
      return { reason: 'timeout', message: `${at}no answer in time` };
    case status.RESOURCE_EXHAUSTED:
      // HTTP/2 ended the answer, and the library puts this text in the place of the kubelet's status.
      if (details.startsWith('Bandwidth exhausted')) return statusFailure(path, method, { code: status.INTERNAL, details });
      return isTooLarge(details)
        ? { reason: 'too-large', message: `${at}the answer is larger than 16 MiB` }
        : { reason: 'rate-limited', message: `${at}rejected by the kubelet's rate limit` };
    case status.UNIMPLEMENTED:
      // The client library reports an answer without a message with this text.
      if (details === 'No message received') return statusFailure(path, method, { code: status.INTERNAL, details });
      return { reason: 'unimplemented', message: `${at}the kubelet serves neither v1 nor v1alpha1` };
    case status.PERMISSION_DENIED:
    case status.UNAUTHENTICATED:
      return { reason: 'permission-denied', message: `${at}the kubelet denied permission` };
    case status.INTERNAL:
    case status.CANCELLED:
      return {
        reason: 'protocol-error',
        message: `${at}${details.startsWith(OTHER_TYPE) ? details : 'the answer is not valid gRPC or is incomplete'}`,
      };
    default:
      return { reason: 'other', message: `${at}${statusName(code)} ${details.slice(0, 200)}`.trimEnd() };
  }
}

/** Both gRPC libraries, HTTP/2 and the rate limit give RESOURCE_EXHAUSTED; only the text distinguishes them. */
function isTooLarge(details: string): boolean {
  return /larger than max/i.test(details);
}

/** Kubelets before 1.28 return UNKNOWN with "… disabled" for a method whose feature gate is off. */
export function isUnsupported({ code, details }: CallError): boolean {
  return code === status.UNIMPLEMENTED || (code === status.UNKNOWN && /disabled/i.test(details));
}

/** `OK`, `UNAVAILABLE`, …: a closed set. */
export function statusName(code: number): string {
  return status[code] ?? 'UNKNOWN';
}
