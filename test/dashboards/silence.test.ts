import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { PROMTOOLS, promtool } from '../support/promtool.ts';
import { dashboards, filledIn } from './read.ts';

const stats = dashboards.flatMap(({ name, dashboard }) =>
  dashboard.panels
    .filter(({ type }) => type === 'stat')
    .map(({ title, targets: [target] }) => ({ name, title, expr: filledIn(target?.expr ?? '') })),
);

/** What stats show, by title, after an hour of these series; one that shows nothing is absent. */
function shown(program: string, series: Readonly<Record<string, string>>): Readonly<Record<string, number>> {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-silence-'));
  const file = join(directory, 'test.yaml');
  const asked = stats.map(({ expr }) => ({ expr, eval_time: '1h', exp_samples: [{ labels: '{no="such"}', value: 0 }] }));
  const input_series = Object.entries(series).map(([name, values]) => ({ series: name, values }));
  try {
    const tests = [{ interval: '1m', input_series, promql_expr_test: asked }];
    writeFileSync(file, JSON.stringify({ rule_files: [resolve('deploy/rules.yaml')], evaluation_interval: '1m', tests }));
    const printed = promtool(program, ['test', 'rules', file]);
    // It prints the answer of each expression, in order, because none has the expected one.
    const got = [...printed.matchAll(/^\s*got:\s*(.*)$/gm)].map(([, answer]) => answer);
    expect(got, printed).toHaveLength(stats.length);
    return Object.fromEntries(
      stats.flatMap(({ name, title }, index) => {
        const value = /[E}] (\S+)$/.exec(got[index] ?? '')?.[1];
        return value === undefined ? [] : [[`${name} ${title}`, Number(value)]];
      }),
    );
  } finally {
    rmSync(directory, { recursive: true });
  }
}

const AGENT = 'node="n1",job="agent",instance="n1"';
const GPU = `${AGENT},device="GPU-1"`;
const HELD = `${GPU},namespace="ml",pod="train-0",container="main",device_id="GPU-1"`;

describe.each(PROMTOOLS)('stats, $program$skipped', ({ program, isThere }) => {
  it.skipIf(!isThere)('show nothing of an agent that does not answer, and count it', () => {
    const seen = (name: string, labels = AGENT): [string, string] => [`${name}{${labels}}`, '1x30 stale'];
    const agents = [
      'device_agent_build_info',
      'device_agent_podresources_up',
      'device_agent_probe_success',
      'device_agent_plugin_registered',
    ];
    const devices = ['device_info', 'device_present', 'device_power_watts'].map((name) => seen(name, GPU));
    const held = ['container_device_allocation', 'container_device_healthy', 'container_device_power_watts'].map((name) =>
      seen(name, HELD),
    );
    const series = Object.fromEntries([...agents.map((name) => seen(name)), ...devices, ...held]);
    expect(shown(program, { ...series, [`up{${AGENT}}`]: '1x30 0x60' })).toEqual({
      'agent.json Agents that do not answer': 1,
      'fleet.json Agents that do not answer': 1,
      'health.json Agents that do not answer': 1,
    });
  });

  it.skipIf(!isThere)('show 0 where agents tell it, and a held device without a verdict as not known', () => {
    const well = {
      [`up{${AGENT}}`]: '1x60',
      [`device_agent_build_info{${AGENT}}`]: '1x60',
      [`device_agent_podresources_up{${AGENT}}`]: '1x60',
    };
    const verdict = ['healthy', 'degraded', 'unhealthy', 'unknown'].map((state): [string, string] => [
      `device_health{${GPU},state="${state}"}`,
      state === 'healthy' ? '1x60' : '0x60',
    ]);
    const held = { [`container_device_allocation{${HELD}}`]: '1x60' };
    const ofNode = {
      ...well,
      ...Object.fromEntries(verdict),
      [`device_info{${GPU}}`]: '1x60',
      [`device_present{${GPU}}`]: '1x60',
      ...held,
    };
    const healthy = shown(program, { ...ofNode, [`container_device_healthy{${HELD}}`]: '1x60' });
    const zeros = ['fleet.json Out of service', 'fleet.json Unknown', 'health.json Unhealthy', 'health.json Missing', 'node.json Unknown'];
    const ofPod = ['workload.json Out of service', 'workload.json Not known'];
    for (const title of [...zeros, ...ofPod, 'health.json Ids without a device', 'agent.json Agents that do not answer'])
      expect(healthy[title], title).toBe(0);
    expect(healthy).not.toHaveProperty(['workload.json Power']);
    const unread = shown(program, ofNode);
    expect(ofPod.map((title) => unread[title])).toEqual([undefined, 1]);
  });
});
