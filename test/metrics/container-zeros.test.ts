import { describe, expect, it } from 'vitest';
import { Page } from '../../src/metrics/page/page.ts';
import { Work } from '../../src/metrics/page/steps.ts';
import { holderLabels } from '../../src/metrics/series/container-metrics.ts';
import { createCatalogue, metricsOfContainers } from '../../src/metrics/series/reading-metrics.ts';
import { addUsage } from '../../src/metrics/series/usage-metrics.ts';
import type { MetricSpec } from '../../src/model/metric.ts';
import type { ContainerUsage } from '../../src/model/usage.ts';

const errors: MetricSpec = {
  name: 'device_errors_total',
  type: 'counter',
  help: 'Errors.',
  labels: ['kind'],
  source: 'test',
  container: true,
};
const counters = [
  { metric: errors.name, labels: { kind: 'none' }, value: 0n },
  { metric: errors.name, labels: { kind: 'some' }, value: 3n },
];
const used = { namespace: 'a', pod: 'b', container: 'c', resource: 'r', device: 'toy/d', idleSeconds: 0, counters };

function linesOf(hasZeros?: boolean): readonly string[] {
  const page = new Page();
  const metrics = metricsOfContainers(createCatalogue([{ name: 'toy', metrics: [errors] }]));
  void new Work(addUsage(page, { containers: [used as unknown as ContainerUsage], devices: [] }, metrics, holderLabels(''), hasZeros))
    .result;
  const lines = new Work(new Work(page.finish()).result.bytes('text')).result.toString().split('\n');
  return lines.filter((line) => line.startsWith('container_')).map((line) => line.replace(/namespace=.*?device="d",?/, ''));
}

describe('counters of a container that are 0', () => {
  it('are on the page, so that Prometheus sees their first growth', () => {
    expect(linesOf()).toEqual(
      expect.arrayContaining(['container_device_errors_total{kind="none"} 0', 'container_device_errors_total{kind="some"} 3']),
    );
  });

  it('can be left out, but for the totals of the account', () => {
    const lines = linesOf(false);
    expect(lines.filter((line) => line.includes('errors'))).toEqual(['container_device_errors_total{kind="some"} 3']);
    expect(lines).toContain('container_device_idle_seconds_total{} 0');
  });
});
