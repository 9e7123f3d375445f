import type { Allocation, Claim } from '../../model/allocation.ts';
import type { ContainerLocality } from '../../model/container-locality.ts';
import { containerNameOf } from '../../model/device-use.ts';
import type { MetricSpec } from '../../model/metric.ts';
import type { ExclusiveResources, MemoryBlock, PodExclusiveResources } from '../../model/pod-resources.ts';
import { type PodFactsByName, podName } from '../../model/pod-resources.ts';
import type { AllocationState, DeviceState, Snapshot } from '../../model/snapshot.ts';
import { joinLabels, type LabelText, labelText, labelTextOf } from '../page/labels.ts';
import type { Page } from '../page/page.ts';

const POD = ['namespace', 'pod'] as const;
const HOLDER = [...POD, 'container'] as const;
const KUBELET = 'PodResources `List`';

/** The kubelet's data about containers, joined with devices. The label lists are complete: no `device` is added. */
export const containerMetrics = {
  allocation: gauge(
    'container_device_allocation',
    '1 for each device id that a container holds.',
    [...HOLDER, 'resource', 'device', 'device_id'],
    `${KUBELET}. \`device_id\` is the kubelet's id; \`device\` is left out while no device is known for it; a pool has one series per device.`,
  ),
  share: gauge(
    'container_device_share_ratio',
    'Share of a device that a container holds, 1 when it holds the device alone.',
    [...HOLDER, 'resource', 'device'],
    `${KUBELET}: the container's ids of this device among all allocated ones. Absent where ids do not name parts of equal size (pools, shared claims, DRA capacity).`,
  ),
  held: gauge(
    'container_device_allocation_held',
    '1 for an allocation that is kept although the latest answer of the kubelet lacks it.',
    [...HOLDER, 'resource', 'device_id'],
    `${KUBELET}: it is empty for a while after a restart of the kubelet.`,
  ),
  unresolved: gauge(
    'container_device_unresolved',
    '1 for an allocation that has no device, by reason.',
    [...HOLDER, 'resource', 'device_id', 'reason'],
    `${KUBELET}, join.`,
  ),
  healthy: gauge(
    'container_device_healthy',
    '1 while a device that the container holds is healthy or degraded, 0 while it is unhealthy.',
    [...HOLDER, 'resource', 'device'],
    'Verdict. Absent while it is unknown.',
  ),
  claim: gauge(
    'container_device_claim_info',
    'ResourceClaim by which a container holds a device; always 1.',
    [...HOLDER, 'claim_namespace', 'claim', 'driver', 'pool', 'claim_device', 'share_id', 'extended_resource', 'device'],
    `${KUBELET}: \`dynamic_resources\`. \`extended_resource\`: the one extended resource of the container, where \`--podsapi\` tells it.`,
  ),
  podInfo: gauge(
    'container_device_pod_info',
    'UID of a pod that holds a device; always 1.',
    [...POD, 'pod_uid'],
    'Pods API of the kubelet; only with `--podsapi`.',
  ),
  user: gauge(
    'container_device_user_info',
    'Pod that uses a device that the kubelet does not name for it; always 1.',
    [...POD, 'pod_uid', 'device'],
    'Processes of the device. The other series of such a pod have no `container` and no `resource`. Without the Pods API, `pod` is the UID.',
  ),
  joined: gauge(
    'container_device_allocation_info',
    'How the agent found the device of a ResourceClaim; always 1.',
    [...HOLDER, 'resource', 'device_id', 'device', 'by'],
    "`by`: `metadata` for the driver's metadata file, `cdi` for its CDI specs, `name` for the name of the claim's device, `rule` for `join.rules`.",
  ),
  path: gauge(
    'container_device_path',
    'Way between two devices of a container that holds a GPU, in the words of `topo -m`; always 1.',
    [...HOLDER, 'from', 'to', 'path'],
    'PCIe tree in sysfs, and direct links by the driver. `path` is left out while the way is unknown. Of a container with more than 256 pairs, only the farthest pair of each device.',
  ),
  locality: gauge(
    'container_device_locality',
    'Farthest way between the GPUs of a container (`between="gpus"`), and from a GPU to the nearest network device that the container holds (`between="gpu-nic"`); always 1.',
    [...HOLDER, 'between', 'path'],
    'As `container_device_path`. Absent where it does not apply or a way is unknown.',
  ),
  offNode: gauge(
    'container_device_off_node',
    'Devices of a container that holds a GPU that are on other NUMA nodes than its CPUs.',
    HOLDER,
    `${KUBELET}: \`cpu_ids\`, and sysfs. Absent without exclusive CPUs, and while a node is unknown.`,
  ),
  exclusiveCpus: gauge('container_exclusive_cpus', 'CPUs that a container has for itself.', HOLDER, `${KUBELET}: \`cpu_ids\`.`),
  exclusiveMemory: gauge(
    'container_exclusive_memory_bytes',
    'Memory that a container has for itself on a NUMA node.',
    [...HOLDER, 'kind', 'numa_node'],
    `${KUBELET}: \`memory\`. \`numa_node\` lists several nodes with commas where a block spans them.`,
  ),
  podExclusiveCpus: gauge(
    'pod_exclusive_cpus',
    'CPUs that a pod has for itself. Those of its containers are a part of them: do not add the two.',
    POD,
    `${KUBELET}: \`cpu_ids\` of the pod. Absent before Kubernetes 1.37, and without the gate \`PodLevelResourceManagers\`.`,
  ),
  podExclusiveMemory: gauge(
    'pod_exclusive_memory_bytes',
    'Memory that a pod has for itself on a NUMA node. That of its containers is a part of it: do not add the two.',
    [...POD, 'kind', 'numa_node'],
    `${KUBELET}: \`memory\` of the pod, as \`pod_exclusive_cpus\`.`,
  ),
} as const satisfies Readonly<Record<string, MetricSpec>>;

type Add = (declared: MetricSpec, labels: LabelText, value: number | bigint) => void;

export function addContainers(page: Page, snapshot: Snapshot, holderText: HolderText): void {
  const add = uniqueAdder(page);
  const ids = new Map(snapshot.devices.map((state) => [state.key, state.device.id]));
  for (const state of snapshot.allocations) addAllocation(add, state, ids, snapshot.pods, holderText);
  for (const { namespace, pod, uid } of snapshot.pods?.values() ?? [])
    add(containerMetrics.podInfo, joinLabels(holderText({ namespace, pod }), labelText({ pod_uid: uid })), 1);
  const pools = new Set(snapshot.allocations.filter((state) => state.devices.length > 1).map((state) => state.allocation));
  for (const state of snapshot.devices) addHolders(add, state, pools, holderText);
  for (const one of snapshot.localities ?? []) addLocality(add, one, ids, holderText);
  const { exclusive, podExclusive } = snapshot.podResources;
  for (const one of exclusive) addExclusive(add, one, holderText);
  for (const one of podExclusive) addPodExclusive(add, one, holderText);
}

/** A container, or all containers of a pod. */
type Holder = Pick<Allocation, (typeof POD)[number]> & { readonly container?: string };

/** Renders the labels that name a holder. */
export type HolderText = (holder: Holder) => LabelText;

/** Puts `prefix` before the name of each label. */
export const holderLabels =
  (prefix: string): HolderText =>
  (holder) =>
    labelTextOf(holder, HOLDER, prefix);

/** Adds each series only once. Allocations can repeat a series, for example when one container holds two parts of a DRA device. */
function uniqueAdder(page: Page): Add {
  const added = new Set<string>();
  return (declared, labels, value) => {
    const series = `${declared.name}{${labels}`;
    if (added.has(series)) return;
    added.add(series);
    page.add(declared, labels, value);
  };
}

function addAllocation(
  add: Add,
  state: AllocationState,
  ids: ReadonlyMap<string, string>,
  pods: PodFactsByName | undefined,
  holderText: HolderText,
): void {
  const { allocation, unresolved, held, by } = state;
  const { resource, deviceId: device_id, claim } = allocation;
  const holder = holderText(allocation);
  const named = joinLabels(holder, labelText({ resource, device_id }));
  const devices = state.devices.length === 0 ? [undefined] : state.devices.map((key) => ids.get(key));
  for (const device of devices) {
    add(containerMetrics.allocation, joinLabels(holder, labelText({ resource, device, device_id })), 1);
    if (claim !== undefined)
      add(containerMetrics.claim, joinLabels(holder, claimLabels(claim, extendedResource(allocation, pods), device)), 1);
    if (by !== undefined) add(containerMetrics.joined, joinLabels(holder, labelText({ resource, device_id, device, by })), 1);
  }
  if (held) add(containerMetrics.held, named, 1);
  if (unresolved !== undefined) add(containerMetrics.unresolved, joinLabels(named, labelText({ reason: unresolved })), 1);
}

function extendedResource(allocation: Allocation, pods: PodFactsByName | undefined): string | undefined {
  const { namespace, container, claim } = allocation;
  if (claim?.namespace !== namespace) return undefined;
  const { extended = [] } = pods?.get(podName(allocation)) ?? {};
  return extended.find((one) => one.container === container && one.claim === claim.name)?.resource;
}

function claimLabels(claim: Claim, extended_resource: string | undefined, device: string | undefined): LabelText {
  return labelText({
    claim_namespace: claim.namespace,
    claim: claim.name,
    driver: claim.driver,
    pool: claim.pool,
    claim_device: claim.device,
    share_id: claim.shareId,
    extended_resource,
    device,
  });
}

/** Adds, for each holder of a device, the device's health and the holder's share, and its users. */
function addHolders(add: Add, state: DeviceState, pools: ReadonlySet<Allocation>, holderText: HolderText): void {
  const { holders, verdict, device } = state;
  for (const user of state.users ?? [])
    add(containerMetrics.user, joinLabels(holderText(containerNameOf(user)), labelText({ pod_uid: user.uid, device: device.id })), 1);
  if (holders.length === 0) return;
  const counts = new Map<LabelText, number>();
  for (const holder of holders) {
    const labels = joinLabels(holderText(holder), labelText({ resource: holder.resource, device: device.id }));
    counts.set(labels, (counts.get(labels) ?? 0) + 1);
  }
  // A claim that several containers share, or a second claim on the device, says nothing about amounts.
  const isShared = counts.size > 1;
  const equalParts = holders.every(({ claim }) => claim?.shareId === undefined && !(isShared && claim !== undefined));
  const hasParts = equalParts && !holders.some((holder) => pools.has(holder));
  for (const [labels, count] of counts) {
    if (verdict.state !== 'unknown') add(containerMetrics.healthy, labels, verdict.state === 'unhealthy' ? 0 : 1);
    if (hasParts) add(containerMetrics.share, labels, count / holders.length);
  }
}

function addLocality(add: Add, locality: ContainerLocality, ids: ReadonlyMap<string, string>, holderText: HolderText): void {
  const { pairs, gpuPath, nicPath, offNode } = locality;
  const holder = holderText(locality);
  for (const { from, to, path } of pairs)
    add(containerMetrics.path, joinLabels(holder, labelText({ from: ids.get(from), to: ids.get(to), path })), 1);
  if (gpuPath !== undefined) add(containerMetrics.locality, joinLabels(holder, labelText({ between: 'gpus', path: gpuPath })), 1);
  if (nicPath !== undefined) add(containerMetrics.locality, joinLabels(holder, labelText({ between: 'gpu-nic', path: nicPath })), 1);
  if (offNode !== undefined) add(containerMetrics.offNode, holder, offNode);
}

function addExclusive(add: Add, exclusive: ExclusiveResources, holderText: HolderText): void {
  const holder = holderText(exclusive);
  if (exclusive.cpus.length > 0) add(containerMetrics.exclusiveCpus, holder, exclusive.cpus.length);
  for (const { labels, bytes } of memoryByNode(exclusive.memory)) add(containerMetrics.exclusiveMemory, joinLabels(holder, labels), bytes);
}

function addPodExclusive(add: Add, exclusive: PodExclusiveResources, holderText: HolderText): void {
  const pod = holderText(exclusive);
  if (exclusive.cpus.length > 0) add(containerMetrics.podExclusiveCpus, pod, exclusive.cpus.length);
  for (const { labels, bytes } of memoryByNode(exclusive.memory)) add(containerMetrics.podExclusiveMemory, joinLabels(pod, labels), bytes);
}

/** Sums up blocks of the same kind on the same NUMA nodes. */
export function memoryByNode(blocks: readonly MemoryBlock[]): readonly { readonly labels: LabelText; readonly bytes: bigint }[] {
  const sums = new Map<LabelText, bigint>();
  for (const { type, bytes, numaNodes } of blocks) {
    const labels = labelText({ kind: type, numa_node: numaNodes.join(',') });
    sums.set(labels, (sums.get(labels) ?? 0n) + bytes);
  }
  return [...sums].map(([labels, bytes]) => ({ labels, bytes }));
}

function gauge(name: string, help: string, labels: readonly string[], source: string): MetricSpec {
  return { name, type: 'gauge', help, labels, source };
}
