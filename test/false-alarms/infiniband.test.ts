// Project: programs. Histories in number.
import { describe, expect, it } from 'vitest';
import { hours, minutes, seconds } from '../../src/model/duration.ts';
import { family } from '../../src/probes/infiniband/index.ts';
import { compute, type Files, HCA_NAMES, path, pathIn, rocePort, without } from './adapters.ts';
import { type WatchedMachine, watch } from './watched-node.ts';

const allHealthy = (...devices: readonly string[]): Files => Object.fromEntries(devices.map((device) => [device, 'healthy']));

describe('NVSentinel 1361', () => {
  const [prime, aux] = [rocePort(0, 'up'), rocePort(1, 'not provisioned')];
  const frontend: WatchedMachine = { family, files: { ...prime.files, ...aux.files }, links: { ...prime.links, ...aux.links } };

  it('unused second port of a front-end adapter', async () => {
    const node = await watch(frontend);
    await node.pass(minutes(10));
    expect(node.verdicts).toEqual(allHealthy('mlx5_0', 'mlx5_1'));
    expect(Object.values(node.offered ?? {})).toEqual(['Healthy', 'Healthy']);
    await node.restart();
    await node.pass(minutes(5));
    expect(node.verdicts).toEqual(allHealthy('mlx5_0', 'mlx5_1'));
    // The port that was up is a fault as soon as it is not.
    node.tree.put('down', pathIn(frontend.files, 'mlx5_0', 'ports/1/state'), '1: DOWN\n');
    node.tree.put('down', pathIn(frontend.files, 'mlx5_0', 'ports/1/phys_state'), '3: Disabled\n');
    await node.pass(minutes(1));
    expect(node.verdicts).toEqual({ mlx5_0: 'unhealthy PortDown/1 fatal', mlx5_1: 'healthy' });
  });
});

describe('NVSentinel 1663 and 1716', () => {
  it('no character devices for a subnet manager', async () => {
    const files = without(compute.files, /\/issm\d/);
    const links = without(compute.links ?? {}, /\/issm\d/);
    const node = await watch({ ...compute, files, links });
    await node.pass(minutes(10));
    expect(node.verdicts).toEqual(allHealthy(...HCA_NAMES));
    // Programs need the device for verbs.
    node.tree.remove('gone', 'dev/infiniband/uverbs1');
    await node.pass(minutes(1));
    expect(node.verdicts).toEqual({ ...allHealthy(...HCA_NAMES), mlx5_1: 'unhealthy CharDeviceMissing fatal' });
  });
});

/** A link is down for ten seconds, and the card counts it. */
async function loseLink(node: Awaited<ReturnType<typeof watch>>, device: string): Promise<void> {
  node.tree.write(path(device, 'ports/1/counters/link_downed'), (count) => `${Number(count) + 1}\n`);
  node.tree.put('lost', path(device, 'ports/1/state'), '1: DOWN\n');
  node.tree.put('lost', path(device, 'ports/1/phys_state'), '2: Polling\n');
  await node.pass(seconds(10));
  node.tree.take('lost');
  await node.pass(minutes(2));
}

describe('NVSentinel 1529', () => {
  it('one loss of the link of an adapter', async () => {
    const node = await watch(compute);
    await node.pass(minutes(1));
    await loseLink(node, 'mlx5_0');
    expect(node.verdicts).toEqual(allHealthy(...HCA_NAMES));
    expect(new Set(Object.values(node.offered ?? {}))).toEqual(new Set(['Healthy']));
    await loseLink(node, 'mlx5_0');
    await loseLink(node, 'mlx5_0');
    expect(node.verdicts).toMatchObject({ mlx5_0: 'unhealthy LinkFlapping/1 fatal', mlx5_1: 'healthy' });
  });

  it('another name after a reboot, while a condition is raised', async () => {
    const node = await watch(compute);
    await node.pass(minutes(1));
    node.tree.put('down', path('mlx5_1', 'ports/1/state'), '1: DOWN\n');
    node.tree.put('down', path('mlx5_1', 'ports/1/phys_state'), '2: Polling\n');
    await node.pass(minutes(2));
    expect(node.verdicts).toMatchObject({ mlx5_1: 'unhealthy PortDown/1 fatal' });
    await node.reboot(() => {
      node.tree.take('down');
      const directory = path('mlx5_1', 'fw_ver').slice(0, -'/fw_ver'.length);
      node.tree.rename(new Map([directory, 'sys/class/infiniband/mlx5_1'].map((entry) => [entry, 'mlx5_7'])));
    });
    expect(node.verdicts).toEqual(allHealthy('mlx5_0', 'mlx5_2', 'mlx5_7'));
    await node.pass(minutes(2));
    expect(node.verdicts).toEqual(allHealthy('mlx5_0', 'mlx5_2', 'mlx5_7'));
    expect(new Set(Object.values(node.offered ?? {}))).toEqual(new Set(['Healthy']));
  });

  it('one adapter that cannot be read from the start', async () => {
    const node = await watch(compute, (tree) => tree.hide('firmware', path('mlx5_0', 'ports/1/state'), { kind: 'absent' }));
    await node.pass(minutes(5));
    expect(node.verdicts).toEqual({ ...allHealthy(...HCA_NAMES), mlx5_0: 'unknown DeviceUnreachable fatal' });
    expect(Object.values(node.offered ?? {}).sort()).toEqual(['Healthy', 'Healthy', 'Unhealthy']);
    // The others are watched all the same.
    node.tree.put('down', path('mlx5_2', 'ports/1/state'), '1: DOWN\n');
    await node.pass(minutes(1));
    expect(node.verdicts).toMatchObject({ mlx5_1: 'healthy', mlx5_2: 'unhealthy PortDown/1 fatal' });
  });
});

describe('NVSentinel 1673', () => {
  it('a condition that the administrator switches off while it is raised', async () => {
    const node = await watch(compute);
    await node.pass(minutes(1));
    node.tree.put('down', path('mlx5_1', 'ports/1/state'), '1: DOWN\n');
    await node.pass(minutes(2));
    expect(node.verdicts).toMatchObject({ mlx5_1: 'unhealthy PortDown/1 fatal' });
    await node.restart({ 'infiniband.PortDown': { enabled: false } });
    await node.pass(minutes(1));
    expect(node.verdicts).toEqual(allHealthy(...HCA_NAMES));
    expect(new Set(Object.values(node.offered ?? {}))).toEqual(new Set(['Healthy']));
    await node.restart({});
    await node.pass(minutes(1));
    expect(node.verdicts).toMatchObject({ mlx5_1: 'unhealthy PortDown/1 fatal' });
  });
});

describe('GPUd 1247', () => {
  it('links that flapped while the fabric was set up', async () => {
    const node = await watch(compute);
    await node.pass(minutes(1));
    for (let loss = 0; loss < 3; loss += 1) await loseLink(node, 'mlx5_0');
    expect(node.verdicts).toMatchObject({ mlx5_0: 'unhealthy LinkFlapping/1 fatal' });
    await node.skip(hours(11));
    await node.pass(minutes(15));
    expect(node.verdicts).toMatchObject({ mlx5_0: 'unhealthy LinkFlapping/1 fatal' });
    await node.skip(hours(1));
    await node.pass(minutes(15));
    expect(node.verdicts).toEqual(allHealthy(...HCA_NAMES));
  });
});
