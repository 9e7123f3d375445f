import type { AgentStats } from '../../model/agent-stats.ts';
import type { AgentMetricSpec } from '../../model/metric.ts';
import {
  type Allocatable,
  CHECKPOINT_REASONS,
  CLAIM_FILE_REASONS,
  POD_RESOURCES_REASONS,
  type PodResources,
} from '../../model/pod-resources.ts';
import { labelText } from '../page/labels.ts';
import type { Page } from '../page/page.ts';
import { memoryByNode } from './container-metrics.ts';

const AGENT = 'Agent.';
const ALLOCATABLE =
  "PodResources `GetAllocatableResources`, asked at each refresh and after each change of the kubelet's files. Absent where the kubelet does not support it.";

/** Metrics of the requests to the kubelet, and of the resources that the kubelet can allocate. */
export const kubeletMetrics = {
  up: metric('gauge', 'device_agent_podresources_up', '1 while the kubelet answers, 0 while it does not.', [], AGENT),
  problem: metric(
    'gauge',
    'device_agent_podresources_problem',
    'Why the kubelet cannot be asked: 1 for the reason that holds, 0 for the others.',
    ['reason'],
    AGENT,
  ),
  claimFiles: metric(
    'gauge',
    'device_agent_claim_files_unused',
    'Files of DRA drivers, metadata and CDI specs, that cannot be used, by reason.',
    ['reason'],
    'Rules of the library of container runtimes (CDI), and limits of the reader of documents.',
  ),
  checkpoint: metric(
    'gauge',
    'device_agent_checkpoint_problem',
    "Why the kubelet's device checkpoint cannot be used: 1 for the reason that holds, 0 for the others.",
    ['reason'],
    AGENT,
  ),
  podsApi: metric(
    'gauge',
    'device_agent_podsapi_up',
    "1 while the kubelet's Pods API answers, 0 while it does not. Absent without `--podsapi`.",
    [],
    AGENT,
  ),
  requests: metric('counter', 'device_agent_podresources_requests_total', 'Requests to the kubelet.', ['method', 'code'], AGENT),
  duration: metric(
    'histogram',
    'device_agent_podresources_request_duration_seconds',
    'How long requests to the kubelet took, answered or not.',
    ['method'],
    AGENT,
  ),
  lastAnswer: metric('gauge', 'device_agent_podresources_last_answer_timestamp_seconds', 'When the kubelet last listed pods.', [], AGENT),
  held: metric(
    'gauge',
    'device_agent_podresources_held_allocations',
    'Allocations that are kept although the latest answer of the kubelet lacks them.',
    [],
    AGENT,
  ),
  devices: metric(
    'gauge',
    'device_agent_kubelet_allocatable_devices',
    'Healthy device ids of a resource, in use or not.',
    ['resource'],
    ALLOCATABLE,
  ),
  allocated: metric(
    'gauge',
    'device_agent_kubelet_allocated_devices',
    'Device ids of a resource that containers hold.',
    ['resource'],
    'PodResources `List`.',
  ),
  cpus: metric('gauge', 'device_agent_kubelet_allocatable_cpus', 'CPUs that the kubelet can assign to single containers.', [], ALLOCATABLE),
  memory: metric(
    'gauge',
    'device_agent_kubelet_allocatable_memory_bytes',
    'Memory that containers can have on a NUMA node.',
    ['kind', 'numa_node'],
    ALLOCATABLE,
  ),
} as const satisfies Readonly<Record<string, AgentMetricSpec>>;

const REASON_LABELS = POD_RESOURCES_REASONS.map((reason) => [reason, labelText({ reason })] as const);

const CHECKPOINT_LABELS = CHECKPOINT_REASONS.map((reason) => [reason, labelText({ reason })] as const);

const DOCUMENT_LABELS = CLAIM_FILE_REASONS.map((reason) => [reason, labelText({ reason })] as const);

export function addRequests(page: Page, stats: AgentStats): void {
  for (const [reason, label] of DOCUMENT_LABELS)
    page.add(kubeletMetrics.claimFiles, label, stats.claimFileProblems?.filter((each) => each === reason).length ?? 0);
  for (const [reason, label] of CHECKPOINT_LABELS) page.add(kubeletMetrics.checkpoint, label, reason === stats.checkpointProblem ? 1 : 0);
  if (stats.isPodsApiUp !== undefined) page.add(kubeletMetrics.podsApi, '', stats.isPodsApiUp ? 1 : 0);
  for (const { method, code, count } of stats.podResourcesRequests) page.add(kubeletMetrics.requests, labelText({ method, code }), count);
  for (const { method, durations } of stats.podResourcesDurations)
    page.addHistogram(kubeletMetrics.duration, labelText({ method }), durations);
}

export function addKubelet(page: Page, podResources: PodResources): void {
  const { problem, answeredAtMs, held, allocatable } = podResources;
  if (problem !== undefined) page.add(kubeletMetrics.up, '', 0);
  else if (answeredAtMs !== undefined) page.add(kubeletMetrics.up, '', 1);
  for (const [reason, label] of REASON_LABELS) page.add(kubeletMetrics.problem, label, reason === problem?.reason ? 1 : 0);
  page.add(kubeletMetrics.held, '', held.size);
  if (answeredAtMs !== undefined) {
    page.add(kubeletMetrics.lastAnswer, '', answeredAtMs / 1_000);
    for (const [resource, ids] of allocatedIds(podResources)) page.add(kubeletMetrics.allocated, labelText({ resource }), ids.size);
  }
  if (allocatable !== undefined) addAllocatable(page, allocatable);
}

function addAllocatable(page: Page, allocatable: Allocatable): void {
  const ids = new Map<string, Set<string>>();
  for (const { resource, deviceIds } of allocatable.devices) collect(ids, resource, deviceIds);
  for (const [resource, set] of ids) page.add(kubeletMetrics.devices, labelText({ resource }), set.size);
  if (allocatable.cpus.length > 0) page.add(kubeletMetrics.cpus, '', allocatable.cpus.length);
  for (const { labels, bytes } of memoryByNode(allocatable.memory)) page.add(kubeletMetrics.memory, labels, bytes);
}

/** Counts a device once, even when several containers hold it (a DRA claim that the containers of a pod share). */
function allocatedIds(podResources: PodResources): ReadonlyMap<string, ReadonlySet<string>> {
  const ids = new Map<string, Set<string>>();
  for (const { resource, deviceId } of podResources.allocations) collect(ids, resource, [deviceId]);
  return ids;
}

function collect(sets: Map<string, Set<string>>, name: string, values: readonly string[]): void {
  const set = sets.get(name) ?? new Set<string>();
  for (const value of values) set.add(value);
  sets.set(name, set);
}

function metric(type: AgentMetricSpec['type'], name: string, help: string, labels: readonly string[], source: string): AgentMetricSpec {
  return { name, type, help, labels, source };
}
