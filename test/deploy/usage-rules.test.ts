import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { costs, priceRule } from '../../deploy/rules/cost.ts';
import { isInstalled } from '../support/installed.ts';

const installed = isInstalled('promtool');
const skipped = installed ? '' : ' (skipped: promtool is not installed)';

const H100 = 'NVIDIA H100';
const info = (device: string, kind: string, model: string, parent = ''): string =>
  `device_info{node="n1",device="${device}",family="nvidia",kind="${kind}",model="${model}",parent="${parent}",instance="i"}`;
const holder = (pod: string, namespace: string, device: string, label = 'namespace'): string =>
  `{node="n1",${label}="${namespace}",pod="${pod}",container="c",resource="nvidia.com/gpu",device="${device}",instance="i"}`;

/** Seconds of each minute, for half an hour. */
const growing = (perMinute: number): string => `0+${perMinute}x30`;

/** Totals of one container and device: all of each minute allocated, and the given seconds of share and idleness. */
const account = (labels: string, share: number, idle: number): Record<string, string> => ({
  [`container_device_allocated_seconds_total${labels}`]: growing(60),
  [`container_device_share_seconds_total${labels}`]: growing(share),
  [`container_device_idle_seconds_total${labels}`]: growing(idle),
});
const time = (device: string, allocated: number, unhealthy: number): Record<string, string> => ({
  [`device_allocated_seconds_total{node="n1",device="${device}",instance="i"}`]: growing(allocated),
  [`device_unallocated_seconds_total{node="n1",device="${device}",instance="i"}`]: growing(60 - allocated),
  [`device_unhealthy_seconds_total{node="n1",device="${device}",instance="i"}`]: growing(unhealthy),
});

/**
 * `ml` holds the GPU `whole` alone, idle for half of the time. `ml` and `web` share the GPU `shared`, which never works. The GPU `cut` is in
 * MIG mode: `web` holds one instance, which always works, and nobody holds the other one, which is unhealthy for a quarter of the time.
 */
const SERIES: Readonly<Record<string, string>> = {
  [info('whole', 'gpu', H100)]: '1x30',
  [info('shared', 'gpu', H100)]: '1x30',
  [info('cut', 'gpu', H100)]: '1x30',
  [info('mig-1', 'mig', 'MIG 1g', 'cut')]: '1x30',
  [info('mig-2', 'mig', 'MIG 1g', 'cut')]: '1x30',
  ...account(holder('a', 'ml', 'whole'), 60, 30),
  ...account(holder('b', 'ml', 'shared'), 30, 60),
  ...account(holder('c', 'web', 'shared', 'exported_namespace'), 30, 60),
  ...account(holder('d', 'web', 'mig-1'), 60, 0),
  [`container_device_energy_joules_total${holder('a', 'ml', 'whole')}`]: growing(15_360),
  [`container_device_energy_estimated_joules_total${holder('b', 'ml', 'shared')}`]: growing(6_000),
  ...time('whole', 60, 0),
  ...time('shared', 60, 0),
  ...time('cut', 0, 60),
  ...time('mig-1', 60, 0),
  ...time('mig-2', 0, 15),
};

const of = (namespace: string, model: string): string => `{holder_namespace="${namespace}", family="nvidia", model="${model}"}`;
const kinds = (kind: string, model: string): string => `{node="n1", family="nvidia", kind="${kind}", model="${model}"}`;

/** By hand: seconds in a second, so device hours in an hour. */
const EXPECTED: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  'namespace:device_share_seconds:rate5m': { [of('ml', H100)]: 1.5, [of('web', H100)]: 0.5, [of('web', 'MIG 1g')]: 1 },
  'namespace:device_idle_share_seconds:rate5m': { [of('ml', H100)]: 0.5 + 0.5, [of('web', H100)]: 0.5, [of('web', 'MIG 1g')]: 0 },
  'namespace:device_energy_joules:rate5m': { [of('ml', H100)]: 256 },
  'namespace:device_energy_estimated_joules:rate5m': { [of('ml', H100)]: 100 },
  'node:device_allocated_seconds:rate5m': { [kinds('gpu', H100)]: 2, [kinds('mig', 'MIG 1g')]: 1 },
  'node:device_unallocated_seconds:rate5m': { [kinds('gpu', H100)]: 0, [kinds('mig', 'MIG 1g')]: 1 },
  'node:device_unhealthy_seconds:rate5m': { [kinds('gpu', H100)]: 0, [kinds('mig', 'MIG 1g')]: 0.25 },
  'namespace:device_cost_per_hour:rate5m': { [of('ml', H100)]: 1.5 * 4, [of('web', H100)]: 0.5 * 4, [of('web', 'MIG 1g')]: 2.5 },
  'namespace:device_idle_cost_per_hour:rate5m': { [of('ml', H100)]: 4, [of('web', H100)]: 2, [of('web', 'MIG 1g')]: 0 },
};

describe.skipIf(!installed)(`rules of usage and cost${skipped}`, () => {
  it('give the device hours, the idle time, the energy and the cost of a node that was computed by hand', () => {
    const directory = mkdtempSync(join(tmpdir(), 'device-agent-usage-rules-'));
    const rules = [priceRule('nvidia', 2.5), priceRule(H100, 4), ...costs];
    writeFileSync(join(directory, 'cost.yaml'), stringify({ groups: [{ name: 'device-cost', interval: '1m', rules }] }));
    const test = {
      rule_files: [resolve('deploy/rules.yaml'), 'cost.yaml'],
      evaluation_interval: '1m',
      group_eval_order: ['device-fleet', 'device-cost'],
      tests: [
        {
          interval: '1m',
          input_series: Object.entries(SERIES).map(([series, values]) => ({ series, values })),
          promql_expr_test: Object.entries(EXPECTED).map(([name, samples]) => ({
            expr: name,
            eval_time: '20m',
            exp_samples: Object.entries(samples).map(([labels, value]) => ({ labels: `${name}${labels}`, value })),
          })),
        },
      ],
    };
    writeFileSync(join(directory, 'test.yaml'), JSON.stringify(test));
    try {
      expect(promtool(directory, 'test', 'rules', 'test.yaml')).toContain('SUCCESS');
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it('count all time while a new pod of the agent replaces the old one', () => {
    const directory = mkdtempSync(join(tmpdir(), 'device-agent-usage-rules-'));
    const total = (instance: string): string => `device_allocated_seconds_total{node="n1",device="whole",instance="${instance}",job="j"}`;
    const twin = 'device_allocated_seconds_total{node="n1",device="whole",instance="i",job="second job"}';
    const test = {
      rule_files: [resolve('deploy/rules.yaml')],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: [
            { series: info('whole', 'gpu', H100), values: '1x40' },
            { series: total('old'), values: '0+60x20 stale' },
            { series: total('new'), values: '_x21 1260+60x20' },
            { series: twin, values: '_x35 2100+60x10' },
          ],
          promql_expr_test: [20, 22, 23, 24, 25, 30, 40].map((minute) => ({
            expr: 'round(node:device_allocated_seconds:rate5m, 0.01)',
            eval_time: `${minute}m`,
            exp_samples: [{ labels: kinds('gpu', H100), value: 1 }],
          })),
        },
      ],
    };
    writeFileSync(join(directory, 'test.yaml'), JSON.stringify(test));
    try {
      expect(promtool(directory, 'test', 'rules', 'test.yaml')).toContain('SUCCESS');
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it('of the file with an example price are accepted', () => {
    expect(promtool('.', 'check', 'rules', 'deploy/rules-cost.yaml')).toContain('SUCCESS: 3 rules found');
  });
});

function promtool(cwd: string, ...words: readonly string[]): string {
  try {
    return execFileSync('promtool', words, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string };
    return stdout + stderr;
  }
}
