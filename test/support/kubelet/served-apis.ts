import { type handleUnaryCall, type Server, status } from '@grpc/grpc-js';
import { type GetPodResourcesRequest, PodResourcesListerService as V1 } from '../../../src/generated/podresources/v1/api.ts';
import { PodResourcesListerService as V1alpha1 } from '../../../src/generated/podresources/v1alpha1/api.ts';
import {
  allocatableV1,
  CallRefused,
  getV1,
  listV1,
  listV1alpha1,
  type PodResourcesState,
  unary,
} from '../../../src/sim/kubelet/pod-resources-service.ts';

/** `allocatable: 'gate-off'` is how kubelets before 1.28 answered. */
export interface ServedApis {
  readonly v1: boolean;
  readonly v1alpha1: boolean;
  readonly allocatable: 'yes' | 'gate-off' | 'unimplemented';
}

export const ALL_APIS: ServedApis = { v1: true, v1alpha1: true, allocatable: 'yes' };

export interface CallEvents {
  /** Of a method that is served. Its answer waits until this ends; where it fails, so does the call. */
  arrived(method: string): Promise<void>;
  /** Of one that is not there, which takes nothing of the rate limit. */
  missed(method: string): void;
}

/** Adds what a version serves of PodResources, and for the rest refusals in the words of Go's gRPC. */
export function addApis(server: Server, state: PodResourcesState, apis: ServedApis, { arrived, missed }: CallEvents): void {
  const after = <Request, Answer>(method: string, answer: (request: Request) => Answer): handleUnaryCall<Request, Answer> =>
    unary(async (request: Request) => {
      await arrived(method);
      return answer(request);
    });
  const served = new Set<string>();
  if (apis.v1) {
    const { getAllocatableResources, ...others } = V1;
    const service = apis.allocatable === 'unimplemented' ? others : V1;
    server.addService(service, {
      list: after('v1.List', () => listV1(state)),
      getAllocatableResources: after('v1.GetAllocatableResources', () => {
        if (apis.allocatable === 'yes') return allocatableV1(state);
        throw new CallRefused(status.UNKNOWN, 'PodResources API GetAllocatableResources disabled');
      }),
      get: after('v1.Get', (request: GetPodResourcesRequest) => getV1(state, request)),
    });
    for (const { path } of Object.values(service)) served.add(path);
  }
  if (apis.v1alpha1) {
    server.addService(V1alpha1, { list: after('v1alpha1.List', () => listV1alpha1(state)) });
    served.add(V1alpha1.list.path);
  }
  refuseOthers(server, served, missed);
}

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
