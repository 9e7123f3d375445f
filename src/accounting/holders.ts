import type { Allocation } from '../model/allocation.ts';
import type { Device } from '../model/device.ts';
import type { HeldRecord } from '../model/device-record.ts';
import { containerNameOf } from '../model/device-use.ts';
import type { Reading } from '../model/metric.ts';
import type { PodFactsByName } from '../model/pod-resources.ts';
import type { ContainerReadings } from '../model/snapshot.ts';

/** The part of a device's record that the accounts use. */
export type UsedDevice = Pick<
  HeldRecord,
  'key' | 'device' | 'holders' | 'readings' | 'processes' | 'strangers' | 'users' | 'delegating' | 'current'
>;

/** Input of the accounts, from one snapshot. */
export interface UsageInput {
  readonly nowMs: number;
  readonly monotonicMs: number;
  /** All devices that are known, missing ones too. */
  readonly devices: readonly UsedDevice[];
  readonly containerReadings: readonly ContainerReadings[];
  /** Wall clock of the kubelet's last answer; absent before the first. A new answer has another value. */
  readonly answeredAtMs?: number | undefined;
  /** Absent where the Pods API is not asked. */
  readonly pods?: PodFactsByName | undefined;
  /** UID of the pod that has an allocation. Undefined while it is not known. */
  uidOf(allocation: Allocation): string | undefined;
  /** Number of faults of one container on a device, as readings. Absent where faults are not counted. */
  faultsOf?(device: Device, holder: string, uid: string | undefined): readonly Reading[];
}

/** Ids by which a container holds a device. The value is the claim, and empty for an id of a device plugin. */
export type HolderIds = Readonly<Record<string, string>>;

/** One container that holds a device, with all ids by which it holds it. */
export interface Holder {
  /** Namespace, pod and container as one text. */
  readonly name: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  /** The first by name, where the container holds the device by several resources. */
  readonly resource: string;
  readonly uid: string | undefined;
  readonly ids: HolderIds;
  /** The container's ids among the ids of all holders, 0 to 1. */
  readonly share: number;
  /** It holds the device for its users, who have its share. */
  readonly isDelegated?: true;
}

export const nameOf = ({ namespace, pod, container }: Pick<Allocation, 'namespace' | 'pod' | 'container'>): string =>
  `${namespace}/${pod}/${container}`;

/** Joins the allocations of one device by container. The shares add up to 1. */
export function holdersOf(allocations: readonly Allocation[], uidOf: UsageInput['uidOf']): readonly Holder[] {
  const found = new Map<string, Holder>();
  for (const allocation of allocations) {
    const { namespace, pod, container, resource } = allocation;
    const name = nameOf(allocation);
    const known = found.get(name);
    found.set(name, {
      ...{ name, namespace, pod, container },
      resource: known !== undefined && known.resource < resource ? known.resource : resource,
      uid: known?.uid ?? uidOf(allocation),
      ids: { ...known?.ids, ...idOf(allocation) },
      share: (known?.share ?? 0) + 1 / allocations.length,
    });
  }
  return [...found.values()];
}

/**
 * The holders of a device, and its users: containers that use it without holding it. They divide the share of holders that delegate, or the
 * whole of a device without a holder; beside holders that do not delegate they have the share 0. The shares add up to 1.
 */
export function withUsers(
  holders: readonly Holder[],
  { users = [], delegating = [] }: Pick<UsedDevice, 'users' | 'delegating'>,
): readonly Holder[] {
  if (users.length === 0) return holders;
  const names = new Set(delegating.map(nameOf));
  const given = holders.length === 0 ? 1 : holders.reduce((sum, { name, share }) => (names.has(name) ? sum + share : sum), 0);
  return [
    ...holders.map((holder): Holder => (names.has(holder.name) ? { ...holder, share: 0, isDelegated: true } : holder)),
    ...users.map((user): Holder => {
      const named = containerNameOf(user);
      return { ...named, name: nameOf(named), uid: user.uid, ids: {}, share: given / users.length };
    }),
  ];
}

function idOf({ resource, deviceId, claim }: Allocation): HolderIds {
  const id = `${resource} ${deviceId}`;
  return claim === undefined ? { [id]: '' } : { [`${id} ${claim.shareId ?? ''}`]: `${claim.namespace}/${claim.name}` };
}

/**
 * Whether an id by which a container holds a device has another holder now, or leads to another device of the family. An id of a device plugin has
 * one container; that of a claim has the claim's containers.
 */
export function hasHoldMoved(device: string, ids: HolderIds, idsOf: ReadonlyMap<string, HolderIds>): boolean {
  const family = device.slice(0, device.indexOf('/') + 1);
  return [...idsOf].some(([key, now]) =>
    Object.entries(ids).some(([id, claim]) =>
      key === device ? now[id] !== undefined && (claim === '' || now[id] !== claim) : now[id] !== undefined && key.startsWith(family),
    ),
  );
}
