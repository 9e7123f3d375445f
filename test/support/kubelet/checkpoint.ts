import { readFileSync } from 'node:fs';
import { ContainerAllocateResponse } from '../../../src/generated/deviceplugin/v1beta1/api.ts';
import type { CheckpointData, CheckpointEntry } from '../../../src/sim/kubelet/checkpoint.ts';
import type { SimulatedDevice } from '../../../src/sim/kubelet/pods.ts';

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

/**
 * The kubelet's checksum of that data: FNV-1a in 32 bits over the text that the spew library makes of it (`%#v`, keys in order).
 * Source: checkpointmanager/checksum and util/hash of Kubernetes 1.36.3, whose package and type names are part of the text.
 */
export function checksumOf(data: CheckpointData): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(dumpOf(data))) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

/** What a type is called stands only where the type does not follow from what is around it. */
function dumpOf({ PodDeviceEntries, RegisteredDevices }: CheckpointData): string {
  const entries = PodDeviceEntries === null ? '<nil>' : list(PodDeviceEntries.map(entryDump));
  const registered = map(Object.entries(RegisteredDevices).sort(byBytes), (ids) => (ids === null ? '<nil>' : list(ids)));
  return (
    `(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)${entries} ` +
    `RegisteredDevices:(map[string][]string)${registered}}`
  );
}

function entryDump({ PodUID, ContainerName, ResourceName, DeviceIDs, AllocResp }: CheckpointEntry): string {
  const ids = map(
    Object.entries(DeviceIDs).sort(([a], [b]) => Number(a) - Number(b)),
    list,
  );
  const bytes = list([...Buffer.from(AllocResp, 'base64')]);
  return (
    `{PodUID:(string)${PodUID} ContainerName:(string)${ContainerName} ResourceName:(string)${ResourceName} ` +
    `DeviceIDs:(checkpoint.DevicesPerNUMA)${ids} AllocResp:([]uint8)${bytes}}`
  );
}

const list = (items: readonly (string | number)[]): string => `[${items.join(' ')}]`;

const map = <T>(entries: readonly (readonly [string, T])[], text: (value: T) => string): string =>
  `map[${entries.map(([key, value]) => `${key}:${text(value)}`).join(' ')}]`;

/** Go compares the bytes of strings. */
const byBytes = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number =>
  Buffer.compare(Buffer.from(a), Buffer.from(b));
