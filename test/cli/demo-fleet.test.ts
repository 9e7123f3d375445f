import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { answering } from '../../src/cli/demo/fleet.ts';
import { prometheusAt } from '../../src/fleet/prometheus.ts';
import { sentenceOf } from '../../src/fleet/sentence.ts';
import { readFleet } from '../../src/fleet/watch.ts';
import { systemClock } from '../../src/host/clock.ts';
import { simulatedFleet } from '../../src/sim/fleet.ts';
import { isInstalled } from '../support/installed.ts';
import { PROGRAM } from '../support/program.ts';
import { until } from '../support/until.ts';

it('shows a fleet on a page and in the terminal, says where it is from, and leaves nothing', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'device-agent-test-demo-'));
  const env = { ...process.env, TMPDIR: directory };
  const demo = spawn(process.execPath, [PROGRAM, 'demo', 'fleet'], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  let told = '';
  demo.stdout.on('data', (part) => {
    told += part;
  });
  await until(
    () => told.includes('Ctrl-C'),
    'the demo shows its address',
    () => told,
  );
  const isReal = isInstalled('prometheus') && isInstalled('promtool');
  expect(told).toContain(isReal ? 'in a real Prometheus of this machine' : 'because no Prometheus is installed here');
  const page = await fetch(/Page +(\S+)/.exec(told)?.[1] as string, { headers: { Accept: 'text/html' } });
  expect(await page.text()).toMatch(/of 20 nodes need hands: gpu-1[17]: GPU [23] is lost, research\/job-1[17] is hit; 1 does not answer/);
  const list = spawn(process.execPath, [PROGRAM, 'fleet', 'list', '-o', 'json', /--prometheus=\S+/.exec(told)?.[0] as string], { env });
  let text = '';
  list.stdout.on('data', (part) => {
    text += part;
  });
  expect(await once(list, 'close')).toEqual([0, null]);
  const { nodes, problems } = JSON.parse(text);
  expect([nodes.length, problems]).toEqual([20, []]);
  demo.kill('SIGINT');
  expect(await once(demo, 'exit')).toEqual([0, null]);
  expect(readdirSync(directory)).toEqual([]);
  rmSync(directory, { recursive: true });
});

it('has answers of its own where no Prometheus is installed', async () => {
  const source = await answering(simulatedFleet(Math.floor(systemClock.now() / 1_000)));
  const fleet = await readFleet(prometheusAt({ url: source.url }));
  expect(sentenceOf(fleet)).toMatch(/^[45] of 20 nodes need hands: .*; 1 does not answer$/);
  expect(fleet.capacity).toEqual([expect.objectContaining({ devices: 160, unknown: 8 })]);
  expect(fleet.problems).toEqual([]);
  await source.stop();
});
