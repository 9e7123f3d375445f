import type { Allocation } from '../model/allocation.ts';
import type { DeviceProcess } from '../model/collection.ts';
import type { HoldingPod, LastHolders, OwnedProcess } from '../model/device-use.ts';
import { type CheckpointEntry, type PodFacts, type PodFactsByName, podName } from '../model/pod-resources.ts';

/**
 * The processes of pods that do not hold the device: their pod ended and they live on, or they use it without a right. What they use
 * belongs to no holder. Only what is certain counts: while the UIDs of holders are not known, some of them are strangers only where they are
 * of more pods than these.
 */
export function strangersAmong(
  processes: readonly DeviceProcess[],
  holders: readonly Allocation[],
  uidOf: (holder: Allocation) => string | undefined,
): readonly DeviceProcess[] {
  if (holders.length === 0 || processes.length === 0) return NONE;
  const uids = new Set(holders.map(uidOf));
  const others = processes.filter(({ podUid }) => podUid !== undefined && !uids.has(podUid));
  const unknown = new Set(holders.flatMap((holder) => (uidOf(holder) === undefined ? [podName(holder)] : [])));
  return new Set(others.map(({ podUid }) => podUid)).size > unknown.size ? others : NONE;
}

const NONE: readonly DeviceProcess[] = [];

/** An agent in a cgroup namespace of its own may see only the id of the container. */
export function podOf(
  { podUid, containerId }: Pick<DeviceProcess, 'podUid' | 'containerId'>,
  pods: PodFactsByName = new Map(),
): PodFacts | undefined {
  for (const pod of pods.values()) {
    if (podUid === undefined ? pod.containers.some(({ id }) => id === containerId) : pod.uid === podUid) return pod;
  }
  return undefined;
}

/**
 * The pods of allocations, each once, sorted by name, with the UID where exactly one is known. A pod that ended with the same devices may
 * still be in the checkpoint. Two UIDs for one holder are therefore none.
 */
export function holdingPods(
  holders: readonly Allocation[],
  inCheckpoint: CheckpointUids,
  pods: PodFactsByName | undefined,
): readonly HoldingPod[] {
  if (holders.length === 0) return NO_PODS;
  const byName = new Map<string, Allocation[]>();
  for (const holder of holders) {
    const name = podName(holder);
    const own = byName.get(name);
    if (own === undefined) byName.set(name, [holder]);
    else own.push(holder);
  }
  return [...byName]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, own]): HoldingPod => {
      const { namespace, pod } = own[0] as Allocation;
      const known = pods?.get(name)?.uid;
      const uids = known === undefined ? [...new Set(own.flatMap((holder) => [...inCheckpoint(holder)]))] : [known];
      return uids.length === 1 ? { namespace, pod, uid: uids[0] as string } : { namespace, pod };
    });
}

const NO_PODS: readonly HoldingPod[] = [];

/** The pods that a process may belong to, and that matter for its device. */
export interface DevicePods {
  /** They hold the device, its parts or its parent. */
  readonly held: readonly HoldingPod[];
  /** They hold something that leads to no known device, so they may hold this one. */
  readonly possible: readonly HoldingPod[];
  readonly lastHolders?: LastHolders | undefined;
  /** A holder of the device delegates its use. */
  readonly isDelegated?: boolean;
  /** Pods with ids that do not tell which device they use. */
  readonly delegates?: readonly HoldingPod[];
  /** All pods of the node that the kubelet's Pods API lists. */
  readonly pods?: PodFactsByName | undefined;
}

/**
 * Compares the pod of each process with the holders of its device. A process without a name was not visible below `/proc`, so nothing is
 * known of it.
 */
export function processOwners(processes: readonly DeviceProcess[], related: DevicePods): readonly OwnedProcess[] {
  return processes.map((process) => ({ ...process, ...podKindOf(process, related) }));
}

type Owner = Pick<OwnedProcess, 'owner' | 'podName'>;

function podKindOf({ name, podUid, containerId }: DeviceProcess, related: DevicePods): Owner {
  const { held, possible, lastHolders, isDelegated = false, delegates = [], pods = new Map() } = related;
  if (podUid === undefined && containerId === undefined) return { owner: name === undefined ? 'unknown' : 'outside' };
  const facts = [...pods.values()].find((pod) => (podUid === undefined ? hasContainer(pod, containerId) : pod.uid === podUid));
  const uid = podUid ?? facts?.uid;
  if (uid === undefined) return { owner: areContainersKnown([...held, ...possible], pods) ? 'outside' : 'unknown' };
  const holder = held.find((pod) => pod.uid === uid);
  if (holder !== undefined) return { owner: 'holder', podName: nameOf(holder) };
  const podText = facts === undefined ? `with UID ${uid}` : nameOf(facts);
  const mayBe = (pod: HoldingPod): boolean => pod.uid === undefined && (facts === undefined || podName(pod) === podName(facts));
  if (held.some(mayBe)) return { owner: 'unknown', podName: podText };
  if (isDelegated || delegates.some((pod) => pod.uid === uid)) return { owner: 'delegate', podName: podText };
  if ([...possible, ...delegates].some((pod) => pod.uid === uid || mayBe(pod))) return { owner: 'unknown', podName: podText };
  const former = lastHolders?.endedAtMs === undefined ? undefined : lastHolders.pods.find((pod) => pod.uid === uid);
  return former === undefined ? { owner: 'pod', podName: podText } : { owner: 'former', podName: nameOf(former) };
}

/**
 * An agent in a cgroup namespace of its own may see a container of a pod without the pod. A container without a pod is therefore outside
 * of these pods only when the containers of each of them are known.
 */
function areContainersKnown(related: readonly HoldingPod[], pods: PodFactsByName): boolean {
  return related.every((pod) => (pods.get(podName(pod))?.containers.length ?? 0) > 0);
}

const hasContainer = ({ containers }: PodFacts, containerId: string | undefined): boolean =>
  containers.some(({ id }) => id === containerId);

const nameOf = ({ namespace, pod }: Pick<HoldingPod, 'namespace' | 'pod'>): string => `${namespace}/${pod}`;

/** UIDs of the pods to which the kubelet's checkpoint assigns the device id. A pod that ended may still be among them. */
export type CheckpointUids = (allocation: Allocation) => ReadonlySet<string>;

/** UID of the pod that has an allocation. Undefined while no source gives exactly one. */
export type UidOf = (allocation: Allocation) => string | undefined;

const NO_UIDS: ReadonlySet<string> = new Set();

export function checkpointUids(checkpoint: readonly CheckpointEntry[]): CheckpointUids {
  const uids = new Map<string, Set<string>>();
  for (const { podUid, container, resource, deviceIds } of checkpoint) {
    for (const id of deviceIds) {
      const slot = slotOf(container, resource, id);
      const known = uids.get(slot);
      if (known === undefined) uids.set(slot, new Set([podUid]));
      else known.add(podUid);
    }
  }
  return ({ container, resource, deviceId }) => uids.get(slotOf(container, resource, deviceId)) ?? NO_UIDS;
}

/** The checkpoint comes first. The kubelet's Pods API gives the UID for each name, also for claims, and decides between several. */
export function podUids(inCheckpoint: CheckpointUids, pods?: PodFactsByName): UidOf {
  return (allocation) => {
    const found = inCheckpoint(allocation);
    return found.size === 1 ? found.values().next().value : pods?.get(podName(allocation))?.uid;
  };
}

/**
 * The pods that have one and the same id of a device plugin, which belongs to one container. Init and app containers of one pod have the same ids
 * by design. The kubelet may list a pod that ended: its Pods API does not. `isKept`: the kubelet's latest answer lacks the allocation.
 */
export function podsOfSameId(
  holders: readonly Allocation[],
  pods: PodFactsByName | undefined,
  isKept: (holder: Allocation) => boolean,
): readonly string[] {
  const byId = new Map<string, Set<string>>();
  for (const holder of holders) {
    if (holder.claim !== undefined || isKept(holder) || pods?.has(podName(holder)) === false) continue;
    const id = slotOf('', holder.resource, holder.deviceId);
    byId.set(id, (byId.get(id) ?? new Set()).add(nameOf(holder)));
  }
  return [...([...byId.values()].find(({ size }) => size > 1) ?? [])].sort();
}

const slotOf = (container: string, resource: string, deviceId: string): string => `${container}\u0000${resource}\u0000${deviceId}`;
