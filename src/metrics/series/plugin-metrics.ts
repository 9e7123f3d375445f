import type { PluginResourceStats, PluginStats } from '../../model/agent-stats.ts';
import type { AgentMetricSpec } from '../../model/metric.ts';
import { joinLabels, type LabelText, labelText } from '../page/labels.ts';
import type { Page } from '../page/page.ts';

/** Metrics of the device plugin, one set per served resource. */
export const pluginMetrics = {
  registered: metric(
    'gauge',
    'device_agent_plugin_registered',
    '1 while the kubelet follows the device list of the resource, else 0. device_agent_plugin_differing_devices says whether it offers what the list says.',
  ),
  differing: metric(
    'gauge',
    'device_agent_plugin_differing_devices',
    'Device ids that the kubelet offers and the agent does not serve as healthy, and the other way round. Absent while the kubelet does not say what it offers.',
  ),
  differingSince: metric(
    'gauge',
    'device_agent_plugin_differing_start_timestamp_seconds',
    'Since when the kubelet offers other device ids than the agent serves as healthy. Absent while there is no difference.',
  ),
  streams: metric('gauge', 'device_agent_plugin_streams', 'Open ListAndWatch streams.'),
  devices: metric('gauge', 'device_agent_plugin_devices', 'Device ids offered to the kubelet, by the health reported to it.', ['state']),
  lastUpdate: metric('gauge', 'device_agent_plugin_last_update_timestamp_seconds', 'When the kubelet was last sent a device list.'),
  registrations: metric(
    'counter',
    'device_agent_plugin_registrations_total',
    'Attempts to register, by how they ended: ok when the kubelet asked for the list, else the reason; ok may later end with a reason too.',
    ['result'],
  ),
  allocations: metric(
    'counter',
    'device_agent_plugin_allocations_total',
    'Containers for which the kubelet asked for devices, or which a check refused to start: ok, or the reason of the refusal.',
    ['result'],
  ),
  callDuration: metric(
    'histogram',
    'device_agent_plugin_call_duration_seconds',
    'How long answers to calls of the kubelet took; for ListAndWatch, how long the delivery of each list took.',
    ['method'],
  ),
} as const satisfies Readonly<Record<string, AgentMetricSpec>>;

export function addPlugin(page: Page, stats: PluginStats | undefined): void {
  for (const resource of stats?.resources ?? []) addResource(page, resource);
}

function addResource(page: Page, stats: PluginResourceStats): void {
  const label = labelText({ resource: stats.resource });
  page.add(pluginMetrics.registered, label, stats.registered ? 1 : 0);
  if (stats.difference !== undefined) page.add(pluginMetrics.differing, label, stats.difference.ids);
  if (stats.difference?.sinceMs !== undefined) page.add(pluginMetrics.differingSince, label, stats.difference.sinceMs / 1_000);
  page.add(pluginMetrics.streams, label, stats.streams);
  page.add(pluginMetrics.devices, joinLabels(label, labelText({ state: 'healthy' })), stats.healthy);
  page.add(pluginMetrics.devices, joinLabels(label, labelText({ state: 'unhealthy' })), stats.unhealthy);
  if (stats.lastUpdateMs !== undefined) page.add(pluginMetrics.lastUpdate, label, stats.lastUpdateMs / 1_000);
  addCounts(page, pluginMetrics.registrations, label, stats.registrations);
  addCounts(page, pluginMetrics.allocations, label, stats.allocations);
  for (const { method, durations } of stats.calls)
    page.addHistogram(pluginMetrics.callDuration, joinLabels(label, labelText({ method })), durations);
}

function addCounts(page: Page, spec: AgentMetricSpec, label: LabelText, counts: Readonly<Record<string, number>>): void {
  for (const [result, count] of Object.entries(counts)) page.add(spec, joinLabels(label, labelText({ result })), count);
}

function metric(type: AgentMetricSpec['type'], name: string, help: string, labels: readonly string[] = []): AgentMetricSpec {
  return { name, type, help, labels: ['resource', ...labels], source: 'Agent. Absent while no resource is configured.' };
}
