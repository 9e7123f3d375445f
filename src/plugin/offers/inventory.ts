import type { Device as KubeletDevice } from '../../generated/deviceplugin/v1beta1/api.ts';
import type { Device } from '../../model/device.ts';
import type { Verdict } from '../../model/health.ts';
import { type DeviceSelector, type IdStrategy, type PluginResource, selectorsOf } from '../../model/plugin-resource.ts';
import type { DeviceState } from '../../model/snapshot.ts';
import type { PathState } from './device-paths.ts';
import { fitsExpression } from './expression.ts';

export type KubeletHealth = 'Healthy' | 'Unhealthy';

/** Maps a verdict to the health that the kubelet gets. The health policy decides about `unknown`. */
export type HealthRule = (verdict: Verdict) => KubeletHealth;

export const healthByState: HealthRule = ({ state }) => (state === 'healthy' || state === 'degraded' ? 'Healthy' : 'Unhealthy');

/** One id that the kubelet can allocate. */
export interface Offer {
  readonly id: string;
  /** `id` without the replica's number. */
  readonly baseId: string;
  /** The devices behind the id: one device, all devices of a pool, or none for a plain device node. */
  readonly devices: readonly DeviceState[];
  /** The device node; only set for a resource made of paths. */
  readonly path?: string;
  readonly health: KubeletHealth;
  /** Why it is not healthy; empty when it is. */
  readonly why: string;
  /** Absent when unknown, or when the devices of a pool are on different NUMA nodes. */
  readonly numaNode?: number;
}

/**
 * Returns all offers of a resource, in an order that depends only on the ids. A missing device is offered as unhealthy as long as the
 * snapshot keeps it, so that the kubelet sees a fault and not a smaller node. `taken`: keys of devices that another resource offers.
 */
export function takeInventory(
  resource: PluginResource,
  states: readonly DeviceState[],
  healthOf: HealthRule,
  paths: readonly PathState[] = [],
  taken: ReadonlySet<string> = new Set(),
): Offer[] {
  if (resource.paths !== undefined) return paths.flatMap((path) => replicate(offerOfPath(path), resource.replicas));
  const devices = selectDevices(resource, states).filter(({ key }) => !taken.has(key));
  if (resource.pool !== undefined) return offerPool(devices, resource.pool, healthOf);
  const nameOf = distinctNames(devices, resource);
  const byId = new Map<string, Offer>();
  for (const state of devices) {
    const offer = offerOfDevice(state, nameOf(state), healthOf);
    // Some ids, such as an index, can move to another device. A missing device must not hide the device that has its id now.
    const rival = byId.get(offer.id)?.devices[0];
    if (rival === undefined || rival.missingSinceMs !== undefined) byId.set(offer.id, offer);
  }
  return [...byId.values()].sort((a, b) => compareIds(a.id, b.id)).flatMap((offer) => replicate(offer, resource.replicas));
}

export const kubeletDevices = (offers: readonly Offer[]): readonly KubeletDevice[] =>
  offers.map(({ id, health, numaNode }) => ({
    ID: id,
    health,
    topology: numaNode === undefined ? undefined : { nodes: [{ ID: BigInt(numaNode) }] },
  }));

/** Returns why a device must not be allocated; empty when it can be. */
export function whyWithheld(state: DeviceState, healthOf: HealthRule): string {
  if (state.missingSinceMs !== undefined) return `missing since ${new Date(state.missingSinceMs).toISOString()}`;
  if (healthOf(state.verdict) === 'Healthy') return '';
  const reasons = state.verdict.conditions.map(({ type, reason, message }) => `${type}/${reason}: ${message}`);
  return [state.verdict.state, ...reasons].join('; ');
}

/** When several devices have the same name, such as the index of an instance within its GPU, each uses its own device id instead. */
function distinctNames(devices: readonly DeviceState[], { idStrategy }: PluginResource): (state: DeviceState) => string {
  const owners = new Map<string, number>();
  for (const { device, missingSinceMs } of devices) {
    const id = kubeletId(device, idStrategy);
    owners.set(id, (owners.get(id) ?? 0) + (missingSinceMs === undefined ? 1 : 0));
  }
  return ({ device }) => {
    const id = kubeletId(device, idStrategy);
    return (owners.get(id) ?? 0) > 1 ? device.id : id;
  };
}

function offerOfDevice(state: DeviceState, id: string, healthOf: HealthRule): Offer {
  return withNuma({ id, baseId: id, devices: [state], ...judged(whyWithheld(state, healthOf)) }, state.device.numaNode);
}

function offerPool(devices: readonly DeviceState[], size: number, healthOf: HealthRule): Offer[] {
  if (devices.length === 0) return [];
  const reasons = devices.map((state) => whyWithheld(state, healthOf));
  // One usable device is enough, because a container gets only the usable ones.
  const why = reasons.some((reason) => reason === '') ? '' : devices.map(({ device }, at) => `${device.id}: ${reasons[at]}`).join('; ');
  const nodes = new Set(devices.map(({ device }) => device.numaNode));
  const numaNode = nodes.size === 1 ? [...nodes][0] : undefined;
  return Array.from({ length: size }, (_, at) => withNuma({ id: `${at}`, baseId: `${at}`, devices, ...judged(why) }, numaNode));
}

function offerOfPath({ path, present }: PathState): Offer {
  return { id: path, baseId: path, devices: [], path, ...judged(present ? '' : 'the device node is absent') };
}

const judged = (why: string): Pick<Offer, 'health' | 'why'> => ({ health: why === '' ? 'Healthy' : 'Unhealthy', why });

function withNuma(offer: Offer, numaNode: number | undefined): Offer {
  return numaNode === undefined ? offer : { ...offer, numaNode };
}

function replicate(offer: Offer, replicas = 1): Offer[] {
  return replicas === 1 ? [offer] : Array.from({ length: replicas }, (_, at) => ({ ...offer, id: `${offer.baseId}::${at}` }));
}

/** Sorts `card2` before `card10`. Other parts compare by UTF-16 code units, independent of the locale. */
export function compareIds(a: string, b: string): number {
  const parts = (id: string): string[] => id.match(/\d+|\D+/g) ?? [];
  const [left, right] = [parts(a), parts(b)];
  for (let at = 0; at < Math.min(left.length, right.length); at += 1) {
    const [x, y] = [left[at] as string, right[at] as string];
    if (x === y) continue;
    const difference = /^\d/.test(x) && /^\d/.test(y) ? Number(x) - Number(y) : 0;
    return difference !== 0 ? difference : x < y ? -1 : 1;
  }
  return left.length - right.length;
}

/**
 * Returns the devices of the snapshot that the resource selects, in snapshot order. A device whose parts are selected too is left out: a
 * container that gets the device would get the parts of another container.
 */
export function selectDevices(resource: PluginResource, devices: readonly DeviceState[]): DeviceState[] {
  const selectors = selectorsOf(resource.select);
  const parents = parentsOf(devices);
  const selected = devices.filter((state) => selectors.some((selector) => matches(selector, state.device, parents.has(state.key))));
  const divided = parentsOf(selected);
  return divided.size === 0 ? selected : selected.filter(({ key }) => !divided.has(key));
}

/** Keys of the devices that contain one of these devices. */
function parentsOf(devices: readonly DeviceState[]): ReadonlySet<string> {
  return new Set(
    devices
      .filter((state) => isPresent(state) && state.device.parent !== undefined)
      .map(({ device }) => `${device.family}/${device.parent}`),
  );
}

const isPresent = (state: DeviceState): boolean => state.missingSinceMs === undefined;

function matches(selector: DeviceSelector, device: Device, hasParts: boolean): boolean {
  return (
    device.isInternal !== true &&
    device.unserved !== 'not-in-use' &&
    device.unserved !== 'handed-over' &&
    isEqual(selector.family, device.family) &&
    isOneOf(selector.kind, [device.kind]) &&
    isLike(selector.model, device.model) &&
    isEqual(hex(selector.pciVendor), hex(device.pciVendor)) &&
    isEqual(hex(selector.pciDevice), hex(device.pciDevice)) &&
    isLike(selector.driver, device.driver) &&
    isOneOf(
      selector.linkLayer?.toLowerCase(),
      (device.linkLayers ?? []).map((layer) => layer.toLowerCase()),
    ) &&
    (isLike(selector.pfName, device.physicalFunction) || isLike(selector.pfName, device.parent ?? device.id)) &&
    isLike(selector.profile, device.profile) &&
    (selector.numaNode === undefined || selector.numaNode === device.numaNode) &&
    isOneOf(selector.devices, [device.id, device.id.toLowerCase(), ...device.aliases]) &&
    (selector.hasParts === undefined || selector.hasParts === hasParts)
  );
}

function isEqual(wanted: string | undefined, actual: string | undefined): boolean {
  return wanted === undefined || wanted === actual;
}

function isOneOf(wanted: string | readonly string[] | undefined, names: readonly string[]): boolean {
  if (wanted === undefined) return true;
  return (typeof wanted === 'string' ? [wanted] : wanted).some((name) => names.includes(name) || names.includes(name.toLowerCase()));
}

function isLike(pattern: string | undefined, actual: string | undefined): boolean {
  if (pattern === undefined) return true;
  return actual !== undefined && fitsExpression(pattern, actual);
}

const hex = (text: string | undefined): string | undefined => text?.toLowerCase().replace(/^0x/, '').padStart(4, '0');

/** Returns the id that the kubelet uses for a device, without a replica suffix. */
function kubeletId(device: Device, strategy: IdStrategy = 'name'): string {
  if (strategy === 'uuid') return device.uuid ?? device.id;
  if (strategy === 'bdf') return device.pciAddress ?? device.id;
  if (strategy === 'index') return device.index ?? device.id;
  return device.id;
}
