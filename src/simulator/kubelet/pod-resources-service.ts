import { type handleUnaryCall, type Server, status } from '@grpc/grpc-js';
import { PodResourcesListerService as V1, type PodResourcesListerServer as V1Server } from '../../generated/podresources/v1/api.ts';
import {
  PodResourcesListerService as V1alpha1,
  type PodResourcesListerServer as V1alpha1Server,
} from '../../generated/podresources/v1alpha1/api.ts';
import { allocatable, podV1, podV1alpha1, type Random, shuffled } from './encode.ts';
import { podKey, type SimulatedPod, type SimulatedStock } from './pods.ts';

/** What the service tells of, read anew for each call. */
export interface PodResourcesState {
  /** Ended ones too. */
  pods(): readonly SimulatedPod[];
  /** Frees what ended pods held. */
  freeEnded(): unknown;
  stock(): SimulatedStock;
  readonly random: Random;
}

/** `allocatable: 'gate-off'` is how kubelets before 1.28 answered. */
export interface ServedApis {
  readonly v1: boolean;
  readonly v1alpha1: boolean;
  readonly allocatable: 'yes' | 'gate-off' | 'unimplemented';
}

export const ALL_APIS: ServedApis = { v1: true, v1alpha1: true, allocatable: 'yes' };

export interface StatusAnswer {
  readonly code: number;
  readonly details: string;
}

/** Lets the call through (undefined), answers in its place, or never comes back. */
export type Gate = (method: string) => Promise<StatusAnswer | undefined>;

/** Adds the PodResources services to a server, and for what of them is not served refusals in the words of Go's gRPC, which `missed` learns of. */
export function addPodResources(
  server: Server,
  state: PodResourcesState,
  apis: ServedApis,
  gate: Gate,
  missed: (method: string) => void,
): void {
  const served = new Set<string>();
  if (apis.v1) {
    const { getAllocatableResources, ...others } = V1;
    const service = apis.allocatable === 'unimplemented' ? others : V1;
    server.addService(service, v1Methods(state, apis, gate));
    for (const { path } of Object.values(service)) served.add(path);
  }
  if (apis.v1alpha1) {
    server.addService(V1alpha1, v1alpha1Methods(state, gate));
    served.add(V1alpha1.list.path);
  }
  refuseOthers(server, served, missed);
}

/** No method that does not exist takes anything of the rate limit. */
function refuseOthers(server: Server, served: ReadonlySet<string>, missed: (method: string) => void): void {
  for (const service of ['v1.PodResourcesLister', 'v1alpha1.PodResourcesLister']) {
    const isThere = [...served].some((path) => path.startsWith(`/${service}/`));
    for (const method of ['List', 'GetAllocatableResources', 'Get']) {
      const path = `/${service}/${method}`;
      const details = isThere ? `unknown method ${method} for service ${service}` : `unknown service ${service}`;
      const refuse: handleUnaryCall<Buffer, Buffer> = (_, callback) => {
        missed(service.replace('PodResourcesLister', method));
        callback({ code: status.UNIMPLEMENTED, details });
      };
      const asIs = (bytes: Buffer): Buffer => bytes;
      if (!served.has(path)) server.register(path, refuse, asIs, asIs, 'unary');
    }
  }
}

function v1alpha1Methods(state: PodResourcesState, gate: Gate): V1alpha1Server {
  return {
    list: unary('v1alpha1.List', gate, () => {
      state.freeEnded();
      return { podResources: shuffled(state.pods(), state.random).map((pod) => podV1alpha1(pod, state.random)) };
    }),
  };
}

function v1Methods(state: PodResourcesState, apis: ServedApis, gate: Gate): V1Server {
  return {
    list: unary('v1.List', gate, () => {
      state.freeEnded();
      const active = state.pods().filter((pod) => pod.ended !== true);
      return { podResources: shuffled(active, state.random).map((pod) => podV1(pod, state.random)) };
    }),
    getAllocatableResources: unary('v1.GetAllocatableResources', gate, () => {
      if (apis.allocatable === 'gate-off') return failure(status.UNKNOWN, 'PodResources API GetAllocatableResources disabled');
      return allocatable(state.stock(), state.random);
    }),
    get: unary('v1.Get', gate, ({ podNamespace, podName }) => {
      // One that has ended too, with what is not freed yet.
      const pod = state.pods().find(({ namespace, name }) => podKey(namespace, name) === podKey(podNamespace, podName));
      if (pod === undefined) return failure(status.UNKNOWN, `pod ${podName} in namespace ${podNamespace} not found`);
      return { podResources: podV1(pod, state.random) };
    }),
  };
}

function failure(code: number, details: string): StatusAnswer {
  return { code, details };
}

function unary<Request, Response extends object>(
  method: string,
  gate: Gate,
  answer: (request: Request) => Response | StatusAnswer,
): handleUnaryCall<Request, Response> {
  return (call, callback) => {
    void gate(method).then((stopped) => {
      const result = stopped ?? answer(call.request);
      if ('code' in result) callback(result);
      else callback(null, result as Response);
    });
  };
}
