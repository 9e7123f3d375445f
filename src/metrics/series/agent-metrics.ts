import type { AgentStats } from '../../model/agent-stats.ts';
import type { MetricSpec } from '../../model/metric.ts';
import type { Snapshot } from '../../model/snapshot.ts';
import { labelText } from '../page/labels.ts';
import { DROP_REASONS, type FinishedPage, type Page } from '../page/page.ts';
import { addExpected } from './expected-metrics.ts';
import { addKubelet, addRequests } from './kubelet-metrics.ts';
import { addPlugin } from './plugin-metrics.ts';
import { addProbes } from './probe-metrics.ts';

const AGENT = 'Agent.';
const WEB_CONFIG = 'Agent; absent without `--web.config.file`.';
const CONFIG = '`--config.file`';
const FACTS = 'systeminformation, at start and a few times a day.';

/** Metrics of the agent itself, of the machine, and of the metrics page. */
export const agentMetrics = {
  build: gauge('device_agent_build_info', 'Version of the agent; always 1.', ['version', 'revision', 'node_version'], AGENT),
  node: gauge('device_agent_node_info', 'The node, as Kubernetes names it; always 1.', ['node'], 'NODE_NAME, else the host name.'),
  web: gauge(
    'device_agent_web_info',
    'The address at which people reach the pages of this agent; always 1.',
    ['url'],
    '`web.external-url`; absent without it.',
  ),
  failures: gauge(
    'device_unhealthy_incidents',
    'How often the device became unhealthy within the last seven days, under this name or another one.',
    ['device'],
    'Kept incidents; absent without one. docs/incidents.md.',
  ),
  snapshotTime: gauge(
    'device_agent_snapshot_timestamp_seconds',
    'When the snapshot that this page shows was taken.',
    [],
    'Agent. Age of the page: `time()` minus this.',
  ),
  series: gauge('device_agent_series', 'Series of devices and containers on this page.', ['group'], AGENT),
  dropped: gauge(
    'device_agent_series_dropped',
    'Series left out of this page: duplicate, not declared, or not a number.',
    ['reason'],
    AGENT,
  ),
  host: gauge(
    'device_agent_host_info',
    'The machine; always 1.',
    ['manufacturer', 'model', 'cpu_model', 'operating_system', 'kernel'],
    `${FACTS} \`operating_system\` is left out in a container, because a container sees only its image's operating system.`,
  ),
  hostCpus: gauge('device_agent_host_cpus', 'Logical CPUs of the machine.', [], FACTS),
  hostMemory: gauge('device_agent_host_memory_bytes', 'Memory of the machine.', [], FACTS),
  hostNumaNodes: gauge('device_agent_host_numa_nodes', 'NUMA nodes of the machine.', [], '/sys/devices/system/node'),
  webConfigSuccessful: gauge(
    'device_agent_web_config_last_reload_successful',
    '1 when the web configuration file and its certificates are in use as they are now; 0 when the earlier ones are.',
    [],
    WEB_CONFIG,
  ),
  webConfigTime: gauge(
    'device_agent_web_config_last_reload_success_timestamp_seconds',
    'When the web configuration in use was read.',
    [],
    WEB_CONFIG,
  ),
  ledgerDamaged: gauge(
    'device_agent_usage_ledger_damaged_lines',
    'Lines of the ledger of usage that cannot be read, at the latest report.',
    [],
    'Agent; absent before the first report of usage.',
  ),
  socketUp: gauge(
    'device_agent_socket_up',
    'Whether clients reach an agent at the path of a socket: commands of the node (`control`), and each protocol of the health feed.',
    ['socket'],
    'Agent; absent for a socket that is not configured. `doctor` and `/api/v1/status` say why one is 0.',
  ),
  configOk: gauge(
    'device_agent_config_last_reload_successful',
    'Whether the newest content of the configuration file could be used (1) or the agent keeps the last valid one (0). Absent without a file.',
    [],
    CONFIG,
  ),
  configTime: gauge(
    'device_agent_config_last_reload_success_timestamp_seconds',
    'When the configuration in use was loaded. Absent without a file.',
    [],
    CONFIG,
  ),
  configHash: gauge(
    'device_agent_config_hash',
    'First 48 bits of the SHA-256 of the configuration file in use, to see whether all nodes use the same. Absent without a file.',
    [],
    CONFIG,
  ),
} as const satisfies Readonly<Record<string, MetricSpec>>;

/** Adds the series that can change between two scrapes of the same snapshot. `shown` is the snapshot and its parts of the page. */
export function addAgent(
  page: Page,
  stats: AgentStats,
  shown: { readonly snapshot: Snapshot; readonly pages: readonly FinishedPage[] } | undefined,
): void {
  page.add(agentMetrics.build, labelText({ version: stats.version, revision: stats.revision, node_version: process.version }), 1);
  page.add(agentMetrics.node, labelText({ node: stats.node }), 1);
  if (stats.pagesUrl !== undefined) page.add(agentMetrics.web, labelText({ url: stats.pagesUrl }), 1);
  addHost(page, stats.host);
  addConfig(page, stats.config);
  addRequests(page, stats);
  addPlugin(page, stats.plugin);
  for (const { device, count } of stats.failures ?? []) page.add(agentMetrics.failures, labelText({ device }), count);
  addWebConfig(page, stats.webConfig);
  if (stats.ledgerDamagedLines !== undefined) page.add(agentMetrics.ledgerDamaged, '', stats.ledgerDamagedLines);
  for (const { name, problem } of stats.sockets ?? [])
    page.add(agentMetrics.socketUp, labelText({ socket: name }), problem === undefined ? 1 : 0);
  if (shown === undefined) return;
  const { snapshot, pages } = shown;
  const count = (prefix: string): number => pages.reduce((sum, one) => sum + one.count(prefix), 0);
  page.add(agentMetrics.snapshotTime, '', snapshot.takenAtMs / 1_000);
  page.add(agentMetrics.series, labelText({ group: 'device' }), count('device_'));
  page.add(agentMetrics.series, labelText({ group: 'container' }), count('container_') + count('pod_'));
  const dropped = pages.map((one) => one.dropped);
  for (const reason of DROP_REASONS)
    page.add(
      agentMetrics.dropped,
      labelText({ reason }),
      dropped.reduce((sum, counts) => sum + (counts.get(reason) ?? 0), 0),
    );
  addProbes(page, snapshot);
  addExpected(page, snapshot.expected);
  addKubelet(page, snapshot.podResources);
}

function addHost(page: Page, host: AgentStats['host']): void {
  if (host === undefined) return;
  const labels = labelText({
    manufacturer: host.manufacturer,
    model: host.model,
    cpu_model: host.cpuModel,
    operating_system: host.operatingSystem,
    kernel: host.kernel,
  });
  if (labels !== '') page.add(agentMetrics.host, labels, 1);
  if (host.cpus !== undefined) page.add(agentMetrics.hostCpus, '', host.cpus);
  if (host.memoryBytes !== undefined) page.add(agentMetrics.hostMemory, '', host.memoryBytes);
  if (host.numaNodes !== undefined) page.add(agentMetrics.hostNumaNodes, '', host.numaNodes);
}

function addWebConfig(page: Page, stats: AgentStats['webConfig']): void {
  if (stats === undefined) return;
  page.add(agentMetrics.webConfigSuccessful, '', stats.isSuccessful ? 1 : 0);
  page.add(agentMetrics.webConfigTime, '', stats.lastSuccessMs / 1_000);
}

function addConfig(page: Page, config: AgentStats['config']): void {
  if (config === undefined) return;
  page.add(agentMetrics.configOk, '', config.problem === undefined ? 1 : 0);
  page.add(agentMetrics.configTime, '', config.loadedAtMs / 1_000);
  // A double holds 53 bits exactly.
  page.add(agentMetrics.configHash, '', Number.parseInt(config.digest.slice(0, 12), 16));
}

function gauge(name: string, help: string, labels: readonly string[], source: string): MetricSpec {
  return { name, type: 'gauge', help, labels, source };
}
