import { appendFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IncidentRecord, IncidentSummary } from '../../src/incidents/record.ts';
import { millis } from '../../src/model/duration.ts';
import { defaultValues } from '../../src/model/options.ts';
import { simulatedFamilies } from '../../src/sim/families.ts';
import { SimulatedNode } from '../../src/sim/node.ts';
import { simulationOptions } from '../../src/sim/options.ts';
import { run } from '../cli/command-line.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';

const WAIT = { interval: 50 };
const SECOND_GPU = 'GPU-5e1f0000-0000-4000-8000-000000000002';

let node: SimulatedNode;
let agent: ServedAgent;
let flags: string[];
const get = (path: string): Promise<Response> => fetch(agent.url + path);
const list = async (): Promise<readonly IncidentSummary[]> =>
  ((await (await get('/api/incidents')).json()) as { incidents: IncidentSummary[] }).incidents;
const idOf = async (device: RegExp): Promise<string | undefined> => (await list()).find((one) => device.test(one.device))?.id;
const recordOf = async (device: RegExp): Promise<IncidentRecord> =>
  (await (await get(`/api/incidents/${await idOf(device)}`)).json()) as IncidentRecord;

beforeAll(async () => {
  const size = {
    ...defaultValues(simulationOptions),
    devices: ['all=0', 'nvidia=3', 'infiniband=2', 'fpga=1'],
    pods: 8,
    'pod-change': millis(0),
    story: 'off',
  };
  node = new SimulatedNode(simulatedFamilies, size, new ManualClock());
  await node.start();
  appendFileSync(join(node.root, 'device-agent.yaml'), 'health: { conditions: { infiniband.PortDown: { for: 0s } } }\n');
  writeFileSync(join(node.root, 'proc/stat'), 'btime 1700000000\n');
  // The kernel writes bytes outside printable ASCII as \xHH.
  const lines = ['mlx5_1: \\x1b[31m<script>alert(1)</script>', 'mlx5_10: another device', 'mlx5_1: cable unplugged'];
  writeFileSync(join(node.root, 'kernel.log'), lines.map((text, n) => `4,${n + 1},${n}000000,-;${text}\n`).join(''));
  flags = [...node.flags(), '--refresh.interval=500ms', `--path.kmsg=${node.root}/kernel.log`];
  agent = await serve(flags);
  await agent.until('all are held', (page) =>
    ['GPU', 'mlx5_1', '0010'].every((device) => new RegExp(`^container_device_allocation\\{.*device="${device}`, 'm').test(page)),
  );
});
afterAll(async () => {
  await agent?.stop('SIGKILL');
  await node?.stop();
});

describe('incidents of a simulated node', () => {
  it('are recorded for a board of FPGAs, with the holder that was gone before', async () => {
    const [pod] = node.kubelet.pods().filter(({ name }) => name.startsWith('aligner'));
    node.kubelet.removePod('genomics', pod?.name as string);
    await agent.until('the holder is gone', (page) => !/^container_device_allocation\{.*pod="aligner/m.test(page));
    node.begin('nonfatal-error', '0010:21:00.0');
    await expect.poll(() => idOf(/^fpga/), WAIT).toBeDefined();
    expect(await recordOf(/^fpga/)).toMatchObject({
      before: { state: 'healthy' },
      after: { state: 'degraded', conditions: [{ type: 'NonfatalError' }] },
      holders: [{ namespace: 'genomics', pod: pod?.name, until: expect.any(String) }],
      state: expect.arrayContaining([expect.objectContaining({ metric: 'device_fpga_error', value: 1 })]),
    });
  });

  it('are recorded for a hot GPU, with its readings and its row remapping', async () => {
    for (const fault of ['hot', 'ecc']) node.begin(fault, SECOND_GPU);
    await expect.poll(() => idOf(/^nvidia/), WAIT).toBeDefined();
    const record = await recordOf(/^nvidia/);
    expect(record).toMatchObject({
      after: { conditions: expect.arrayContaining([expect.objectContaining({ type: 'RowRemapPending', remedy: 'reset' })]) },
      device: { serial: expect.any(String), driver: expect.any(String), firmware: expect.any(String) },
      holders: [expect.objectContaining({ resource: 'nvidia.com/gpu' })],
      state: expect.arrayContaining([expect.objectContaining({ metric: 'device_nvidia_row_remap_pending', value: 1 })]),
    });
    expect(record.holders[0]).not.toHaveProperty('until');
    const heat = record.readings.series.find(({ metric, labels }) => metric === 'device_temperature_celsius' && labels.sensor === 'gpu');
    expect(heat?.values.at(-1)).toBe(88);
    expect(heat?.values[0]).toBeLessThan(70);
    expect(heat?.values).toHaveLength(record.readings.times.length);
  });

  it('are recorded for a port that is down, with the lines of the kernel log', async () => {
    node.begin('port-down', 'mlx5_1');
    await expect.poll(() => idOf(/mlx5_1$/), WAIT).toBeDefined();
    await expect
      .poll(async () => (await recordOf(/mlx5_1$/)).kernel, WAIT)
      .toEqual({
        lines: [
          { time: '2023-11-14T22:13:20.000Z', text: 'mlx5_1:  [31m<script>alert(1)</script>' },
          { time: '2023-11-14T22:13:22.000Z', text: 'mlx5_1: cable unplugged' },
        ],
      });
    const record = await recordOf(/mlx5_1$/);
    expect(record.after.conditions?.[0]).toMatchObject({ type: 'PortDown', instance: '1', remedy: 'check-cable' });
    await agent.until('the incident counts', (page) => seriesValue(page, 'device_unhealthy_incidents', { device: 'mlx5_1' }) === 1);
    expect(record.others.map(({ device }) => device)).toEqual(expect.arrayContaining([expect.stringMatching(/^nvidia/)]));
  });

  it('are shown as HTML, escaped, and linked from the page of the device', async () => {
    const id = await idOf(/mlx5_1$/);
    expect(await (await get('/devices/infiniband/mlx5_1')).text()).toContain(`<a href="/incidents/${id}">`);
    const answer = await get(`/incidents/${id}`);
    expect(answer.headers.get('content-security-policy')).toContain("default-src 'none'");
    const page = await answer.text();
    expect(page).toContain('Who was hit');
    expect(page).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
    expect(page).not.toContain('<script>');
    expect(await (await get(`/incidents/${id}?as=text`)).text()).toContain('WHAT HAPPENED');
    for (const unknown of ['x', '..%2f..%2fstate', `${id}.json`]) expect((await get(`/incidents/${unknown}`)).status).toBe(404);
  });

  it('are printed by a command, from the agent and then from the disk', async () => {
    const id = (await idOf(/mlx5_1$/)) as string;
    const ask = [`--web.listen-address=${agent.url.replace('http://', '')}`];
    const table = await run(['incidents', ...ask]);
    expect(table.stdout.split('\n')[0]).toMatch(/^ID +TIME +DEVICE +CHANGE +CONDITIONS +HOLDERS$/);
    expect(table.stdout).toMatch(/infiniband\/mlx5_1 +healthy > unhealthy +PortDown\/1/);
    const byDevice = JSON.parse((await run(['incidents', '--by', 'device', '-o', 'json', ...ask])).stdout) as { devices: object[] };
    expect(byDevice.devices).toContainEqual(
      expect.objectContaining({ device: 'infiniband/mlx5_1', incidents: 1, fatal: 1, again: 0, movedHolders: 0 }),
    );
    const counted = await run(['incidents', '--by=device', ...ask]);
    expect(counted.stdout).toMatch(/^DEVICE +INCIDENTS +FATAL +SAME CONDITION AGAIN +MOVED HOLDERS +LAST\n/);
    expect((await run(['incidents', '--by=pod', ...ask])).stderr).toContain('expected device');
    const text = await run(['incidents', id, ...ask]);
    expect(text.stdout).toMatch(/WHAT HAPPENED\n.*was healthy and became unhealthy[\s\S]*WHO WAS HIT[\s\S]*WHAT TO DO\n {2}Check cable/);
    expect(text.stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
    expect(JSON.parse((await run(['incidents', id, '-o', 'json', ...ask])).stdout)).toEqual(await recordOf(/mlx5_1$/));
    expect((await run(['incidents', 'mlx5_1', ...ask])).stdout, 'by the device').toBe(text.stdout);
    const unknown = await run(['incidents', id.slice(1), ...ask]);
    expect(unknown).toMatchObject({ status: 1, stdout: '', stderr: expect.stringContaining(`did you mean ${id}?`) });

    expect(await agent.stop()).toBe(0);
    const stopped = ['--web.listen-address=127.0.0.1:1', `--state.file=${node.root}/state/health.json`];
    expect((await run(['incidents', ...stopped])).stdout).toBe(table.stdout);
    expect((await run(['incidents', id, ...stopped])).stdout).toBe(text.stdout);
  });

  it('are known after a restart, and none is recorded twice', async () => {
    const before = readdirSync(join(node.root, 'state/incidents')).sort();
    agent = await serve(flags);
    await agent.until('a read', (page) => seriesValue(page, 'device_healthy', { device: 'mlx5_1' }) === 0);
    expect((await list()).map(({ id }) => `${id}.json`).sort()).toEqual(before);
    for (const name of before) expect(() => JSON.parse(readFileSync(join(node.root, 'state/incidents', name), 'utf8'))).not.toThrow();
  });
});
