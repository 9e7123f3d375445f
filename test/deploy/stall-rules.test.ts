import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { NAMES_IN_LINK } from '../../deploy/rules/annotations.ts';
import { RUNBOOKS } from '../../deploy/rules/promql.ts';
import { ruleFiles } from '../../deploy/rules/rule-files.ts';
import { stallGroup } from '../../deploy/rules/stall.ts';
import { PROMTOOLS, promtool } from '../support/promtool.ts';

const FILE = 'deploy/rules-stall.yaml';

const GB = 60e9;
const RANKS = ['r0', 'r1', 'r2', 'r3', 'r4'];
const node = (pod: string): string => `n${pod.slice(1)}`;
/** A scrape that renamed the labels of the holder has the same answer. */
const holder = (pod: string, more = ''): string =>
  pod === 'r1'
    ? `{node="${node(pod)}",exported_namespace="ml",exported_pod="${pod}",exported_container="main"${more}}`
    : `{node="${node(pod)}",namespace="ml",pod="${pod}",container="main"${more}}`;

/** Five ranks of one job; r3 moves a tenth of what the others move and draws half of the power. */
const series = [
  ...RANKS.flatMap((pod, at) => [
    { series: `kube_pod_labels{namespace="ml",pod="${pod}",label_batch_kubernetes_io_job_name="train"}`, values: '1x40' },
    ...['received', 'transmitted'].flatMap((way) =>
      ['g', 'h'].map((device) => ({
        series: `container_device_${way}_bytes_total${holder(pod, `,device="${device}",port="1",job="agents"`)}`,
        values: `0+${(pod === 'r3' ? 0.1 : 1 + at / 100) * GB}x40`,
      })),
    ),
    {
      series: `container_device_power_watts${holder(pod, ',device="g",sensor="gpu"')}`,
      values: `${pod === 'r3' ? 300 : 600}x40`,
    },
    { series: `container_device_power_watts${holder(pod, ',device="g",sensor="gpu_average"')}`, values: '1x40' },
    { series: `container_cpu_usage_seconds_total{namespace="ml",pod="${pod}",container="main",node="${node(pod)}"}`, values: '0+60x40' },
  ]),
  { series: `container_device_last_progress_timestamp_seconds${holder('r0')}`, values: '0+60x10 600x30' },
  { series: `container_device_waiting${holder('r0')}`, values: '0x20 1x20' },
  { series: `container_device_step_seconds${holder('r0')}`, values: '30x40' },
  // Waits, but no step was seen.
  { series: `container_device_last_progress_timestamp_seconds${holder('r1')}`, values: '600x40' },
  { series: `container_device_waiting${holder('r1')}`, values: '1x40' },
];

const rank = (pod: string): string => `{holder_namespace="ml",holder_pod="${pod}",holder_job="train"}`;

/** Where the file of rules looks for pages: at the agent. */
const RUNBOOK_BASE = 'http://device-agent.device-agent.svc:9835/docs/runbooks';

describe.each(PROMTOOLS)('rules of waiting containers, $program$skipped', ({ program, isThere }) => {
  it.skipIf(!isThere)('compare the ranks of a job, and tell of a container that stalled', () => {
    const directory = mkdtempSync(join(tmpdir(), 'device-agent-stall-rules-'));
    const alert = stallGroup.rules.find((rule) => 'alert' in rule);
    if (alert === undefined || !('alert' in alert)) throw new Error('there is no alert');
    const test = {
      rule_files: [resolve(FILE)],
      evaluation_interval: '1m',
      tests: [
        {
          interval: '1m',
          input_series: series,
          promql_expr_test: [
            {
              expr: 'job:device_bytes:median / 1e9',
              eval_time: '30m',
              exp_samples: [{ labels: '{holder_namespace="ml",holder_job="train"}', value: 4.04 }],
            },
            {
              expr: 'round(rank:device_bytes:deviation, 0.1) < -5',
              eval_time: '30m',
              exp_samples: [{ labels: rank('r3'), value: -45 }],
            },
            { expr: 'abs(rank:device_power_watts:deviation) > 5', eval_time: '30m', exp_samples: [{ labels: rank('r3'), value: 25 }] },
            { expr: 'abs(rank:cpu_seconds:deviation) > 0.01', eval_time: '30m', exp_samples: [] },
            { expr: 'count(rank:cpu_seconds:deviation)', eval_time: '30m', exp_samples: [{ labels: '{}', value: 5 }] },
          ],
          alert_rule_test: [
            { eval_time: '19m', alertname: 'DeviceStalled', exp_alerts: [] },
            {
              eval_time: '25m',
              alertname: 'DeviceStalled',
              exp_alerts: [
                {
                  exp_labels: { severity: 'info', node: 'n0', holder_namespace: 'ml', holder_pod: 'r0', holder_container: 'main' },
                  exp_annotations: {
                    ...alert.annotations,
                    runbook_url: alert.annotations.runbook_url?.replace(RUNBOOKS, RUNBOOK_BASE).replace(NAMES_IN_LINK, '?node=n0'),
                    summary: 'ml/r0 on node n0 has made no step for 15m 0s.',
                    description: alert.annotations.description.replace('{{ $labels.holder_container }}', 'main'),
                  },
                },
              ],
            },
          ],
        },
      ],
    };
    writeFileSync(join(directory, 'test.yaml'), JSON.stringify(test));
    try {
      expect(promtool(program, ['test', 'rules', 'test.yaml'], { cwd: directory })).toContain('SUCCESS');
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  it.skipIf(!isThere)('are in a file of their own, which the others do not need', () => {
    expect(readFileSync(FILE, 'utf8')).toBe(ruleFiles()[FILE]);
    expect(promtool(program, ['check', 'rules', FILE])).toContain('SUCCESS');
    for (const [path, text] of Object.entries(ruleFiles()))
      if (!path.endsWith('rules-stall.yaml')) expect(text).not.toContain('DeviceStalled');
  });
});
