import { type Allocation, allocationKey, type Claim, type PoolRule, type Resolve } from '../model/allocation.ts';
import { type ClaimHardware, type ClaimHardwareIndex, type ClaimName, type ClaimTimes, claimDeviceKey } from '../model/claim-hardware.ts';
import { ORIGINS } from '../model/declaration.ts';
import { defined } from '../model/defined.ts';
import { type Device, deviceKey } from '../model/device.ts';
import { matchesAny } from '../model/excluded.ts';
import type { PodResources } from '../model/pod-resources.ts';
import type { AllocationState, Contradiction, JoinWay, UnresolvedReason } from '../model/snapshot.ts';
import { HardwareJoin } from './claim-devices.ts';
import { addTo, type Origins, rankOf } from './name-conflicts.ts';
import { isDelegatedId } from './users.ts';

/** Rules that map the device ids of plugins to devices. */
export interface ResolveRules {
  readonly pools: readonly PoolRule[];
  /** Keyed by family; only for families whose plugin ids differ from a device's id and aliases. */
  readonly families: ReadonlyMap<string, Resolve>;
  /** Keyed by family; returns whether the ids of a resource may be bare numbers that the family knows. */
  readonly numbers?: ReadonlyMap<string, (resource: string) => boolean>;
  /** Keyed by family; the names of a device in claims. */
  readonly claimNames?: ReadonlyMap<string, (device: Device) => readonly ClaimName[]>;
  /** The most trusted family that knows an id wins. Default: all families are equal. */
  readonly origins?: Origins;
  /** Patterns of resources, and of drivers of claims, that stand for no hardware. A device that one of their ids names counts nevertheless. */
  readonly withoutHardware?: readonly string[];
  /** Ids that do not tell which device their container uses: see `DelegationRules`. */
  readonly delegatedIds?: readonly string[];
  /** Resources that this agent serves. */
  readonly served?: ServedIds;
  /** The hardware that the files of DRA drivers name for claims. */
  readonly claims?: ClaimHardwareIndex;
  /** When these files were read, keyed as `claims`. */
  readonly claimTimes?: ReadonlyMap<string, ClaimTimes>;
  /** When the device with this key was seen. Undefined: the times are not compared. */
  readonly sightOf?: (deviceKey: string) => DeviceSight | undefined;
}

/** When this run of the agent saw a device, on the monotonic clock. */
export interface DeviceSight {
  readonly isMissing: boolean;
  /** End of the first reading that had the device; absent when no reading had it. */
  readonly firstMs: number | undefined;
  /** Begin of the last one. */
  readonly lastMs: number | undefined;
}

/** Device keys of one resource: by device id, or the same keys for all places of a pool. */
export type Served = { readonly byId: ReadonlyMap<string, readonly string[]> } | { readonly pool: readonly string[] };
/** Keyed by resource. */
export type ServedIds = ReadonlyMap<string, Served>;

/** Device keys of an allocation, and whether more than one family of the same origin claims its id. */
export interface Resolution {
  readonly devices: readonly string[];
  readonly ambiguous: boolean;
  /** Only for a claim. */
  readonly by?: JoinWay;
  readonly contradiction?: Contradiction;
  /** The allocation is of something that is no device, such as CPUs, or does not tell the device. */
  readonly isDeviceless?: true;
  /** The claim names a part of this present device, and no part was found. */
  readonly whole?: { readonly key: string; readonly hasParts: boolean };
  /** A device fits that was first seen at this time, after the files of the claim were last read. Another read of them decides. */
  readonly unconfirmedMs?: number;
}

const NONE: Resolution = { devices: [], ambiguous: false };

/**
 * Finds the devices for (resource, device id). For a claim the most exact source wins: the driver's files, the name, a configured pool. For
 * the id of a device plugin a configured pool wins; otherwise the families decide. A bare number matches no device, because guessing an
 * index could select the wrong device; only a family that declares the resource can know it.
 */
export class Resolver {
  readonly #rules: ResolveRules;
  readonly #devices: readonly Device[];
  readonly #byName = new Map<string, Device[]>();
  readonly #byFamily = new Map<string, Device[]>();
  readonly #missing: ReadonlySet<Device>;
  /** Two for each origin, the most trusted first: the present devices, and the missing ones. */
  #hardware: readonly HardwareJoin[] | undefined;

  constructor(devices: readonly Device[], rules: ResolveRules) {
    this.#devices = devices;
    this.#rules = rules;
    this.#missing = new Set(devices.filter((device) => rules.sightOf?.(deviceKey(device))?.isMissing === true));
    for (const device of devices) {
      addTo(this.#byFamily, device.family, device);
      this.#name(device.id, device);
      for (const alias of device.aliases) this.#name(alias, device);
    }
  }

  #name(name: string, device: Device): void {
    const named = this.#byName.get(name.toLowerCase());
    if (named === undefined) this.#byName.set(name.toLowerCase(), [device]);
    else if (named.at(-1) !== device) named.push(device);
  }

  resolve(allocation: Allocation): Resolution {
    const { claim, resource } = allocation;
    const found = claim === undefined ? this.#granted(allocation) : this.#claimed(allocation, claim);
    if (found.devices.length > 0) return found;
    if (matchesAny(this.#rules.withoutHardware ?? [], claim?.driver ?? resource)) return { ...found, isDeviceless: true };
    const whole = claim && this.#wholeOf(claim);
    return whole === undefined ? found : { ...found, whole };
  }

  /** Drivers name a part by the name of its device, a hyphen, and what tells the parts apart. */
  #wholeOf(claim: Claim): Resolution['whole'] {
    const whole = this.#devices.find((device) =>
      this.#rules.claimNames
        ?.get(device.family)?.(device)
        .some((name) => name.driver === claim.driver && claim.device.startsWith(`${name.device}-`)),
    );
    if (whole === undefined || this.#missing.has(whole)) return undefined;
    const hasParts = this.#devices.some(
      (device) => device.parent === whole.id && device.family === whole.family && !this.#missing.has(device),
    );
    return { key: deviceKey(whole), hasParts };
  }

  #granted(allocation: Allocation): Resolution {
    const pool = this.#pool(allocation);
    if (pool !== undefined) return { devices: pool, ambiguous: false };
    return isDelegatedId(this.#rules.delegatedIds ?? [], allocation) ? { ...NONE, isDeviceless: true } : this.#named(allocation);
  }

  /** Asks each method, so that a contradiction shows. The first method with a result wins. */
  #claimed(allocation: Allocation, claim: Claim): Resolution {
    const key = claimDeviceKey(claim);
    const stated = this.#rules.claims?.get(key) ?? [];
    const unconfirmed: number[] = [];
    const named = this.#named(allocation);
    const answers: Answer[] = [
      ...stated.map(
        (hardware): Answer => ({ by: hardware.by, devices: this.#found(hardware, key, unconfirmed), isFinal: isExact(hardware) }),
      ),
      { by: 'name', devices: this.#allowed(named.devices, stated), isFinal: named.ambiguous },
      { by: 'rule', devices: this.#allowed(this.#pool(allocation) ?? [], stated), isFinal: false },
    ];
    const at = answers.findIndex(({ devices, isFinal }) => devices.length > 0 || isFinal);
    const first = answers[at];
    const none = unconfirmed.length === 0 ? NONE : { ...NONE, unconfirmedMs: Math.max(...unconfirmed) };
    if (first === undefined) return namesNothing(stated) ? { ...none, isDeviceless: true } : none;
    if (first.by === 'name' && named.ambiguous) return named;
    const other = answers.slice(at + 1).find(({ devices }) => devices.length > 0 && !covers(devices, first.devices));
    return {
      ...none,
      devices: first.devices,
      ...(first.devices.length === 0 ? {} : { by: first.by }),
      ...defined({ contradiction: other && { first: said(first), other: said(other) } }),
    };
  }

  /** Takes present devices first: the nodes and the address of a missing device may belong to another one by now. */
  #found(hardware: ClaimHardware, key: string, unconfirmed: number[]): readonly string[] {
    for (const join of this.#joins) {
      const device = join.find(hardware, (one) => this.#isOfItsTime(hardware, key, one, unconfirmed));
      if (device !== undefined) return [deviceKey(device)];
    }
    return [];
  }

  /** Without the devices that the stated nodes or addresses exclude. */
  #allowed(keys: readonly string[], stated: readonly ClaimHardware[]): readonly string[] {
    if (keys.length === 0 || !stated.some(({ by }) => by === 'cdi')) return keys;
    const isExcluded = (device: Device): boolean =>
      this.#joins.some((join) => join.has(device) && stated.some((hardware) => join.excludes(hardware, device)));
    return this.#devices.filter((device) => keys.includes(deviceKey(device)) && !isExcluded(device)).map(deviceKey);
  }

  get #joins(): readonly HardwareJoin[] {
    const { origins } = this.#rules;
    this.#hardware ??= ORIGINS.flatMap((_, rank) => {
      const ofRank = this.#devices.filter(({ family }) => rankOf(origins, family) === rank);
      const missing = ofRank.filter((device) => this.#missing.has(device));
      const present = missing.length === 0 ? ofRank : ofRank.filter((device) => !this.#missing.has(device));
      return [present, missing].filter(({ length }) => length > 0).map((devices) => new HardwareJoin(devices));
    });
    return this.#hardware;
  }

  /**
   * A part can be destroyed and made again for another claim with the same nodes, and hardware can be replaced. Nodes therefore join a claim
   * and a part, or a missing device, only when a read of the device began after the files of the claim were first seen, and a read of the
   * files began after the device was first seen. The device then existed while the claim had it: drivers write the file after the part was made, and
   * delete it before they make another one.
   */
  #isOfItsTime({ isPartition }: ClaimHardware, key: string, device: Device, unconfirmed: number[]): boolean {
    const sight = this.#rules.sightOf?.(deviceKey(device));
    const times = this.#rules.claimTimes?.get(key);
    if (sight === undefined || times === undefined || (isPartition !== true && !sight.isMissing)) return true;
    const { firstMs, lastMs } = sight;
    if (firstMs === undefined || lastMs === undefined) return isPartition !== true;
    if (lastMs < times.firstMs) return false;
    if (times.lastMs < firstMs) unconfirmed.push(firstMs);
    return times.lastMs >= firstMs;
  }

  #named(allocation: Allocation): Resolution {
    const served = this.#served(allocation);
    if (served !== undefined) return { devices: served, ambiguous: false };
    const isNumber = /^\d+$/.test(allocation.deviceId);
    const claims = new Map<string, readonly string[]>();
    for (const [family, devices] of this.#byFamily) {
      if (isNumber && this.#rules.numbers?.get(family)?.(allocation.resource) !== true) continue;
      const ids = this.#claimedBy(family, devices, allocation);
      if (ids.length > 0) claims.set(family, ids);
    }
    // The id may be a replica of a resource that this agent no longer serves, or of another plugin. Pods keep their ids.
    const deviceId = withoutReplica(allocation.deviceId);
    if (claims.size === 0 && deviceId !== allocation.deviceId) return this.#named({ ...allocation, deviceId });
    if (claims.size === 0 && isNumber) return { devices: this.#ofGroup(allocation), ambiguous: false };
    const ranks = [...claims.keys()].map((family) => rankOf(this.#rules.origins, family));
    const first = [...claims.values()].filter((_, n) => ranks[n] === Math.min(...ranks));
    return { devices: first.flat(), ambiguous: first.length > 1 };
  }

  /**
   * The plugin of KubeVirt names any PCI device by its IOMMU group. Elsewhere a number may be an index.
   * Source: kubevirt pkg/virt-handler/device-manager/pci_device.go.
   */
  #ofGroup({ pod, container, deviceId }: Allocation): readonly string[] {
    if (container !== 'compute' || !pod.startsWith('virt-launcher-')) return [];
    const node = `/dev/vfio/${deviceId}`;
    return this.#presentOf(this.#devices).flatMap((device) =>
      device.characterDevices?.includes(node) === true ? [deviceKey(device)] : [],
    );
  }

  /** Also resolves places and replicas of an earlier configuration, because pods may still hold them. */
  #served({ resource, deviceId }: Allocation): readonly string[] | undefined {
    const served = this.#rules.served?.get(resource);
    if (served === undefined) return undefined;
    if ('pool' in served) return /^\d+$/.test(deviceId) ? served.pool : undefined;
    const id = withoutReplica(deviceId);
    return served.byId.get(deviceId) ?? served.byId.get(id) ?? served.byId.get(`${id}::0`);
  }

  #claimedBy(family: string, devices: readonly Device[], allocation: Allocation): readonly string[] {
    const isNumber = /^\d+$/.test(allocation.deviceId);
    const named = isNumber ? [] : (this.#byName.get(allocation.deviceId.toLowerCase()) ?? []).filter((device) => device.family === family);
    if (named.length > 0) return withoutWhole(this.#presentOf(named), allocation.deviceId).map(deviceKey);
    const resolve = this.#rules.families.get(family);
    const present = this.#presentOf(devices);
    const ids = resolve?.(allocation, present) ?? [];
    const found = ids.length > 0 || present === devices ? ids : (resolve?.(allocation, devices) ?? []);
    return found.map((id) => deviceKey({ family, id }));
  }

  /** Without the missing devices, unless all are missing: another device may have their place by now. */
  #presentOf(devices: readonly Device[]): readonly Device[] {
    const present = this.#missing.size === 0 ? devices : devices.filter((device) => !this.#missing.has(device));
    return present.length === 0 || present.length === devices.length ? devices : present;
  }

  /** Undefined when no pool is configured for the resource. */
  #pool({ resource }: Allocation): readonly string[] | undefined {
    const pool = this.#rules.pools.find((rule) => rule.resource === resource);
    if (pool === undefined) return undefined;
    const patterns = pool.devices.map((pattern) => pattern.toLowerCase());
    const matches = (device: Device): boolean => [device.id, ...device.aliases].some((name) => matchesAny(patterns, name.toLowerCase()));
    return this.#devices.filter(matches).map(deviceKey);
  }
}

/**
 * A plugin may give a part of a device the id of its parent, as for the first partition of a GPU. The part is meant. A board that has the
 * name of its part as an alias stays: the holder of the part uses the board too.
 */
function withoutWhole(named: readonly Device[], deviceId: string): readonly Device[] {
  return named.filter(({ id }) => id.toLowerCase() !== deviceId.toLowerCase() || !named.some(({ parent }) => parent === id));
}

interface Answer {
  readonly by: JoinWay;
  readonly devices: readonly string[];
  /** No less exact method is asked, even when no device was found. */
  readonly isFinal: boolean;
}

const said = ({ by, devices }: Answer): Contradiction['first'] => ({ by, devices });

/** Metadata that names hardware which no probe knows is true nevertheless. A guess by name would find another device. */
const isExact = ({ by, pciAddress, uuid }: ClaimHardware): boolean => by === 'metadata' && (pciAddress ?? uuid) !== undefined;

const covers = (devices: readonly string[], part: readonly string[]): boolean =>
  part.length > 0 && part.every((key) => devices.includes(key));

/** A driver that writes metadata names the hardware of each device there, if it is hardware. */
const namesNothing = ([stated, another]: readonly ClaimHardware[]): boolean =>
  another === undefined && stated?.by === 'metadata' && (stated.pciAddress ?? stated.uuid ?? stated.interfaceName) === undefined;

const withoutReplica = (deviceId: string): string => deviceId.replace(/::\d+$/, '');

/** Every allocation with its devices, and every device with its allocations. */
export interface Owners {
  readonly allocations: readonly AllocationState[];
  /** Maps a device key to the allocations of the device. */
  readonly holders: ReadonlyMap<string, readonly Allocation[]>;
  /** The latest time of this name among the results of the resolver. */
  readonly unconfirmedMs?: number;
}

/**
 * Joins the kubelet's allocations with the devices that probes found. An allocation that no family knows is kept, with the reason. An
 * allocation that two families claim is assigned to neither.
 */
export function findOwners(
  podResources: PodResources,
  resolver: Pick<Resolver, 'resolve'>,
  isMissing: (deviceKey: string) => boolean,
): Owners {
  const holders = new Map<string, Allocation[]>();
  let latestMs: number | undefined;
  const allocations = podResources.allocations.map((allocation): AllocationState => {
    const held = podResources.held.size > 0 && podResources.held.has(allocationKey(allocation));
    const { devices, ambiguous, by, contradiction, isDeviceless, whole, unconfirmedMs } = resolver.resolve(allocation);
    if (unconfirmedMs !== undefined) latestMs = Math.max(latestMs ?? unconfirmedMs, unconfirmedMs);
    if (ambiguous) return { allocation, devices: [], candidates: devices, unresolved: 'ambiguous', held };
    const unresolved = isDeviceless === true ? undefined : whyUnresolved(devices, isMissing, whole);
    return {
      allocation,
      devices,
      ...defined({ by, contradiction, unresolved }),
      ...(unresolved === undefined || whole === undefined ? {} : { whole: whole.key }),
      held,
    };
  });
  for (const { allocation, devices } of allocations) for (const key of devices) addTo(holders, key, allocation);
  return { allocations, holders, ...defined({ unconfirmedMs: latestMs }) };
}

function whyUnresolved(
  devices: readonly string[],
  isMissing: (deviceKey: string) => boolean,
  whole: Resolution['whole'],
): UnresolvedReason | undefined {
  if (whole !== undefined) return whole.hasParts ? 'unknown-part' : 'no-part';
  if (devices.length === 0) return 'no-device';
  return devices.every(isMissing) ? 'missing-device' : undefined;
}
