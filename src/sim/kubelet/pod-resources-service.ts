import { type handleUnaryCall, type Server, status } from '@grpc/grpc-js';
import {
  type AllocatableResourcesResponse,
  type GetPodResourcesRequest,
  type GetPodResourcesResponse,
  type ListPodResourcesResponse,
  PodResourcesListerService as V1,
} from '../../generated/podresources/v1/api.ts';
import {
  type ListPodResourcesResponse as ListV1alpha1,
  PodResourcesListerService as V1alpha1,
} from '../../generated/podresources/v1alpha1/api.ts';
import { allocatable, podV1, podV1alpha1, type Random, shuffled } from './encode.ts';
import { podKey, type SimulatedPod, type SimulatedStock } from './pods.ts';

/** Data of the service; each call reads it again. */
export interface PodResourcesState {
  /** Returns all pods, including ended ones. */
  pods(): readonly SimulatedPod[];
  /** Frees the devices of ended pods. */
  freeEnded(): unknown;
  stock(): SimulatedStock;
  readonly random: Random;
}

/** Thrown by a method to fail the call with this status. */
export class CallRefused extends Error {
  readonly code: number;

  constructor(code: number, details: string) {
    super(details);
    this.code = code;
  }
}

export function listV1({ pods, freeEnded, random }: PodResourcesState): ListPodResourcesResponse {
  freeEnded();
  const active = pods().filter((pod) => pod.ended !== true);
  return { podResources: shuffled(active, random).map((pod) => podV1(pod, random)) };
}

export function allocatableV1({ stock, random }: PodResourcesState): AllocatableResourcesResponse {
  return allocatable(stock(), random);
}

/** Also returns an ended pod, with the devices that are not freed yet. */
export function getV1({ pods, random }: PodResourcesState, { podNamespace, podName }: GetPodResourcesRequest): GetPodResourcesResponse {
  const pod = pods().find(({ namespace, name }) => podKey(namespace, name) === podKey(podNamespace, podName));
  if (pod === undefined) throw new CallRefused(status.UNKNOWN, `pod ${podName} in namespace ${podNamespace} not found`);
  return { podResources: podV1(pod, random) };
}

export function listV1alpha1({ pods, freeEnded, random }: PodResourcesState): ListV1alpha1 {
  freeEnded();
  return { podResources: shuffled(pods(), random).map((pod) => podV1alpha1(pod, random)) };
}

/** Adds both versions of the service. */
export function addPodResources(server: Server, state: PodResourcesState): void {
  server.addService(V1, {
    list: unary(() => listV1(state)),
    getAllocatableResources: unary(() => allocatableV1(state)),
    get: unary((request: GetPodResourcesRequest) => getV1(state, request)),
  });
  server.addService(V1alpha1, { list: unary(() => listV1alpha1(state)) });
}

/** `answer` can throw a {@link CallRefused}. */
export function unary<Request, Answer>(answer: (request: Request) => Answer | Promise<Answer>): handleUnaryCall<Request, Answer> {
  return (call, callback) => {
    // `async` turns what `answer` throws into a rejection.
    (async () => answer(call.request))().then(
      (value) => callback(null, value),
      (error: Error) => callback({ code: error instanceof CallRefused ? error.code : status.UNKNOWN, details: error.message }),
    );
  };
}
