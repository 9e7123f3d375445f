import { by } from '../../deploy/rules/promql.ts';
import type { Board } from './board.ts';
import { CLUSTER, NODE, orZero, query, rate, SILENT_AGENTS, series, zeros } from './queries.ts';

const ON_NODE = 'cluster, node';
/** Of buckets, or of what a scrape with `convert_classic_histograms_to_nhcb` stores in their place. */
function p99(metric: string, labels: string): string {
  const quantile = (series: string, by: string): string => `histogram_quantile(0.99, sum by (${by}) (${rate(series)}))`;
  return `${quantile(`${metric}_bucket`, `${labels}, le`)} or ${quantile(metric, labels)}`;
}
/** Metrics of any process; the build limits them to agents. */
const ofAgents = (expr: string): string => `${expr} and on (${ON_NODE}) ${by(ON_NODE, series('device_agent_build_info'))}`;

export const agent: Board = {
  name: 'agent',
  title: 'Agent',
  description: 'The agents themselves: what they can read, how long it takes, what it costs.',
  variables: [CLUSTER, NODE],
  lines: [
    {
      height: 4,
      panels: [
        {
          ...{ kind: 'stat', title: 'Agents', unit: 'none', width: 4 },
          description: 'Agents that are scraped.',
          queries: [query(`count(${by(ON_NODE, series('device_agent_build_info'))})`)],
        },
        SILENT_AGENTS,
        {
          ...{ kind: 'stat', title: 'Kubelets that do not answer', unit: 'none', width: 6, warnFrom: 1 },
          description: 'Agents that cannot ask their kubelet who holds what.',
          queries: [query(zeros(by(ON_NODE, series('device_agent_podresources_up'))))],
        },
        {
          ...{ kind: 'stat', title: 'Probes that cannot read', unit: 'none', width: 5, warnFrom: 1 },
          description: 'Families of which an agent can read no device.',
          queries: [query(zeros(by(`${ON_NODE}, family`, series('device_agent_probe_success'))))],
        },
        {
          ...{ kind: 'stat', title: 'Resources not followed', unit: 'none', width: 5, badFrom: 1 },
          description: 'Resources of the device plugin that the kubelet does not follow.',
          queries: [query(zeros(by(`${ON_NODE}, resource`, series('device_agent_plugin_registered'))))],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Devices', unit: 'none', width: 8 },
          description: 'Devices by family and state.',
          queries: [
            query(`sum by (family, state) (${by(`${ON_NODE}, family, state`, series('device_agent_devices'))})`, '{{family}} {{state}}'),
          ],
        },
        {
          ...{ kind: 'series', title: 'Problems', unit: 'none', width: 8 },
          description: 'What keeps agents from reading devices. docs/problems.md has the remedy for each code.',
          queries: [
            query(
              orZero(`sum by (family, code) (${series('device_agent_problems')})`, series('device_agent_build_info')),
              '{{family}} {{code}}',
            ),
          ],
        },
        {
          ...{ kind: 'series', title: 'Age of the snapshot', unit: 's', width: 8 },
          description: 'How old the data on the page of each agent is.',
          queries: [query(by(ON_NODE, `time() - ${series('device_agent_snapshot_timestamp_seconds')}`), '{{node}}')],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Probe runs, 99th percentile', unit: 's', width: 8 },
          description: 'How long the runs of a probe take.',
          queries: [query(p99('device_agent_probe_run_duration_seconds', 'family'), '{{family}}')],
        },
        {
          ...{ kind: 'series', title: 'Requests to the kubelet, 99th percentile', unit: 's', width: 8 },
          description: 'How long requests to the kubelet take.',
          queries: [query(p99('device_agent_podresources_request_duration_seconds', 'method'), '{{method}}')],
        },
        {
          ...{ kind: 'series', title: 'Calls of the device plugin, 99th percentile', unit: 's', width: 8 },
          description: 'How long answers to calls of the kubelet take.',
          queries: [query(p99('device_agent_plugin_call_duration_seconds', 'resource, method'), '{{resource}} {{method}}')],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'Failed and abandoned runs', unit: 'ops', width: 8 },
          description: 'Runs of a probe that could read nothing, and runs that passed their deadline, per second.',
          queries: [
            query(`sum by (family) (${rate('device_agent_probe_failures_total')})`, '{{family}} failed'),
            query(`sum by (family) (${rate('device_agent_probe_abandoned_runs_total')})`, '{{family}} abandoned'),
          ],
        },
        {
          ...{ kind: 'series', title: 'Requests to the kubelet', unit: 'ops', width: 8 },
          description: 'Requests by method and gRPC status, per second.',
          queries: [query(`sum by (method, code) (${rate('device_agent_podresources_requests_total')})`, '{{method}} {{code}}')],
        },
        {
          ...{ kind: 'series', title: 'Allocations by the device plugin', unit: 'ops', width: 8 },
          description: 'Containers for which the kubelet asked for devices, by how it ended, per second.',
          queries: [query(`sum by (resource, result) (${rate('device_agent_plugin_allocations_total')})`, '{{resource}} {{result}}')],
        },
      ],
    },
    {
      height: 8,
      panels: [
        {
          ...{ kind: 'series', title: 'CPU', unit: 'percentunit', width: 6 },
          description: 'CPU time of each agent; 100 % is one CPU.',
          queries: [query(ofAgents(by(ON_NODE, rate('process_cpu_seconds_total'))), '{{node}}')],
        },
        {
          ...{ kind: 'series', title: 'Memory', unit: 'bytes', width: 6 },
          description: 'Resident memory of each agent.',
          queries: [query(ofAgents(by(ON_NODE, series('process_resident_memory_bytes'))), '{{node}}')],
        },
        {
          ...{ kind: 'series', title: 'Series', unit: 'none', width: 6 },
          description: 'Series of devices and containers on the page of each agent.',
          queries: [query(`sum by (${ON_NODE}, group) (${series('device_agent_series')})`, '{{node}} {{group}}')],
        },
        {
          ...{ kind: 'table', title: 'Versions', unit: 'none', width: 6, value: 'agents' },
          description: 'How many agents run each version.',
          columns: ['version', 'node_version'],
          queries: [
            query(`count by (version, node_version) (${by(`${ON_NODE}, version, node_version`, series('device_agent_build_info'))})`),
          ],
        },
      ],
    },
  ],
};
