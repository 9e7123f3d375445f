import { Client, credentials, status } from '@grpc/grpc-js';
import { PodResourcesListerClient } from '../../../../src/generated/podresources/v1/api.ts';
import { PodResourcesListerClient as OldClient } from '../../../../src/generated/podresources/v1alpha1/api.ts';
import type { AnyKubelet, Stage } from './any-kubelet.ts';
import type { Admission, WantedContainer, WantedPod } from './exchanged.ts';
import type { VendorDevice } from './vendor-plugin.ts';

export const TOY = 'example.com/toy';
export const pod = (name: string, ...containers: WantedContainer[]): WantedPod => ({
  namespace: 'ml',
  name,
  uid: `uid-${name}`,
  containers,
});
export const one = (name: string, count: number, resource = TOY): WantedPod => pod(name, { name: 'main', wants: { [resource]: count } });
export const four: readonly VendorDevice[] = ['a', 'b', 'c', 'd'].map((id) => ({ id }));
/** Two on each NUMA node. */
export const onNodes: readonly VendorDevice[] = four.map(({ id }, at) => ({ id, nodes: [at >> 1] }));
export const healthy = (...states: boolean[]): VendorDevice[] =>
  states.map((state, at) => ({ id: four[at]?.id as string, healthy: state }));

export async function amounts(kubelet: AnyKubelet, resource = TOY): Promise<string> {
  const { capacity, allocatable } = await kubelet.capacity();
  return `${capacity[resource]}/${allocatable[resource]}`;
}

export async function started({ plugin, until, kubelet }: Stage, devices: readonly VendorDevice[], more: object = {}) {
  const vendor = await plugin({ resource: TOY, devices, ...more }).start();
  const all = `${devices.length}/${devices.filter((device) => device.healthy !== false).length}`;
  await until('it is known', async () => (await amounts(kubelet)) === all);
  return vendor;
}

/** Devices by container, or why not. */
export function outcome({ refused, given }: Admission): unknown {
  if (refused !== undefined) return `${refused.reason}: ${refused.message}`;
  return Object.fromEntries(Object.entries(given ?? {}).map(([name, { devices }]) => [name, devices[TOY]?.join('') ?? '']));
}

/** `pod/container device@nodes`, sorted. */
export async function listed(kubelet: AnyKubelet): Promise<string[]> {
  return (await kubelet.list())
    .flatMap(({ name, containers = [] }) =>
      containers.flatMap((container) => [
        `${name}/${container.name}`,
        ...(container.devices ?? []).map(
          ({ device_ids, topology }) =>
            `${name}/${container.name} ${device_ids.join()}@${topology === undefined ? '' : (topology.nodes ?? []).map(({ ID = '0' }) => ID).join()}`,
        ),
      ]),
    )
    .sort();
}

export async function listedByOldest(kubelet: AnyKubelet): Promise<string[]> {
  const client = new OldClient(`unix:${kubelet.podResourcesSocket}`, credentials.createInsecure());
  const answer = await new Promise<{
    podResources: { name: string; containers: { name: string; devices: { deviceIds: string[] }[] }[] }[];
  }>((resolve, reject) => client.list({}, (error, told) => (error === null ? resolve(told) : reject(error)))).finally(() => client.close());
  return answer.podResources
    .flatMap(({ name, containers }) =>
      containers.map(
        (container) =>
          `${name}/${container.name} ${container.devices
            .flatMap(({ deviceIds }) => deviceIds)
            .sort()
            .join('')}`,
      ),
    )
    .sort();
}

interface Checkpoint {
  readonly Data: {
    readonly PodDeviceEntries:
      | readonly {
          readonly PodUID: string;
          readonly ContainerName: string;
          readonly ResourceName: string;
          readonly DeviceIDs: Readonly<Record<string, readonly string[]>>;
          readonly AllocResp: string;
        }[]
      | null;
    readonly RegisteredDevices: Readonly<Record<string, readonly string[] | null>>;
  };
}

/** The checkpoint without its checksum and with all lists in order. */
export function checkpoint(kubelet: AnyKubelet): unknown {
  const { Data } = JSON.parse(kubelet.checkpointText()) as Checkpoint;
  const entries = Data.PodDeviceEntries?.map((entry) => ({
    ...entry,
    DeviceIDs: Object.fromEntries(Object.entries(entry.DeviceIDs).map(([node, ids]) => [node, [...ids].sort().join('')])),
  })).sort((a, b) => (a.PodUID + a.ContainerName < b.PodUID + b.ContainerName ? -1 : 1));
  const registered = Object.fromEntries(
    Object.entries(Data.RegisteredDevices).map(([name, ids]) => [name, [...(ids ?? [])].sort().join('')]),
  );
  return { entries: entries ?? null, registered };
}

/** The list counts a moment before it is written. */
export function readsCheckpoint(kubelet: AnyKubelet): boolean {
  try {
    return checkpoint(kubelet) !== undefined;
  } catch {
    return false;
  }
}

/** Proposes the first ids by their names. */
export const inOrder = (available: readonly string[], must: readonly string[], size: number): readonly string[] =>
  [...must, ...[...available].sort().filter((id) => !must.includes(id))].slice(0, size);

export const failure = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => 'ok',
    (error: Error) => error.message,
  );

export interface Answer {
  readonly code: number;
  readonly details: string;
}

/** Calls of the socket of PodResources, all at once over one connection, with a message without content each. */
export async function emptyCalls(kubelet: AnyKubelet, paths: readonly string[]): Promise<Answer[]> {
  const settings = { 'grpc.use_local_subchannel_pool': 1 };
  const client = new Client(`unix:${kubelet.podResourcesSocket}`, credentials.createInsecure(), settings);
  const asIs = (bytes: Buffer): Buffer => bytes;
  const call = (path: string): Promise<Answer> =>
    new Promise((resolve) => {
      client.makeUnaryRequest(path, asIs, asIs, Buffer.alloc(0), (error) => {
        resolve({ code: error?.code ?? status.OK, details: error?.details ?? '' });
      });
    });
  return Promise.all(paths.map(call)).finally(() => client.close());
}

/** What Get says of a pod: each container and its devices, or why not. */
export async function gotten(kubelet: AnyKubelet, podName: string): Promise<string> {
  const client = new PodResourcesListerClient(`unix:${kubelet.podResourcesSocket}`, credentials.createInsecure());
  const answer = await new Promise<string>((resolve) => {
    client.get({ podNamespace: 'ml', podName }, (error, told) => {
      const containers = told?.podResources?.containers ?? [];
      const all = containers.map(({ name, devices }) => `${name} ${devices.flatMap(({ deviceIds }) => deviceIds).join('')}`);
      resolve(error === null ? all.join() : error.message);
    });
  });
  client.close();
  return answer;
}
