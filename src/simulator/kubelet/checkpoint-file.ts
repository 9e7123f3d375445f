import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ContainerAllocateResponse } from '../../generated/deviceplugin/v1beta1/api.ts';
import type { SimulatedContainer, SimulatedDevice, SimulatedPod, SimulatedStock } from './pods.ts';

/** Text of the kubelet's device checkpoint. Pods are in it as of the last write; CPUs, memory and claims have other files. */
export function checkpointText(pods: readonly SimulatedPod[], stock: SimulatedStock): string {
  const entries = pods.flatMap((pod) => (pod.ended === true ? [] : pod.containers.flatMap((container) => entriesOf(pod.uid, container))));
  const registered: Record<string, string[]> = Object.fromEntries((stock.resources ?? []).map((resource) => [resource, []]));
  for (const { resource, id, healthy } of stock.devices) {
    registered[resource] ??= [];
    if (healthy !== false) registered[resource].push(id);
  }
  const data = { PodDeviceEntries: entries.length === 0 ? null : entries, RegisteredDevices: registered };
  return JSON.stringify({ Data: data, Checksum: fnv1a(JSON.stringify(data)) });
}

/** Written beside it and renamed, so that no reader sees half of it. */
export function writeCheckpoint(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  const temporary = join(dirname(path), `.${basename(path)}${process.pid}`);
  writeFileSync(temporary, text);
  renameSync(temporary, path);
}

function entriesOf(uid: string, { name: container, devices = [], responses = {} }: SimulatedContainer): object[] {
  const resources = [...new Set(devices.map(({ resource }) => resource))];
  return resources.map((resource) => ({
    PodUID: uid,
    ContainerName: container,
    ResourceName: resource,
    DeviceIDs: byNumaNode(devices.filter((device) => device.resource === resource)),
    AllocResp: encoded(responses[resource]),
  }));
}

function encoded(response: ContainerAllocateResponse | undefined): string {
  return response === undefined ? '' : Buffer.from(ContainerAllocateResponse.encode(response).finish()).toString('base64');
}

/** A device with several nodes stands under each, one without topology under -1. */
function byNumaNode(devices: readonly SimulatedDevice[]): Record<string, string[]> {
  const nodes: Record<string, string[]> = {};
  for (const { id, numaNodes = [] } of devices) {
    for (const node of numaNodes.length === 0 ? [-1] : numaNodes) {
      nodes[node] ??= [];
      nodes[node].push(id);
    }
  }
  return nodes;
}

/** The kubelet's checksum is of the same kind, over a dump that only Go can write. */
function fnv1a(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}
