import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { loadFamilies } from '../../src/config/sections.ts';
import { everyMetric } from '../../src/metrics/series/every-metric.ts';
import { createCatalogue } from '../../src/metrics/series/reading-metrics.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { contractLine, contractOf, type PromisedMetric } from './contract.ts';

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');

/** Each metric that the agent can export. */
async function declared(): Promise<readonly PromisedMetric[]> {
  return everyMetric(createCatalogue(await loadFamilies(familyLoaders)))
    .map(({ name, type, labels }) => ({ name, type, labels }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

describe('the contract of metric names', () => {
  const promised = contractOf(read('contract.txt'));

  it('keeps every name with its type and its labels', async () => {
    const now = new Map((await declared()).map((metric) => [metric.name, metric]));
    const broken = [...promised.values()].filter(({ name, type, labels }) => {
      const is = now.get(name);
      return is?.type !== type || !labels.every((label) => is.labels.includes(label));
    });
    expect(broken).toEqual([]);
  });

  it('has every metric that is declared (a new one: add its line to contract.txt)', async () => {
    const known = new Set(read('contract.txt').trim().split('\n'));
    expect((await declared()).map(contractLine).filter((line) => !known.has(line))).toEqual([]);
  });

  it('follows the naming rules of Prometheus', async () => {
    for (const { name, type } of await declared()) {
      expect(name).toMatch(/^(?:container_)?device_[a-z0-9_]+$|^(?:container|pod)_exclusive_[a-z_]+$/);
      expect([name, name.endsWith('_total')]).toEqual([name, type === 'counter']);
    }
  });
});
