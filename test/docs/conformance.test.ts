import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { PROMTOOLS, promtool } from '../support/promtool.ts';
import { type ServedAgent, serve } from '../support/serve.ts';
import { namedSeries } from './named-series.ts';

const [, text = ''] = readFileSync('docs/prometheus.md', 'utf8').split('## Kubernetes AI conformance\n');
const tables = text
  .split('\n')
  .filter((line) => line.startsWith('| '))
  .join('\n');
/** The demo has no driver library, no shared GPU of equal parts and no claims. */
const NOT_IN_DEMO = ['device_energy_joules_total', 'container_device_claim_info'];

/** One series of each family: the families are read apart. */
const READ = ['container_device_utilization_ratio', 'device_received_bytes_total'];

let demo: ServedAgent;
let page: string;

beforeAll(async () => {
  demo = await serve(['--refresh.interval=1s', '--sim.devices=nvidia=2,infiniband=1', '--sim.pod-change=0s'], 'demo');
  page = await demo.until('GPUs that containers hold, and ports', (one) => READ.every((metric) => one.includes(`${metric}{`)));
});
afterAll(() => demo?.stop());

const linesOf = (metric: string): string[] => page.split('\n').filter((line) => line.startsWith(`${metric}{`));

describe('series that prove conformance', () => {
  it('are on the page of the demo', () => {
    const named = [...new Set(namedSeries(tables).map(({ metric }) => metric))].filter((metric) => !NOT_IN_DEMO.includes(metric));
    expect(named.length).toBeGreaterThan(10);
    expect(named.filter((metric) => linesOf(metric).length === 0)).toEqual([]);
  });

  it('exist for each GPU', () => {
    const gpus = linesOf('device_info').flatMap((line) => (line.includes('kind="gpu"') ? [/device="([^"]+)"/.exec(line)?.[1]] : []));
    expect(gpus).toHaveLength(2);
    const core = ['device_utilization_ratio', 'device_memory_used_bytes', 'device_temperature_celsius', 'device_power_watts'];
    for (const metric of core) for (const gpu of gpus) expect(linesOf(metric).join('\n'), metric).toContain(`device="${gpu}"`);
  });

  it('follow the load', async () => {
    const load = (one: string): string[] =>
      one.split('\n').filter((line) => line.startsWith('device_utilization_ratio{') && line.includes('"gpu"'));
    const before = load(page).join();
    await demo.until('another utilization', (one) => load(one).join() !== before);
  });
});

interface Recording {
  readonly record: string;
  readonly expr: string;
}

const block = /```yaml\n(groups:.*?)```/s.exec(text)?.[1] ?? '';
const rules = (parse(block) as { groups: { rules: Recording[] }[] }).groups.flatMap((group) => group.rules);

describe('rules for the test suite', () => {
  it('have names by which the suite finds them', () => {
    for (const part of ['util', 'mem', 'temp', 'power', 'bandwidth'])
      expect(
        rules.filter(({ record }) => record.includes(part)),
        part,
      ).toHaveLength(1);
  });

  it.for(PROMTOOLS)('give each series the label of a device, $program$skipped', ({ program, isThere }, { skip }) => {
    skip(!isThere);
    const directory = mkdtempSync(join(tmpdir(), 'device-agent-conformance-'));
    try {
      const input = [...new Set(rules.map(({ expr }) => /device_\w+/.exec(expr)?.[0] ?? ''))];
      const tests = rules.map(({ record, expr }) => ({
        interval: '1m',
        input_series: input.map((metric) => ({ series: `${metric}{device="GPU-1",engine="gpu"}`, values: '1x5' })),
        promql_expr_test: [
          { expr: record, eval_time: '3m', exp_samples: [{ labels: `${record}{device="GPU-1",engine="gpu",uuid="GPU-1"}`, value: 1 }] },
        ],
        name: expr,
      }));
      writeFileSync(join(directory, 'rules.yaml'), block);
      writeFileSync(join(directory, 'test.yaml'), JSON.stringify({ rule_files: ['rules.yaml'], evaluation_interval: '1m', tests }));
      expect(promtool(program, ['test', 'rules', join(directory, 'test.yaml')])).toContain('SUCCESS');
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
});
