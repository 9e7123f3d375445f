import { AllocatableResourcesResponse, ListPodResourcesResponse, PodResourcesListerService } from '../../generated/podresources/v1/api.ts';
import { PodResourcesListerService as Alpha, ListPodResourcesResponse as ListAlpha } from '../../generated/podresources/v1alpha1/api.ts';
import type { Pseudonyms } from './pseudonyms.ts';

/** Replaces text that is no name: identifiers and known serials. */
type Text = (text: string) => string;

/**
 * Replaces the names in an answer of the kubelet. The answer is decoded and encoded again, so that fields which this version does not
 * know are dropped: nobody can tell what they name. Undefined for a method that this version does not know.
 */
export function redactAnswer(method: string, bytes: Uint8Array, pseudonyms: Pseudonyms, text: Text): Uint8Array | undefined {
  if (method === PodResourcesListerService.list.path) {
    const list = ListPodResourcesResponse.decode(bytes);
    return ListPodResourcesResponse.encode({ podResources: list.podResources.map((pod) => podOf(pod, pseudonyms, text)) }).finish();
  }
  if (method === Alpha.list.path) {
    const { podResources } = ListPodResourcesResponse.fromPartial(ListAlpha.decode(bytes));
    return ListAlpha.encode(ListAlpha.fromPartial({ podResources: podResources.map((pod) => podOf(pod, pseudonyms, text)) })).finish();
  }
  if (method === PodResourcesListerService.getAllocatableResources.path) {
    const answer = AllocatableResourcesResponse.decode(bytes);
    const devices = answer.devices.map((device) => ({ ...device, deviceIds: device.deviceIds.map(text) }));
    return AllocatableResourcesResponse.encode({ ...answer, devices }).finish();
  }
  return undefined;
}

type Pod = ListPodResourcesResponse['podResources'][number];

function podOf(pod: Pod, pseudonyms: Pseudonyms, text: Text): Pod {
  return {
    ...pod,
    namespace: pseudonyms.name(pod.namespace, 'ns'),
    name: pseudonyms.name(pod.name, 'pod'),
    containers: pod.containers.map((container) => ({
      ...container,
      name: pseudonyms.name(container.name, 'ctr'),
      devices: container.devices.map((device) => ({ ...device, deviceIds: device.deviceIds.map(text) })),
      dynamicResources: container.dynamicResources.map((claim) => ({
        ...claim,
        claimName: pseudonyms.name(claim.claimName, 'claim'),
        claimNamespace: pseudonyms.name(claim.claimNamespace, 'ns'),
        claimResources: claim.claimResources.map((one) => ({
          ...one,
          poolName: pseudonyms.name(one.poolName, 'pool'),
          deviceName: text(one.deviceName),
          cdiDevices: one.cdiDevices.map(({ name }) => ({ name: text(name) })),
        })),
      })),
    })),
  };
}
