import { type ClaimName, labelOf } from '../../model/claim-hardware.ts';
import type { Device } from '../../model/device.ts';
import type { DeviceState, Snapshot } from '../../model/snapshot.ts';

/** Name of a device in the feed. */
export interface FeedName {
  readonly pool: string;
  readonly device: string;
}

export interface NamingRules {
  /** Pool of the names that come from the device itself. */
  readonly pool: string;
  /** Names that known DRA drivers give to a device. */
  claimNames(device: Device): readonly ClaimName[];
}

/**
 * Names of each device, by device key. A device has the names in the claims that hold it, the names that known drivers give to it, and its
 * id, aliases, UUID and PCI address as DNS labels. A name that fits two devices names none of them, unless one contains the other.
 */
export function deviceNamesByKey({ devices, allocations }: Snapshot, rules: NamingRules): ReadonlyMap<string, readonly FeedName[]> {
  const bearers = new Map<string, { readonly name: FeedName; readonly keys: Set<string> }>();
  const add = (name: FeedName, key: string): void => {
    const text = `${name.pool}/${name.device}`;
    const found = bearers.get(text);
    if (found === undefined) bearers.set(text, { name, keys: new Set([key]) });
    else found.keys.add(key);
  };
  for (const { allocation, devices: held } of allocations) {
    const [key, ...others] = held;
    if (allocation.claim !== undefined && key !== undefined && others.length === 0) add(allocation.claim, key);
  }
  for (const { key, device } of devices) for (const name of ownNames(device, rules)) add({ pool: rules.pool, device: name }, key);
  const states = new Map(devices.map((state) => [state.key, state]));
  const names = new Map<string, FeedName[]>();
  for (const { name, keys } of bearers.values()) {
    const key = onlyBearer([...keys], states);
    if (key !== undefined) names.set(key, [...(names.get(key) ?? []), { pool: name.pool, device: name.device }]);
  }
  return names;
}

function ownNames(device: Device, { claimNames }: NamingRules): ReadonlySet<string> {
  const { id, aliases, uuid, pciAddress } = device;
  const address = pciAddress === undefined ? [] : [pciAddress, `pci-${pciAddress}`];
  const plain = [id, ...aliases, ...(uuid === undefined ? [] : [uuid]), ...address].map(labelOf);
  return new Set([...claimNames(device).map(({ device: name }) => name), ...plain].filter((name) => name !== undefined));
}

/** A part often has the PCI address of the device that contains it. The address then names the parent. */
function onlyBearer(keys: readonly string[], states: ReadonlyMap<string, DeviceState>): string | undefined {
  if (keys.length === 1) return keys[0];
  const wholes = keys.filter((key) => states.get(key)?.device.parent === undefined);
  return wholes.length === 1 ? wholes[0] : undefined;
}
