import { type ClaimName, labelOf } from '../../model/claim-hardware.ts';
import { conditionLine } from '../../model/condition-text.ts';
import type { Device } from '../../model/device.ts';
import { type FamilyReading, familyReading } from '../../model/family-reading.ts';
import type { HealthState, Verdict } from '../../model/health.ts';
import { shortened } from '../../model/one-line.ts';
import type { DeviceState, Snapshot } from '../../model/snapshot.ts';

/** The three values of the kubelet's health API for DRA devices. */
export type FeedHealth = 'HEALTHY' | 'UNHEALTHY' | 'UNKNOWN';

/** A degraded device stays in service, as for the device plugin. Its message names the condition. */
const HEALTH_OF: Readonly<Record<HealthState, FeedHealth>> = {
  healthy: 'HEALTHY',
  degraded: 'HEALTHY',
  unhealthy: 'UNHEALTHY',
  unknown: 'UNKNOWN',
};

/** The kubelet cuts longer messages. Bytes, so that no client counts more of them. */
const MESSAGE_BYTES = 1_024;

export interface FeedDevice {
  readonly state: DeviceState;
  readonly names: readonly FeedName[];
  readonly health: FeedHealth;
  /** One line; empty when there is nothing to report. */
  readonly message: string;
}

/** All devices at one time. */
export interface FeedList {
  readonly devices: readonly FeedDevice[];
  /** How far each family was read: only then the absence of a device or a fault says something. */
  readonly families: readonly FamilyReading[];
  readonly takenAtMs: number;
  /** Equal for two lists with the same content. */
  readonly signature: string;
}

/** `fault`: why the agent does not work. The state of all devices is then unknown. */
export function feedList(snapshot: Snapshot, rules: NamingRules, fault: string | undefined): FeedList {
  const names = deviceNamesByKey(snapshot, rules);
  const devices = snapshot.devices.map((state): FeedDevice => {
    const verdict =
      fault === undefined ? judged(state.verdict) : ({ health: 'UNKNOWN', message: shortened(fault, MESSAGE_BYTES) } as const);
    return { state, names: names.get(state.key) ?? [], ...verdict };
  });
  const content = devices.map(({ state, ...rest }) => [state.key, state.device.pciAddress, state.device.uuid, rest]);
  const readings = snapshot.families.map(familyReading);
  const families = fault === undefined ? readings : readings.map((one) => ({ ...one, complete: false, problem: 'agent-stuck' }));
  return { devices, families, takenAtMs: snapshot.takenAtMs, signature: JSON.stringify([content, families]) };
}

function judged({ state, conditions }: Verdict): Pick<FeedDevice, 'health' | 'message'> {
  const texts = conditions.filter(({ severity }) => severity !== 'info').map(conditionLine);
  return { health: HEALTH_OF[state], message: shortened(texts.join(' | '), MESSAGE_BYTES) };
}

/** Name of a device in the feed. */
interface FeedName {
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
function deviceNamesByKey({ devices, allocations }: Snapshot, rules: NamingRules): ReadonlyMap<string, readonly FeedName[]> {
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
