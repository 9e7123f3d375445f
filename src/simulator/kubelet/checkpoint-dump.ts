/** The checkpoint's data as the kubelet keeps it in memory. `null` is Go's nil, which is not the same as nothing in a list. */
export interface CheckpointData {
  readonly PodDeviceEntries: readonly CheckpointEntry[] | null;
  readonly RegisteredDevices: Readonly<Record<string, readonly string[] | null>>;
}

export interface CheckpointEntry {
  readonly PodUID: string;
  readonly ContainerName: string;
  readonly ResourceName: string;
  /** Device ids by NUMA node; -1 for those without a topology. */
  readonly DeviceIDs: Readonly<Record<string, readonly string[]>>;
  /** A `ContainerAllocateResponse` in base64. */
  readonly AllocResp: string;
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
