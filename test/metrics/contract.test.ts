import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadFamilies } from '../../src/config/sections.ts';
import { agentMetrics } from '../../src/metrics/series/agent-metrics.ts';
import { containerMetrics } from '../../src/metrics/series/container-metrics.ts';
import { deviceMetrics } from '../../src/metrics/series/device-metrics.ts';
import { expectedMetrics } from '../../src/metrics/series/expected-metrics.ts';
import { kubeletMetrics } from '../../src/metrics/series/kubelet-metrics.ts';
import { pluginMetrics } from '../../src/metrics/series/plugin-metrics.ts';
import { probeMetrics } from '../../src/metrics/series/probe-metrics.ts';
import { containerTwin, createCatalogue } from '../../src/metrics/series/reading-metrics.ts';
import { containerUsageMetrics, deviceUsageMetrics } from '../../src/metrics/series/usage-metrics.ts';
import { waitingMetrics } from '../../src/metrics/series/waiting-metrics.ts';
import type { AgentMetricSpec } from '../../src/model/metric.ts';
import { familyLoaders } from '../../src/probes/families.ts';

const CONTRACT = new URL('contract.txt', import.meta.url);

/** `name type label,label` of each metric that the agent can export. */
async function declared(): Promise<readonly string[]> {
  const readings = [...createCatalogue(await loadFamilies(familyLoaders)).values()];
  const own = [...Object.values(deviceMetrics), ...Object.values(deviceUsageMetrics)];
  const ofDevices = [...own, ...readings].map((spec) => ({ ...spec, labels: ['device', ...spec.labels] }));
  const twins = readings.filter(({ container }) => container === true).map(containerTwin);
  const agent = [agentMetrics, expectedMetrics, probeMetrics, kubeletMetrics, pluginMetrics].flatMap((group): AgentMetricSpec[] =>
    Object.values(group),
  );
  return [
    ...ofDevices,
    ...twins,
    ...Object.values(containerMetrics),
    ...Object.values(containerUsageMetrics),
    ...Object.values(waitingMetrics),
    ...agent,
  ]
    .map(({ name, type, labels }) => `${name} ${type} ${labels.toSorted().join(',')}`.trim())
    .toSorted();
}

const nameOf = (line: string): string => line.split(' ')[0] ?? '';

describe('the contract of metric names', () => {
  const promised = readFileSync(CONTRACT, 'utf8').trim().split('\n');

  it('keeps every name with its type and its labels', async () => {
    const now = new Map((await declared()).map((line) => [nameOf(line), line.split(' ')]));
    const broken = promised.filter((line) => {
      const [name = '', type, labels = ''] = line.split(' ');
      const [, typeNow, labelsNow = ''] = now.get(name) ?? [];
      return typeNow !== type || !labels.split(',').every((label) => labelsNow.split(',').includes(label));
    });
    expect(broken).toEqual([]);
  });

  it('has every metric that is declared (a new one: add its line to contract.txt)', async () => {
    const known = new Set(promised);
    expect((await declared()).filter((line) => !known.has(line))).toEqual([]);
  });

  it('follows the naming rules of Prometheus', async () => {
    for (const line of await declared()) {
      const [name = '', type] = line.split(' ');
      expect(name).toMatch(/^(?:container_)?device_[a-z0-9_]+$|^(?:container|pod)_exclusive_[a-z_]+$/);
      expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    }
  });
});
