import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { familyLoaders } from '../../src/probes/families.ts';
import { seriesValue } from '../support/serve.ts';
import { type NodeSettings, ServedNode } from './served-node.ts';

const WAIT = { interval: 20 } as const;
const load = familyLoaders.infiniband;
if (load === undefined) throw new Error('there is no infiniband family');
const infiniband = await load();

const HCA = 'example.com/hca';
const OTHER = 'example.com/other';
const hca = { resource: HCA, select: { family: 'infiniband', kind: 'pf' } };
const other = { ...hca, resource: OTHER, allowOverlap: true };
const quick = { conditions: { 'infiniband.PortDown': { for: '0s', recovery: '0s' } } };
const CONFIG = { plugin: { resources: [hca] }, health: quick };
const bothHealthy = { mlx5_0: 'Healthy', mlx5_1: 'Healthy' };
const down = { 'mlx5_1/ports/1/state': '1: DOWN', 'mlx5_1/ports/1/phys_state': '2: Polling' };
const SUCCESSFUL = 'device_agent_config_last_reload_successful';

let node: ServedNode | undefined;
afterEach(async () => {
  await node?.stop();
  node = undefined;
});

async function start(settings: Partial<NodeSettings> = {}) {
  const made = new ServedNode({ family: infiniband, counts: { infiniband: 2 }, resource: HCA, config: CONFIG, ...settings });
  node = made;
  const agent = await made.start();
  await expect.poll(() => made.list(), WAIT).toEqual(bothHealthy);
  const write = (config: object | string): void =>
    writeFileSync(join(made.root, 'config.yaml'), typeof config === 'string' ? config : stringify(config));
  const reloads = (): number => agent.log().split('"message":"configuration reloaded"').length - 1;
  /** Writes the file and sends the signal; resolves when the agent has said that it uses the file. */
  const reload = async (config: object): Promise<void> => {
    const before = reloads();
    write(config);
    agent.child.kill('SIGHUP');
    // More than one where the agent comes to an earlier signal only after the file has changed.
    await expect.poll(reloads, WAIT).toBeGreaterThan(before);
  };
  return { node: made, agent, write, reload, reloads };
}

describe('SIGHUP', () => {
  it('adds and removes resources, and leaves the stream of the others alone', async () => {
    const { node, agent, reload } = await start();
    const [socket] = node.ownSockets();
    const runs = seriesValue(await agent.metrics(), 'device_agent_probe_runs_total', { family: 'infiniband' }) ?? 0;
    await reload({ ...CONFIG, plugin: { resources: [hca, other] } });
    await expect.poll(() => node.manager.devices(OTHER).length, WAIT).toBe(2);
    expect(node.manager.registrations, 'one for each resource').toBe(2);
    expect(node.ownSockets()).toContain(socket);
    expect(
      node.lists.map(({ devices }) => devices),
      'the kubelet saw no other list',
    ).toEqual([bothHealthy]);

    await reload(CONFIG);
    await expect.poll(() => node.manager.isConnected(OTHER), WAIT).toBe(false);
    expect(node.ownSockets()).toEqual([socket]);
    expect(node.manager.registrations).toBe(2);
    const page = await agent.metrics();
    expect(seriesValue(page, 'device_agent_plugin_registrations_total', { resource: HCA, result: 'ok' })).toBe(1);
    expect(seriesValue(page, 'device_agent_probe_runs_total', { family: 'infiniband' })).toBeGreaterThanOrEqual(runs);
    expect(node.lists).toHaveLength(1);
    expect(agent.child.exitCode).toBeNull();
  });

  it('judges by another policy, with the memory of before, and says what waits for the next start', async () => {
    const { node, agent, reload } = await start();
    node.change(down);
    await expect.poll(() => node.list(), WAIT).toEqual({ ...bothHealthy, mlx5_1: 'Unhealthy' });
    const events = await node.events();
    const degraded = { conditions: { 'infiniband.PortDown': { for: '0s', recovery: '0s', severity: 'degraded' } } };
    await reload({ ...CONFIG, health: degraded, web: { page: false } });
    await expect.poll(() => node.list(), WAIT).toEqual(bothHealthy);
    expect((await node.events()).slice(0, events.length), 'the events of before').toEqual(events);
    expect(seriesValue(await agent.metrics(), 'device_health', { device: 'mlx5_1', state: 'degraded' })).toBe(1);
    expect(agent.log()).toMatch(/"options":\["web.page"\],"message":"some changes take effect at the next start/);
    expect(node.manager.registrations).toBe(1);
  });

  it('starts only the thread of a family whose options changed', async () => {
    const { node, agent, reload } = await start();
    await reload({ ...CONFIG, device: { exclude: ['infiniband/mlx5_1'] } });
    await expect.poll(() => node.list(), WAIT).toEqual({ ...bothHealthy, mlx5_1: 'Unhealthy' });
    await reload(CONFIG);
    const page = await agent.until('it is read again', (text) => seriesValue(text, 'device_present', { device: 'mlx5_1' }) === 1);
    expect(seriesValue(page, 'device_agent_probe_failures_total', { family: 'infiniband' })).toBe(0);
    expect(seriesValue(page, 'device_agent_probe_abandoned_runs_total', { family: 'infiniband' })).toBe(0);
    expect(node.manager.registrations).toBe(1);
  });

  it('changes nothing when the file is not valid, says so once, and goes on with the next valid one', async () => {
    const { node, agent, write, reload } = await start();
    const hash = seriesValue(await agent.metrics(), 'device_agent_config_hash');
    write('plugin: {resources: [{resource: nonsense}]}\n');
    agent.child.kill('SIGHUP');
    await agent.until('the file is refused', (page) => seriesValue(page, SUCCESSFUL) === 0);
    agent.child.kill('SIGHUP');
    const status = (await (await fetch(`${agent.url}/api/v1/status`)).json()) as { config: { problem: { message: string } } };
    expect(status.config.problem.message).toMatch(/config\.yaml/);
    expect(seriesValue(await agent.metrics(), 'device_agent_config_hash'), 'the hash of what is in use').toBe(hash);
    await reload({ ...CONFIG, log: { level: 'debug' } });
    const page = await agent.metrics();
    expect(seriesValue(page, SUCCESSFUL)).toBe(1);
    expect(seriesValue(page, 'device_agent_config_hash')).not.toBe(hash);
    expect(agent.log().split('the configuration file cannot be used')).toHaveLength(2);
    expect(node.lists).toHaveLength(1);
    expect(node.manager.registrations).toBe(1);
  });
});

describe('a mounted ConfigMap', () => {
  it('is used again after the kubelet swapped its directory', async () => {
    const made = new ServedNode({ family: infiniband, counts: { infiniband: 2 }, resource: HCA, config: CONFIG });
    node = made;
    const folder = join(made.root, 'mounted');
    // As the kubelet writes it: agent.yaml -> ..data/agent.yaml, ..data -> ..<time>.
    const publish = (time: string, config: object): void => {
      mkdirSync(join(folder, time), { recursive: true });
      writeFileSync(join(folder, time, 'agent.yaml'), stringify(config));
      symlinkSync(time, join(folder, '..data_tmp'));
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'));
    };
    publish('..2030_01_01', CONFIG);
    symlinkSync('..data/agent.yaml', join(folder, 'agent.yaml'));
    await made.kubelet.start();
    await made.manager.start();
    const agent = await made.startAgent([`--config.file=${join(folder, 'agent.yaml')}`]);
    await expect.poll(() => made.list(), WAIT).toEqual(bothHealthy);
    publish('..2030_01_02', { ...CONFIG, plugin: { resources: [hca, other] } });
    await expect.poll(() => made.manager.devices(OTHER).length, WAIT).toBe(2);
    expect(made.manager.registrations).toBe(2);
    expect(made.lists).toHaveLength(1);
    expect(agent.log().split('"message":"configuration reloaded"')).toHaveLength(2);
  });
});

describe('POST /-/reload', () => {
  it('uses the file before it answers', async () => {
    const { node, agent, write } = await start({ flags: ['--web.enable-lifecycle'] });
    write({ ...CONFIG, plugin: { resources: [hca, other] } });
    const answer = await fetch(`${agent.url}/-/reload`, { method: 'POST' });
    expect([answer.status, await answer.text()]).toEqual([200, 'ok\n']);
    await expect.poll(() => node.manager.devices(OTHER).length, WAIT).toBe(2);
    write('log: {level: loud}');
    const refused = await fetch(`${agent.url}/-/reload`, { method: 'POST' });
    expect([refused.status, await refused.text()]).toEqual([500, expect.stringMatching(/config\.yaml:1:\d+: .*loud/)]);
  });
});
