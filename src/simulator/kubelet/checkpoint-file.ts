import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ContainerAllocateResponse } from '../../generated/deviceplugin/v1beta1/api.ts';
import { type CheckpointData, type CheckpointEntry, checksumOf } from './checkpoint-dump.ts';
import type { SimulatedContainer, SimulatedDevice, SimulatedPod, SimulatedStock } from './pods.ts';

/** What a device manager finds when it starts. */
export interface ReadCheckpoint {
  readonly resources: readonly string[];
  readonly grants: readonly {
    readonly podUid: string;
    readonly container: string;
    readonly resource: string;
    readonly devices: readonly SimulatedDevice[];
    readonly response: ContainerAllocateResponse;
  }[];
}

/** Text of the kubelet's device checkpoint. Pods are in it as of the last write; CPUs, memory and claims have other files. */
export function checkpointText(pods: readonly SimulatedPod[], stock: SimulatedStock): string {
  const entries = pods.flatMap((pod) => pod.containers.flatMap((container) => entriesOf(pod.uid, container)));
  const registered: Record<string, string[]> = Object.fromEntries((stock.resources ?? []).map((resource) => [resource, []]));
  for (const { resource, id, healthy } of stock.devices) {
    registered[resource] ??= [];
    if (healthy !== false) registered[resource].push(id);
  }
  const data: CheckpointData = { PodDeviceEntries: entries.length === 0 ? null : entries, RegisteredDevices: registered };
  return JSON.stringify({ Data: data, Checksum: checksumOf(data) });
}

/** Written beside it and renamed, so that no reader sees half of it. */
export function writeCheckpoint(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  const temporary = join(dirname(path), `.${basename(path)}${process.pid}`);
  writeFileSync(temporary, text);
  renameSync(temporary, path);
}

/** Nothing of a file that is not there, that cannot be read, or whose checksum is another: the kubelet then begins with nothing. */
export function readCheckpoint(path: string): ReadCheckpoint {
  try {
    const { Data, Checksum } = JSON.parse(readFileSync(path, 'utf8')) as { readonly Data: CheckpointData; readonly Checksum: number };
    if (checksumOf(Data) !== Checksum) return { resources: [], grants: [] };
    return { resources: Object.keys(Data.RegisteredDevices), grants: (Data.PodDeviceEntries ?? []).map(grantOf) };
  } catch {
    return { resources: [], grants: [] };
  }
}

function grantOf({ PodUID, ContainerName, ResourceName, DeviceIDs, AllocResp }: CheckpointEntry): ReadCheckpoint['grants'][number] {
  const nodes = new Map<string, number[]>();
  for (const [node, ids] of Object.entries(DeviceIDs)) for (const id of ids) nodes.set(id, [...(nodes.get(id) ?? []), Number(node)]);
  const devices = [...nodes].map(([id, numaNodes]) => ({
    resource: ResourceName,
    id,
    ...(numaNodes.includes(-1) ? {} : { numaNodes: numaNodes.sort() }),
  }));
  const response = ContainerAllocateResponse.decode(Buffer.from(AllocResp, 'base64'));
  return { podUid: PodUID, container: ContainerName, resource: ResourceName, devices, response };
}

function entriesOf(uid: string, { name: container, devices = [], responses = {} }: SimulatedContainer): CheckpointEntry[] {
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
