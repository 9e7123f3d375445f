import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { DevicePluginClient, type ListAndWatchResponse } from '../../src/generated/deviceplugin/v1beta1/api.ts';
import type { PluginResource } from '../../src/model/plugin-resource.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import { admitThroughPlugins } from '../../src/sim/kubelet/admission.ts';
import { TestKubelet } from '../support/kubelet/kubelet.ts';
import { SimulatedPluginWatcher } from '../support/kubelet/plugin-watcher.ts';
import { familyState } from '../support/snapshots.ts';
import { until } from '../support/until.ts';
import { type Bench, type BenchSettings, deviceState, listed, ownSockets, pause, setUp, TOY } from './support.ts';

const open: Bench[] = [];
afterEach(async () => {
  for (const bench of open.splice(0)) await bench.close();
});

function bench(settings: BenchSettings = {}): Bench {
  const made = setUp(settings);
  open.push(made);
  return made;
}

async function registered(settings: BenchSettings = {}, devices = 3): Promise<Bench> {
  const made = bench(settings);
  await made.manager.start();
  made.store.publish([deviceState({ id: 't0', numaNode: 0 }), deviceState({ id: 't1', numaNode: 1 }), deviceState({ id: 't2' })]);
  made.plugin.start();
  await until(() => listed(made.manager).length === devices, 'it is registered');
  return made;
}

describe('device plugin', () => {
  it('registers and sends the whole list, with topology only where it is known', async () => {
    const { manager, plugin } = await registered();
    expect(manager.devices(TOY.resource)).toEqual([
      { ID: 't0', health: 'Healthy', topology: { nodes: [{ ID: 0n }] } },
      { ID: 't1', health: 'Healthy', topology: { nodes: [{ ID: 1n }] } },
      { ID: 't2', health: 'Healthy', topology: undefined },
    ]);
    expect(manager.capacity(TOY.resource)).toEqual({ capacity: 3, allocatable: 3 });
    expect(plugin.stats().resources[0]).toMatchObject({
      resource: TOY.resource,
      registered: true,
      streams: 1,
      healthy: 3,
      unhealthy: 0,
      registrations: { ok: 1 },
    });
  });

  it('tells a change of the verdict and of the set, and nothing when neither changed', async () => {
    const { manager, store, plugin } = await registered();
    store.publish([deviceState({ id: 't0', numaNode: 0 }), deviceState({ id: 't1', numaNode: 1 }, 'unhealthy'), deviceState({ id: 't2' })]);
    await until(() => listed(manager)[1] === 't1=Unhealthy', 't1 is unhealthy');
    expect(manager.capacity(TOY.resource)).toEqual({ capacity: 3, allocatable: 2 });
    store.publish([
      deviceState({ id: 't0', numaNode: 0 }, 'degraded'),
      deviceState({ id: 't1', numaNode: 1 }, 'unhealthy'),
      deviceState({ id: 't2' }),
    ]);
    store.publish([deviceState({ id: 't0', numaNode: 0 }), deviceState({ id: 't3' })]);
    await until(() => listed(manager).join() === 't0=Healthy,t3=Healthy', 't3 is there');
    const lists = plugin.stats().resources[0]?.calls.find(({ method }) => method === 'ListAndWatch');
    expect(lists?.durations.count, 'the first list and two changes').toBe(3);
  });

  it('keeps a missing device listed as unhealthy', async () => {
    const { manager, store } = await registered();
    store.publish([deviceState({ id: 't0' }), { ...deviceState({ id: 't1' }), missingSinceMs: 1 }]);
    await until(() => listed(manager).join() === 't0=Healthy,t1=Unhealthy', 't1 is unhealthy');
  });

  it('waits with registering until the hardware was looked at', async () => {
    const { manager, store, plugin } = bench();
    await manager.start();
    plugin.start();
    const { succeeded: _, ...unread } = familyState('toy');
    store.publish([], [{ ...unread, runs: 0 }]);
    store.publish([deviceState({ id: 't0' })]);
    await until(() => listed(manager).join() === 't0=Healthy', 'it is registered');
    const lists = plugin.stats().resources[0]?.calls.find(({ method }) => method === 'ListAndWatch');
    expect([manager.registrations, lists?.durations.count], 'and no empty list was told before').toEqual([1, 1]);
  });

  it('hands devices out, and refuses what is unknown or out of service in words that name it', async () => {
    const { manager, plugin, store } = await registered();
    const grant = await manager.allocate({ podUid: 'u1', container: 'main', resource: TOY.resource, count: 2 });
    expect(grant.deviceIds).toHaveLength(2);
    expect(grant.response.devices.map(({ hostPath }) => hostPath)).toEqual(['/dev/toyctl', ...grant.deviceIds.map((id) => `/dev/${id}`)]);
    expect(await manager.allocate({ podUid: 'u1', container: 'main', resource: TOY.resource, count: 2 })).toEqual(grant);
    // The kubelet still believes in a device that went bad a moment ago, as it can when both happen at once.
    const stale = manager.devices(TOY.resource).map(({ ID }) => ID);
    const free = stale.find((id) => !grant.deviceIds.includes(id)) as string;
    const asking = manager.allocate({ podUid: 'u2', container: 'main', resource: TOY.resource, count: 1 });
    store.publish([deviceState({ id: free }, 'unhealthy')]);
    await expect(asking).rejects.toThrow(`device "${free}" of example.com/toy must not be used: unhealthy; Fault/Broken: error count 3`);
    expect(plugin.stats().resources[0]?.allocations).toEqual({
      ...{ ok: 1, 'unhealthy-device': 1, 'unknown-device': 0 },
      ...{ 'dirty-device': 0, 'unsupported-strategy': 0, 'invalid-request': 0, internal: 0 },
    });
    expect(plugin.stats().resources[0]?.calls.find(({ method }) => method === 'Allocate')?.durations.count).toBe(2);
  });

  it('checks a verdict again before a container starts only where configured', async () => {
    const strict: PluginResource = { ...TOY, resource: 'example.com/strict', preStart: true, allowOverlap: true };
    let refreshed = 0;
    const refresh = async (): Promise<void> => {
      refreshed += 1;
    };
    const made = bench({ resources: [TOY, strict], parts: { refresh } });
    await made.manager.start();
    made.store.publish([deviceState({ id: 't0' })]);
    made.plugin.start();
    for (const resource of [TOY.resource, strict.resource]) await until(() => listed(made.manager, resource).length === 1, 'registered');
    const grants = [];
    for (const resource of [TOY.resource, strict.resource]) {
      grants.push(await made.manager.allocate({ podUid: 'u', container: 'main', resource, count: 1 }));
    }
    await made.manager.preStart(grants[1] as never, strict.resource);
    expect(refreshed).toBe(1);
    made.store.publish([deviceState({ id: 't0' }, 'unhealthy')]);
    await expect(made.manager.preStart(grants[1] as never, strict.resource)).rejects.toThrow('must not be used');
    await made.manager.preStart(grants[0] as never, TOY.resource);
    expect(refreshed).toBe(2);
  });

  it('reads nothing before a container with an unknown id starts, and shares a read between many calls', async () => {
    const strict: PluginResource = { ...TOY, resource: 'example.com/strict', preStart: true };
    let [began, running, most, isReleased] = [0, 0, 0, false];
    const refresh = async (): Promise<void> => {
      began += 1;
      running += 1;
      most = Math.max(most, running);
      // Until all calls of the test have arrived.
      await until(() => isReleased, 'the reads may end');
      running -= 1;
    };
    const made = bench({ resources: [strict], parts: { refresh } });
    await made.manager.start();
    made.store.publish([deviceState({ id: 't0' })]);
    made.plugin.start();
    await until(() => listed(made.manager, strict.resource).length === 1, 'registered');
    const path = join(made.directory, ownSockets(made.directory)[0] as string);
    const client = new DevicePluginClient(`unix:${path}`, credentials.createInsecure());
    const call = (id: string) =>
      new Promise<string>((resolve) => client.preStartContainer({ devicesIds: [id] }, (error) => resolve(error?.details ?? 'ok')));
    const forged = await Promise.all(Array.from({ length: 100 }, (_, at) => call(`none-${at}`)));
    expect(new Set(forged.map((text) => text.slice(0, 36))), 'all refused').toEqual(new Set(['example.com/strict has no device "no']));
    expect(began).toBe(0);
    const calls = Array.from({ length: 30 }, () => call('t0'));
    await until(() => began === 1, 'the first read has begun');
    isReleased = true;
    expect(await Promise.all(calls)).toEqual(Array.from({ length: 30 }, () => 'ok'));
    expect(began, 'the first call, and the others together').toBeLessThanOrEqual(2);
    expect(most).toBe(1);
    client.close();
  });

  it('gives a kubelet that reads slowly the newest list, not all that it missed', async () => {
    const made = await registered({ resources: [{ ...TOY, replicas: 1_000 }] }, 3_000);
    const client = new DevicePluginClient(
      `unix:${join(made.directory, ownSockets(made.directory)[0] as string)}`,
      credentials.createInsecure(),
    );
    const stream = client.listAndWatch({});
    let received = 0;
    let last = '';
    await new Promise<void>((resolve) => stream.once('readable', resolve));
    for (let change = 0; change < 200; change += 1) {
      made.store.publish([deviceState({ id: `t${change}` })]);
      await pause(1);
    }
    stream.on('data', ({ devices }: ListAndWatchResponse) => {
      received += 1;
      last = devices[0]?.ID ?? '';
    });
    stream.on('error', () => {});
    await until(() => last === 't199::0', 'the newest arrived');
    expect(received).toBeLessThan(100);
    client.close();
    stream.cancel();
  });

  it('serves device nodes that no family knows as they come and go', async () => {
    const nodes = new Set(['ttyUSB0']);
    const dev = { list: () => [...nodes], exists: (path: string) => nodes.has(path) };
    const made = bench({ resources: [{ resource: TOY.resource, paths: ['/dev/ttyUSB*'] }], parts: { dev } });
    await made.manager.start();
    made.plugin.start();
    await until(() => listed(made.manager).join() === '/dev/ttyUSB0=Healthy', 'the first is there');
    nodes.add('ttyUSB1');
    nodes.delete('ttyUSB0');
    await until(() => listed(made.manager).join() === '/dev/ttyUSB0=Unhealthy,/dev/ttyUSB1=Healthy', 'both are told');
    const { response } = await made.manager.allocate({ podUid: 'u', container: 'c', resource: TOY.resource, count: 1 });
    expect(response.devices).toEqual([{ containerPath: '/dev/ttyUSB1', hostPath: '/dev/ttyUSB1', permissions: 'rw' }]);
  });

  it('names the devices in variables, as each family has them', async () => {
    const resources = ['nvidia', 'infiniband', 'fpga'].map((family) => ({ resource: `example.com/${family}-dev`, select: { family } }));
    const families = await Promise.all(Object.values(familyLoaders).map((load) => load()));
    const made = bench({ resources, parts: { access: Object.fromEntries(families.map(({ name, access }) => [name, access])) } });
    await made.manager.start();
    made.store.publish(
      [
        deviceState({ family: 'nvidia', id: 'GPU-b', uuid: 'GPU-b', index: '0', pciAddress: '0000:17:00.0' }),
        deviceState({ family: 'nvidia', id: 'GPU-a', uuid: 'GPU-a', index: '1', pciAddress: '0000:31:00.0' }),
        deviceState({ family: 'infiniband', id: 'mlx5_10', pciAddress: '0000:3b:00.0' }),
        deviceState({ family: 'infiniband', id: 'mlx5_9', pciAddress: '0000:af:00.0' }),
        deviceState({ family: 'fpga', id: 'dfl-port.0', kind: 'port', pciAddress: '0000:b1:00.0' }),
        deviceState({ family: 'fpga', id: 'dfl-port.1', kind: 'port' }),
      ],
      families.map(({ name }) => familyState(name)),
    );
    made.plugin.start();
    const envs: Record<string, unknown> = {};
    for (const { resource } of resources) {
      await until(() => listed(made.manager, resource).length === 2, 'it is registered');
      const { response } = await made.manager.allocate({ podUid: resource, container: 'c', resource, count: 2 });
      envs[resource] = response.envs;
    }
    expect(envs).toEqual({
      'example.com/nvidia-dev': { DEVICE_AGENT_DEVICES_EXAMPLE_COM_NVIDIA_DEV: 'GPU-a,GPU-b', NVIDIA_VISIBLE_DEVICES: 'GPU-a,GPU-b' },
      'example.com/infiniband-dev': {
        DEVICE_AGENT_DEVICES_EXAMPLE_COM_INFINIBAND_DEV: 'mlx5_9,mlx5_10',
        PCIDEVICE_EXAMPLE_COM_INFINIBAND_DEV: '0000:af:00.0,0000:3b:00.0',
      },
      'example.com/fpga-dev': {
        DEVICE_AGENT_DEVICES_EXAMPLE_COM_FPGA_DEV: 'dfl-port.0,dfl-port.1',
        PCIDEVICE_EXAMPLE_COM_FPGA_DEV: '0000:b1:00.0',
      },
    });
  });

  it('leaves no socket, no subscription and no stream behind', async () => {
    const { directory, plugin, store } = await registered();
    expect(ownSockets(directory)).toHaveLength(1);
    await plugin.stop();
    expect(ownSockets(directory)).toEqual([]);
    expect(store.subscribers).toBe(0);
    expect(plugin.stats().resources[0]).toMatchObject({ registered: false, streams: 0 });
  });

  it('is found by the plugin watcher, over the kubelet restarting and the stream breaking', async () => {
    const made = bench({ registration: 'watcher' });
    mkdirSync(made.registry, { recursive: true });
    await made.manager.start();
    const watcher = new SimulatedPluginWatcher(made.registry, made.manager, undefined, 20);
    watcher.start();
    made.store.publish([deviceState({ id: 't0' })]);
    made.plugin.start();
    await until(() => listed(made.manager).join() === 't0=Healthy', 'it is registered');
    expect(made.manager.registrations).toBe(0);
    watcher.stop();
    await made.manager.restart();
    watcher.start();
    await until(() => listed(made.manager).join() === 't0=Healthy', 'it is registered again');
    made.manager.disconnect(TOY.resource);
    await until(
      () => made.manager.isConnected(TOY.resource) && listed(made.manager)[0] === 't0=Healthy',
      'it is back after a broken stream',
    );
    await made.plugin.stop();
    expect(ownSockets(made.registry)).toEqual([]);
    watcher.stop();
  });

  it('lets pods be admitted whose devices PodResources then lists', async () => {
    const made = await registered();
    const kubelet = new TestKubelet({ directory: `${made.directory}/..` });
    const pod = {
      namespace: 'ml',
      name: 'train',
      uid: 'u1',
      containers: [{ name: 'main', wants: [{ resource: TOY.resource, count: 3 }] }],
    };
    const admitted = await admitThroughPlugins(kubelet, made.manager, pod);
    expect(admitted.containers[0]?.devices?.map(({ id }) => id).sort()).toEqual(['t0', 't1', 't2']);
    expect(admitted.containers[0]?.devices?.find(({ id }) => id === 't1')?.numaNodes).toEqual([1]);
    await expect(admitThroughPlugins(kubelet, made.manager, { ...pod, name: 'late', uid: 'u2' })).rejects.toThrow(
      'requested number of devices unavailable for example.com/toy. Requested: 3, Available: 0',
    );
    expect(kubelet.pods().map(({ name, ended }) => [name, ended])).toEqual([
      ['train', undefined],
      ['late', true],
    ]);
  });
});
