import { AllocatableResourcesResponse, ListPodResourcesResponse, PodResourcesListerService } from '../../generated/podresources/v1/api.ts';
import { PodResourcesListerService as Alpha, ListPodResourcesResponse as ListAlpha } from '../../generated/podresources/v1alpha1/api.ts';
import type { Documents } from './documents.ts';
import { list, number, type Rule, record, text } from './keep.ts';
import type { Pseudonyms } from './pseudonyms.ts';

/**
 * Replaces the names in an answer of the kubelet. The answer is decoded and encoded again, so that fields which this version does not
 * know are dropped, because they may name anything. Undefined for a method that this version does not know.
 */
export function redactAnswer(method: string, bytes: Uint8Array, pseudonyms: Pseudonyms, documents: Documents): Uint8Array | undefined {
  const [id, known] = [text(documents.id), text(documents.public)];
  const name = (prefix: string): Rule => text((value) => pseudonyms.name(value, prefix));
  const topology = record({ nodes: list(record({ ID: number })) });
  const cpuIds = list(number);
  const memory = list(record({ memoryType: id, size: number, topology }));
  const devices = list(record({ resourceName: known, deviceIds: list(id), topology }));
  const cdiDevices = list(record({ name: text((value) => documents.cdiName(value)) }));
  const claimResources = list(record({ driverName: known, poolName: name('pool'), deviceName: id, cdiDevices, shareId: id }));
  const dynamicResources = list(record({ claimName: name('claim'), claimNamespace: name('ns'), claimResources }));
  const containers = list(record({ name: name('ctr'), devices, cpuIds, memory, dynamicResources }));
  const pods = record({ podResources: list(record({ namespace: name('ns'), name: name('pod'), cpuIds, memory, containers })) });
  if (method === PodResourcesListerService.list.path)
    return ListPodResourcesResponse.encode(
      ListPodResourcesResponse.fromPartial(pods(ListPodResourcesResponse.decode(bytes)) as object),
    ).finish();
  if (method === Alpha.list.path) return ListAlpha.encode(ListAlpha.fromPartial(pods(ListAlpha.decode(bytes)) as object)).finish();
  if (method !== PodResourcesListerService.getAllocatableResources.path) return undefined;
  const allocatable = record({ devices, cpuIds, memory })(AllocatableResourcesResponse.decode(bytes));
  return AllocatableResourcesResponse.encode(AllocatableResourcesResponse.fromPartial(allocatable as object)).finish();
}
