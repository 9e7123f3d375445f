import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { ContainerAllocateResponse } from '../../generated/deviceplugin/v1beta1/api.ts';
import type { SimulatedContainer, SimulatedDevice, SimulatedPod, SimulatedStock } from './pods.ts';

/** The checkpoint's data as the kubelet keeps it in memory. `null` is Go's nil slice, which differs from an empty list. */
export interface CheckpointData {
  readonly PodDeviceEntries: readonly CheckpointEntry[] | null;
  readonly RegisteredDevices: Readonly<Record<string, readonly string[] | null>>;
}

export interface CheckpointEntry {
  readonly PodUID: string;
  readonly ContainerName: string;
  readonly ResourceName: string;
  /** Device ids keyed by NUMA node; -1 for devices without a topology. */
  readonly DeviceIDs: Readonly<Record<string, readonly string[]>>;
  /** A `ContainerAllocateResponse` in base64. */
  readonly AllocResp: string;
}

/** Returns the data of the kubelet's device checkpoint. CPUs, memory and claims are in other files of the kubelet. */
export function checkpointData(pods: readonly SimulatedPod[], stock: SimulatedStock): CheckpointData {
  const entries = pods.flatMap((pod) => pod.containers.flatMap((container) => entriesOf(pod.uid, container)));
  const registered: Record<string, string[]> = Object.fromEntries((stock.resources ?? []).map((resource) => [resource, []]));
  for (const { resource, id, healthy } of stock.devices) {
    registered[resource] ??= [];
    if (healthy !== false) registered[resource].push(id);
  }
  return { PodDeviceEntries: entries.length === 0 ? null : entries, RegisteredDevices: registered };
}

/** Writes a temporary file and renames it, so that no reader sees a partial file. */
export function writeCheckpoint(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  const temporary = join(dirname(path), `.${basename(path)}${process.pid}`);
  writeFileSync(temporary, text);
  renameSync(temporary, path);
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

/** Lists a device with several nodes under each of them, and a device without topology under -1. */
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
