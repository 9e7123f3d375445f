import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROMTOOLS, promtool } from '../support/promtool.ts';

type Labels = Readonly<Record<string, string>>;
const seriesOf = (name: string, labels: Labels): string =>
  `${name}{${Object.entries({ node: 'n1', instance: 'i', job: 'agent', ...labels })
    .map(([label, value]) => `${label}="${value}"`)
    .join(',')}}`;
const condition = (labels: Labels): string => seriesOf('device_health_condition', { class: 'latched', severity: 'fatal', ...labels });

/** Fails unless exactly these alerts fire at each of these minutes, given as `alertname condition`. */
function expectFiring(program: string, series: Labels, expected: Readonly<Record<string, readonly string[]>>): void {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-one-fault-'));
  const test = {
    rule_files: [resolve('deploy/rules.yaml')],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
        promql_expr_test: Object.entries(expected).map(([minute, alerts]) => ({
          expr: 'count by (alertname, condition) (ALERTS{alertstate="firing"})',
          eval_time: `${minute}m`,
          exp_samples: alerts.map((alert) => {
            const [name, type] = alert.split(' ');
            return { labels: `{alertname="${name}"${type === undefined ? '' : `,condition="${type}"`}}`, value: 1 };
          }),
        })),
      },
    ],
  };
  writeFileSync(join(directory, 'test.yaml'), JSON.stringify(test));
  try {
    expect(promtool(program, ['test', 'rules', 'test.yaml'], { cwd: directory })).toContain('SUCCESS');
  } finally {
    rmSync(directory, { recursive: true });
  }
}

describe.each(PROMTOOLS)('one fault is one alert, $program$skipped', ({ program, isThere }) => {
  it.skipIf(!isThere)('when the driver and the kernel log report the loss of a GPU', () => {
    expectFiring(
      program,
      {
        [condition({ device: 'GPU-1', condition: 'GpuLost', reason: 'GpuIsLost', remedy: 'reboot' })]: '_x10 1x30',
        [condition({ device: 'GPU-1', condition: 'Xid', part: '79', reason: 'Hardware', remedy: 'reboot', cause: 'GpuLost' })]: '_x10 1x30',
      },
      { 20: ['DeviceUnhealthy GpuLost'] },
    );
  });

  it.skipIf(!isThere)(
    'when the firmware of an HCA hangs: critical after 2 minutes, and no second alert when the device becomes unknown',
    () => {
      expectFiring(
        program,
        {
          [condition({ device: 'mlx5_0', condition: 'DeviceUnreachable', class: 'no-data', reason: 'ReadsHang', remedy: 'reset' })]:
            '_x10 1x30',
          [seriesOf('device_health', { device: 'mlx5_0', state: 'unknown' })]: '0x10 1x30',
        },
        { 11: [], 13: ['DeviceOutOfService DeviceUnreachable'], 30: ['DeviceOutOfService DeviceUnreachable'] },
      );
    },
  );

  it.skipIf(!isThere)('when a port comes back within the time that an alert waits', () => {
    const down = { device: 'mlx5_0', condition: 'PortDown', class: 'self-clearing', part: '1', reason: 'LinkPolling' };
    expectFiring(
      program,
      { [condition({ ...down, remedy: 'check-cable' })]: '_x10 1x1 stale', [condition({ ...down, remedy: 'none' })]: '_x11 1x10 stale' },
      { 12: [], 13: [], 14: [], 20: [] },
    );
  });

  it.skipIf(!isThere)('when the plugin refuses a container for the first time', () => {
    const refusals = { resource: 'example.com/hca', result: 'unhealthy-device' };
    expectFiring(
      program,
      { [seriesOf('device_agent_plugin_allocations_total', refusals)]: '0x10 1x30' },
      { 10: [], 12: ['DeviceAllocationRefused'] },
    );
  });
});
