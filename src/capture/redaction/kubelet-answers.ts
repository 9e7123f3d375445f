import { AllocatableResourcesResponse, ListPodResourcesResponse, PodResourcesListerService } from '../../generated/podresources/v1/api.ts';
import { PodResourcesListerService as Alpha, ListPodResourcesResponse as ListAlpha } from '../../generated/podresources/v1alpha1/api.ts';
import type { Documents } from './documents.ts';
import type { Pseudonyms } from './pseudonyms.ts';

/**
 * Replaces the names in an answer of the kubelet. The answer is decoded and encoded again, so that fields which this version does not
 * know are dropped, because they may name anything. Undefined for a method that this version does not know.
 */
export function redactAnswer(method: string, bytes: Uint8Array, pseudonyms: Pseudonyms, ids: Documents): Uint8Array | undefined {
  if (method === PodResourcesListerService.list.path) {
    const list = ListPodResourcesResponse.decode(bytes);
    return ListPodResourcesResponse.encode({ podResources: list.podResources.map((pod) => podOf(pod, pseudonyms, ids)) }).finish();
  }
  if (method === Alpha.list.path) {
    const { podResources } = ListPodResourcesResponse.fromPartial(ListAlpha.decode(bytes));
    return ListAlpha.encode(ListAlpha.fromPartial({ podResources: podResources.map((pod) => podOf(pod, pseudonyms, ids)) })).finish();
  }
  if (method === PodResourcesListerService.getAllocatableResources.path) {
    const answer = AllocatableResourcesResponse.decode(bytes);
    const { cpuIds } = answer;
    return AllocatableResourcesResponse.encode({ devices: devicesOf(answer, ids), cpuIds, memory: memoryOf(answer, ids) }).finish();
  }
  return undefined;
}

type Pod = ListPodResourcesResponse['podResources'][number];

function podOf(pod: Pod, pseudonyms: Pseudonyms, ids: Documents): Pod {
  return {
    namespace: pseudonyms.name(pod.namespace, 'ns'),
    name: pseudonyms.name(pod.name, 'pod'),
    cpuIds: pod.cpuIds,
    memory: memoryOf(pod, ids),
    containers: pod.containers.map((container) => ({
      name: pseudonyms.name(container.name, 'ctr'),
      devices: devicesOf(container, ids),
      cpuIds: container.cpuIds,
      memory: memoryOf(container, ids),
      dynamicResources: container.dynamicResources.map((claim) => ({
        claimName: pseudonyms.name(claim.claimName, 'claim'),
        claimNamespace: pseudonyms.name(claim.claimNamespace, 'ns'),
        claimResources: claim.claimResources.map((one) => ({
          driverName: ids.public(one.driverName),
          poolName: pseudonyms.name(one.poolName, 'pool'),
          deviceName: ids.id(one.deviceName),
          cdiDevices: one.cdiDevices.map(({ name }) => ({ name: ids.cdiName(name) })),
          ...(one.shareId === undefined ? {} : { shareId: ids.id(one.shareId) }),
        })),
      })),
    })),
  };
}

const devicesOf = ({ devices }: Pick<Pod['containers'][number], 'devices'>, ids: Documents): Pod['containers'][number]['devices'] =>
  devices.map(({ resourceName, deviceIds, topology }) => ({
    resourceName: ids.public(resourceName),
    deviceIds: deviceIds.map(ids.id),
    topology,
  }));

const memoryOf = ({ memory }: Pick<Pod, 'memory'>, ids: Documents): Pod['memory'] =>
  memory.map((one) => ({ ...one, memoryType: ids.id(one.memoryType) }));
