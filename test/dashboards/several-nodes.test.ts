import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isInstalled } from '../support/prometheus.ts';

interface Dashboard {
  readonly panels: readonly { readonly title: string; readonly targets: readonly { readonly expr: string }[] }[];
}

const installed = isInstalled('promtool');
const skipped = installed ? '' : ' (skipped: promtool is not installed)';

const { panels } = JSON.parse(readFileSync('dashboards/workload.json', 'utf8')) as Dashboard;

/** The query of a panel with every variable at All. */
function queryOf(title: string): string {
  const expr = panels.find((panel) => panel.title === title)?.targets[0]?.expr ?? '';
  expect(expr, title).not.toBe('');
  return expr.replaceAll('$__rate_interval', '1m').replaceAll(/\$\{?\w+\}?/g, '.*');
}

const labelText = (labels: Readonly<Record<string, string>>): string =>
  Object.entries(labels)
    .map(([name, value]) => `${name}="${value}"`)
    .join(',');

const identity = (device: string, instance: string, model: string): string =>
  `device_info{${labelText({ device, instance, job: 'agent', model, pci_address: 'x', numa_node: '0' })}}`;

const twin = (metric: string, device: string, instance: string, own: Readonly<Record<string, string>> = {}): string =>
  `${metric}{${labelText({ device, instance, job: 'agent', namespace: 'n', pod: `p-${instance}`, container: 'c', resource: 'r', ...own })}}`;

/** Two nodes whose devices have the same names, as HCAs and PCI functions do. */
const SERIES: Readonly<Record<string, number>> = Object.fromEntries(
  ['a', 'b'].flatMap((instance): [string, number][] => [
    [identity('mlx5_0', instance, `HCA of ${instance}`), 1],
    [identity('0000:86:00.0', instance, 'FPGA'), 1],
    [identity('GPU-1', instance, 'GPU'), 1],
    [twin('container_device_allocation', 'mlx5_0', instance, { device_id: 'mlx5_0' }), 1],
    [twin('container_device_healthy', 'mlx5_0', instance), 0],
    // Shared: another container holds it too.
    [twin('container_device_healthy', 'mlx5_0', instance, { container: 'second' }), 0],
    [twin('container_device_power_watts', '0000:86:00.0', instance, { sensor: 'board_power' }), 60],
    [twin('container_device_power_watts', '0000:86:00.0', instance, { sensor: 'fpga' }), 40],
    [twin('container_device_power_watts', 'GPU-1', instance, { sensor: 'gpu' }), 600],
    [twin('container_device_power_watts', 'GPU-1', instance, { sensor: 'gpu_average' }), 610],
    [twin('container_device_power_watts', 'GPU-1', instance, { sensor: 'memory' }), 70],
    [twin('container_device_power_watts', 'GPU-1', instance, { sensor: 'module' }), 700],
  ]),
);

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'device-agent-dashboard-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** Has promtool ask the panel of the given series; fails with what it got instead. */
function expectSamples(title: string, samples: readonly { readonly labels: string; readonly value: number }[], given = SERIES): void {
  const question = { expr: queryOf(title), eval_time: '1m', exp_samples: samples };
  const input = Object.entries(given).map(([series, value]) => ({ series, values: `${value}x4` }));
  const file = join(directory, 'panel.yaml');
  writeFileSync(file, JSON.stringify({ rule_files: [], tests: [{ interval: '30s', input_series: input, promql_expr_test: [question] }] }));
  expect(execFileSync('promtool', ['test', 'rules', file], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] })).toContain('SUCCESS');
}

describe.skipIf(!installed)(`the workload dashboard over several nodes${skipped}`, () => {
  it('lists each allocation once, with the device of its own node', () => {
    const row = (instance: string): string =>
      labelText({
        ...{ container: 'c', device: 'mlx5_0', device_id: 'mlx5_0', instance, job: 'agent', model: `HCA of ${instance}` },
        ...{ namespace: 'n', numa_node: '0', pci_address: 'x', pod: `p-${instance}`, resource: 'r' },
      });
    expectSamples('Who holds what', [
      { labels: `{${row('a')}}`, value: 1 },
      { labels: `{${row('b')}}`, value: 1 },
    ]);
  });

  it('counts devices of the same name on different nodes apart, and a shared one once', () => {
    expectSamples('Devices held', [{ labels: '{}', value: 2 }]);
    expectSamples('Not healthy', [{ labels: '{}', value: 2 }]);
  });

  it('says 0 where nobody holds anything', () => {
    for (const title of ['Containers with devices', 'Devices held', 'Not healthy']) expectSamples(title, [{ labels: '{}', value: 0 }], {});
  });

  it('adds up the power of whole boards, of each once', () => {
    expectSamples('Power', [{ labels: '{}', value: 2 * (60 + 600) }]);
  });
});
