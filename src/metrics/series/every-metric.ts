import type { AgentMetricSpec } from '../../model/metric.ts';
import { agentMetrics } from './agent-metrics.ts';
import { containerMetrics } from './container-metrics.ts';
import { deviceMetrics } from './device-metrics.ts';
import { expectedMetrics } from './expected-metrics.ts';
import { kubeletMetrics } from './kubelet-metrics.ts';
import { pluginMetrics } from './plugin-metrics.ts';
import { probeMetrics } from './probe-metrics.ts';
import { type Catalogue, containerTwin } from './reading-metrics.ts';
import { containerUsageMetrics, deviceUsageMetrics } from './usage-metrics.ts';
import { waitingMetrics } from './waiting-metrics.ts';

/** Every metric that the agent can export, with all of its labels. */
export function everyMetric(catalogue: Catalogue): readonly AgentMetricSpec[] {
  const readings = [...catalogue.values()];
  const ofDevices: readonly AgentMetricSpec[] = [...Object.values(deviceMetrics), ...Object.values(deviceUsageMetrics), ...readings];
  return [
    ...ofDevices.map((spec) => ({ ...spec, labels: ['device', ...spec.labels] })),
    ...readings.filter(({ container }) => container === true).map(containerTwin),
    ...[containerMetrics, containerUsageMetrics, waitingMetrics].flatMap((group): AgentMetricSpec[] => Object.values(group)),
    ...[agentMetrics, expectedMetrics, probeMetrics, kubeletMetrics, pluginMetrics].flatMap((group): AgentMetricSpec[] =>
      Object.values(group),
    ),
  ];
}
