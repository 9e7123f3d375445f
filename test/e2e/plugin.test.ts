import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { admitThroughPlugins } from '../../src/sim/kubelet/admission.ts';
import { removeAsKernel } from '../support/kernel-files.ts';
import { seriesValue } from '../support/serve.ts';
import { type NodeSettings, ServedNode, type ToldEvent } from './served-node.ts';

const WAIT = { interval: 20 };

const load = async (name: string): Promise<DeviceFamily> => (familyLoaders[name] as () => Promise<DeviceFamily>)();
const infiniband = await load('infiniband');
const fpga = await load('fpga');

let node: ServedNode | undefined;
afterEach(async () => {
  await node?.stop();
  node = undefined;
});

async function start(settings: NodeSettings): Promise<{ node: ServedNode; agent: Awaited<ReturnType<ServedNode['start']>> }> {
  node = new ServedNode(settings);
  return { node, agent: await node.start() };
}

const HCA = 'example.com/hca';
const hcas = (health: object = {}, flags: readonly string[] = []): NodeSettings => ({
  family: infiniband,
  counts: { infiniband: 2 },
  resource: HCA,
  config: {
    plugin: { resources: [{ resource: HCA, select: { family: 'infiniband', kind: 'pf' } }] },
    health: { conditions: { 'infiniband.PortDown': { for: '500ms', recovery: '700ms' } }, ...health },
  },
  flags,
});
const down = (name: string) => ({ [`${name}/ports/1/state`]: '1: DOWN', [`${name}/ports/1/phys_state`]: '2: Polling' });
const up = (name: string) => ({ [`${name}/ports/1/state`]: '4: ACTIVE', [`${name}/ports/1/phys_state`]: '5: LinkUp' });

const bothHealthy = { mlx5_0: 'Healthy', mlx5_1: 'Healthy' };
const timeOf = (events: readonly ToldEvent[], transition: string, condition: string): number | undefined => {
  const found = events.findLast((event) => event.transition === transition && event.condition === condition);
  return found === undefined ? undefined : Date.parse(found.time);
};

describe('a port whose cable is pulled', () => {
  it('is unhealthy to kubelet, metrics and events at once when the policy says so, and healthy again after the recovery time', async () => {
    const { node, agent } = await start(hcas());
    await expect.poll(() => node.list(), WAIT).toEqual(bothHealthy);
    await agent.until('registered', (page) => seriesValue(page, 'device_agent_plugin_registered', { resource: HCA }) === 1);
    const wants = [{ resource: HCA, count: 2 }];
    await admitThroughPlugins(node.kubelet, node.manager, {
      namespace: 'ml',
      name: 'train',
      uid: 'u-1',
      containers: [{ name: 'rank', wants }],
    });
    await agent.until('held', (page) => seriesValue(page, 'container_device_allocation', { pod: 'train', device: 'mlx5_1' }) === 1);

    const pulledMs = node.change(down('mlx5_1'));
    await expect.poll(() => node.list(), WAIT).toEqual({ ...bothHealthy, mlx5_1: 'Unhealthy' });
    const page = await agent.metrics();
    expect(seriesValue(page, 'device_healthy', { device: 'mlx5_1' })).toBe(0);
    expect(seriesValue(page, 'device_healthy', { device: 'mlx5_0' })).toBe(1);
    expect(seriesValue(page, 'container_device_healthy', { pod: 'train', device: 'mlx5_1' })).toBe(0);
    expect(seriesValue(page, 'device_agent_plugin_devices', { resource: HCA, state: 'unhealthy' })).toBe(1);
    await expect.poll(async () => timeOf(await node.events(), 'raised', 'PortDown'), WAIT).toBeDefined();
    const events = await node.events();
    const raisedMs = timeOf(events, 'raised', 'PortDown') ?? 0;
    expect(raisedMs - pulledMs, 'held for the time that the policy asks for').toBeGreaterThanOrEqual(500);
    expect(events.find(({ transition }) => transition === 'raised')).toMatchObject({
      device: 'infiniband/mlx5_1',
      remedy: 'check-cable',
      holders: [{ namespace: 'ml', pod: 'train', container: 'rank', resource: HCA, deviceId: 'mlx5_1' }],
    });

    const pluggedMs = node.change(up('mlx5_1'));
    await expect.poll(() => node.list(), WAIT).toEqual(bothHealthy);
    await expect.poll(async () => timeOf(await node.events(), 'cleared', 'PortDown'), WAIT).toBeDefined();
    const clearedMs = timeOf(await node.events(), 'cleared', 'PortDown') ?? 0;
    expect(clearedMs - pluggedMs, 'quiet for the recovery time').toBeGreaterThanOrEqual(700);
    expect(seriesValue(await agent.metrics(), 'device_healthy', { device: 'mlx5_1' })).toBe(1);
    expect(agent.child.exitCode, 'the process that began').toBeNull();
    expect(node.manager.registrations, 'one registration for it all').toBe(1);
  });
});

describe('an FPGA board with an error in its register', () => {
  const PORT = 'example.com/fpga';

  it('takes its port out at the kubelet until the register is clear, and leaves the other board in', async () => {
    const settings: NodeSettings = {
      family: fpga,
      counts: { fpga: 3 },
      resource: PORT,
      config: { plugin: { resources: [{ resource: PORT, select: { family: 'fpga', kind: 'port' } }] } },
    };
    const { node, agent } = await start(settings);
    await expect.poll(() => Object.values(node.list()), WAIT).toEqual(['Healthy', 'Healthy']);
    const [first, second] = Object.keys(node.list()) as [string, string];

    node.change({ 'dfl-fme.0/errors/catfatal_errors': '0x1' });
    await expect.poll(() => node.list(), WAIT).toEqual({ [first]: 'Unhealthy', [second]: 'Healthy' });
    await expect.poll(async () => timeOf(await node.events(), 'raised', 'FatalError'), WAIT).toBeDefined();
    expect(seriesValue(await agent.metrics(), 'device_healthy', { device: first })).toBe(0);

    node.change({ 'dfl-fme.0/errors/catfatal_errors': '0x0' });
    await expect.poll(() => node.list(), WAIT).toEqual({ [first]: 'Healthy', [second]: 'Healthy' });
    expect(agent.child.exitCode).toBeNull();
  });
});

describe('a device at which a read hangs', () => {
  const hang = (root: string, path: string): void => {
    removeAsKernel(join(root, path));
    execFileSync('mkfifo', [join(root, path)]);
  };
  const quick = ['--refresh.interval=200ms', '--refresh.timeout=500ms', '--refresh.stale-after=1500ms'];

  it.each([
    ['unhealthy', 'Unhealthy'],
    ['healthy', 'Healthy'],
  ])('is unknown, and the kubelet is told what the policy says: %s', async (unknown, told) => {
    const { node, agent } = await start(hcas({ unknown }, quick));
    await expect.poll(() => node.list(), WAIT).toEqual(bothHealthy);
    hang(node.root, node.file('mlx5_0/ports/1/counters/port_rcv_data'));
    await agent.until('unknown', (page) => seriesValue(page, 'device_health', { device: 'mlx5_0', state: 'unknown' }) === 1);
    expect(seriesValue(await agent.metrics(), 'device_healthy', { device: 'mlx5_0' })).toBeUndefined();
    await expect.poll(() => node.list(), WAIT).toEqual({ mlx5_0: told, mlx5_1: 'Healthy' });

    node.change(down('mlx5_1'));
    await expect.poll(() => node.list(), WAIT).toEqual({ mlx5_0: told, mlx5_1: 'Unhealthy' });
    node.change(up('mlx5_1'));
    await expect.poll(() => node.list(), WAIT).toEqual({ mlx5_0: told, mlx5_1: 'Healthy' });
    expect(await agent.stop(), 'exit status in spite of a thread stuck in the kernel').toBe(0);
    expect(node.ownSockets()).toEqual([]);
  });
});

describe('a whole family that hangs', () => {
  it('leaves the verdicts and lists of the others alone', async () => {
    const [board, settings] = [fpga, hcas({}, ['--refresh.interval=200ms', '--refresh.timeout=500ms'])];
    const { node, agent } = await start(settings);
    await expect.poll(() => node.list(), WAIT).toEqual(bothHealthy);
    execFileSync('mkdir', ['-p', join(node.root, 'sys/class/fpga_manager/fpga0')]);
    execFileSync('mkfifo', [join(node.root, 'sys/class/fpga_manager/fpga0/state')]);
    await agent.until('it hangs', (page) => seriesValue(page, 'device_agent_probe_hung', { family: board.name }) === 1);
    node.change(down('mlx5_0'));
    await expect.poll(() => node.list(), WAIT).toEqual({ mlx5_0: 'Unhealthy', mlx5_1: 'Healthy' });
  });
});

describe('leaving', () => {
  it.each(['hang', 'no-dial-back', 'refuse'] as const)('ends in time and without a socket although the kubelet does: %s', async (kind) => {
    node = new ServedNode(hcas());
    await node.kubelet.start();
    await node.manager.start();
    node.manager.setFault(kind === 'refuse' ? { kind, message: 'not today' } : { kind });
    const agent = await node.startAgent();
    await expect.poll(() => node?.manager.registrations, WAIT).toBeGreaterThan(0);
    expect(await agent.stop()).toBe(0);
    expect(node.ownSockets()).toEqual([]);
  });

  it('takes its sockets along and the kubelet sees the devices go', async () => {
    const { node, agent } = await start(hcas());
    await expect.poll(() => node.list(), WAIT).toEqual(bothHealthy);
    expect(node.ownSockets()).toHaveLength(1);
    expect(await agent.stop()).toBe(0);
    expect(node.ownSockets()).toEqual([]);
    await expect.poll(() => node.list(), WAIT).toEqual({ mlx5_0: 'Unhealthy', mlx5_1: 'Unhealthy' });
  });
});

describe('a resource that is checked before its containers start', () => {
  it('is read again at that moment, not judged by the last reading', async () => {
    const settings = hcas({ conditions: { 'infiniband.PortDown': { for: '0s', recovery: '0s' } } }, ['--refresh.interval=1h']);
    const { plugin } = settings.config as { plugin: { resources: object[] } };
    const resources = plugin.resources.map((resource) => ({ ...resource, preStart: true }));
    const { node } = await start({ ...settings, config: { ...settings.config, plugin: { resources } } });
    await expect.poll(() => node.list(), WAIT).toEqual(bothHealthy);
    const grant = await node.manager.allocate({ podUid: 'u', container: 'c', resource: HCA, count: 2 });
    await node.manager.preStart(grant, HCA);
    node.change(down('mlx5_0'));
    await expect(node.manager.preStart(grant, HCA)).rejects.toThrow(/mlx5_0.*PortDown/);
    await expect.poll(() => node.list(), WAIT).toEqual({ mlx5_0: 'Unhealthy', mlx5_1: 'Healthy' });
  });
});

describe('shares of a device', () => {
  it.each([
    ['replicas', { replicas: 3 }, /^mlx5_[01]::\d$/, 2],
    ['places of a pool', { pool: 4 }, /^\d$/, 4],
  ])('that the agent hands out itself are joined without a rule: %s', async (_, more, form, devices) => {
    const settings = hcas();
    const { plugin } = settings.config as { plugin: { resources: object[] } };
    const resources = plugin.resources.map((resource) => ({ ...resource, ...more }));
    const { node, agent } = await start({ ...settings, config: { plugin: { resources } } });
    await expect.poll(() => Object.keys(node.list()).length, WAIT).toBeGreaterThan(3);
    const wants = [{ resource: HCA, count: 2 }];
    const pod = { namespace: 'ml', name: 'share', uid: 'u-1', containers: [{ name: 'rank', wants }] };
    await admitThroughPlugins(node.kubelet, node.manager, pod);
    const allocations = (page: string): string[] => page.split('\n').filter((line) => line.startsWith('container_device_allocation{'));
    const page = await agent.until('joined', (text) => allocations(text).length === devices);
    for (const line of allocations(page)) expect(/device_id="([^"]*)"/.exec(line)?.[1]).toMatch(form);
    expect(page).not.toContain('container_device_unresolved{');
  });
});
