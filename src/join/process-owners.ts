import type { Allocation } from '../model/allocation.ts';
import type { DeviceProcess } from '../model/collection.ts';
import type { DeviceUser, HoldingPod, OwnedProcess } from '../model/device-use.ts';
import { type PodFacts, type PodFactsByName, podName } from '../model/pod-resources.ts';
import type { CheckpointUids } from './pod-uids.ts';

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
  readonly user?: DeviceUser | undefined;
  /** All pods of the node that the kubelet's Pods API lists. */
  readonly pods?: PodFactsByName | undefined;
}

/**
 * Compares the pod of each process with the holders of its device. A process without a name was not visible below `/proc`, so nothing is
 * known of it.
 */
export function processOwners(processes: readonly DeviceProcess[], related: DevicePods): readonly OwnedProcess[] {
  return processes.map((process) => ({ ...process, ...ownerOf(process, related) }));
}

type Owner = Pick<OwnedProcess, 'owner' | 'podName'>;

function ownerOf({ name, podUid, containerId }: DeviceProcess, { held, possible, user, pods = new Map() }: DevicePods): Owner {
  if (podUid === undefined && containerId === undefined) return { owner: name === undefined ? 'unknown' : 'outside' };
  const facts = [...pods.values()].find((pod) => (podUid === undefined ? hasContainer(pod, containerId) : pod.uid === podUid));
  const uid = podUid ?? facts?.uid;
  if (uid === undefined) return { owner: areContainersKnown([...held, ...possible], pods) ? 'outside' : 'unknown' };
  const holder = held.find((pod) => pod.uid === uid);
  if (holder !== undefined) return { owner: 'holder', podName: nameOf(holder) };
  const podText = facts === undefined ? `with UID ${uid}` : nameOf(facts);
  const mayBe = (pod: HoldingPod): boolean => pod.uid === undefined && (facts === undefined || podName(pod) === podName(facts));
  if (held.some(mayBe) || possible.some((pod) => pod.uid === uid || mayBe(pod))) return { owner: 'unknown', podName: podText };
  const former = user?.endedAtMs === undefined ? undefined : user.pods.find((pod) => pod.uid === uid);
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
