import { credentials } from '@grpc/grpc-js';
import { expect, it } from 'vitest';
import {
  type AllocatableResourcesResponse,
  type GetPodResourcesResponse,
  type ListPodResourcesResponse,
  PodResourcesListerClient,
} from '../../../src/generated/podresources/v1/api.ts';
import { seriesValue } from '../../support/serve.ts';
import type { WantedPod } from './support/exchanged.ts';
import { describeReal, type RealKubelet } from './support/real-kubelet.ts';
import { VendorPlugin } from './support/vendor-plugin.ts';
import { closeAfterEach, closing, podNamed, seriesOf, watchedNode } from './support/watched-node.ts';

closeAfterEach();

const GPU = 'nvidia.com/gpu';
const WAIT = { interval: 50 };
const GIB = 2 ** 30;

/** Somebody else's plugin hands the simulated GPUs out by their UUIDs; the agent only watches. */
async function vendorOf(kubelet: RealKubelet, uuids: readonly string[]): Promise<VendorPlugin> {
  const devices = uuids.map((id, at) => ({ id, nodes: [at % 2] }));
  const plugin = closing(await new VendorPlugin(kubelet.pluginDirectory, { resource: GPU, devices }).start());
  await expect.poll(() => kubelet.amounts(GPU), WAIT).toBe(`${uuids.length}/${uuids.length}`);
  return plugin;
}

async function uuidsOf(node: Awaited<ReturnType<typeof watchedNode>>): Promise<string[]> {
  const gpus = async (): Promise<string[]> => (await node.devices()).filter(({ kind }) => kind === 'gpu').map(({ id }) => id);
  await expect.poll(async () => (await gpus()).length, WAIT).toBe(3);
  return gpus();
}

const POD: WantedPod = {
  ...podNamed('train'),
  containers: [
    { name: 'prepare', kind: 'init', wants: { [GPU]: 1 } },
    { name: 'proxy', kind: 'sidecar', wants: { [GPU]: 1 }, cpus: [6] },
    {
      name: 'main',
      wants: { [GPU]: 2 },
      cpus: [2, 3, 4],
      memory: [
        { type: 'memory', bytes: 3 * GIB, nodes: [0, 1] },
        { type: 'hugepages-2Mi', bytes: GIB, nodes: [1] },
      ],
      claims: [{ namespace: 'ml', name: 'nics', devices: [{ driver: 'dra.net', pool: 'worker', device: 'pci-0000-10-00-0' }] }],
    },
  ],
};

const NODE = ['-cpus', '[0,1,2,3,4,5,6,7]', '-memory', JSON.stringify([{ type: 'memory', bytes: 8 * GIB, nodes: [0] }])];

describeReal("the kubelet's own PodResources services", () => {
  it('attribute devices of another plugin, exclusive CPUs and memory, and claims, to apps and sidecars but not to init containers', async () => {
    const node = await watchedNode({ counts: { nvidia: 3, infiniband: 1 }, kubelet: NODE });
    const { kubelet, agent } = node;
    await vendorOf(kubelet, await uuidsOf(node));
    const { prepare, proxy, main } = await kubelet.run(POD);
    expect(proxy?.devices[GPU], 'the next container goes on with what the init container had').toEqual(prepare?.devices[GPU]);
    const page = await agent.until('attributed', (text) => seriesOf(text, 'container_device_allocation').length === 4);
    const told = seriesOf(page, 'container_device_allocation').map(({ container, device }) => `${container} ${device}`);
    const expected = [...(main?.devices[GPU] ?? []).map((id) => `main ${id}`), `proxy ${proxy?.devices[GPU]?.[0]}`, 'main mlx5_0'];
    expect(told.sort()).toEqual(expected.sort());
    expect(seriesValue(page, 'container_exclusive_cpus', { container: 'main' })).toBe(3);
    expect(seriesValue(page, 'container_exclusive_cpus', { container: 'proxy' })).toBe(1);
    expect(seriesValue(page, 'container_exclusive_memory_bytes', { kind: 'memory', numa_node: '0,1' })).toBe(3 * GIB);
    expect(seriesValue(page, 'container_exclusive_memory_bytes', { kind: 'hugepages-2Mi', numa_node: '1' })).toBe(GIB);
    const claim = {
      claim: 'nics',
      claim_namespace: 'ml',
      driver: 'dra.net',
      pool: 'worker',
      claim_device: 'pci-0000-10-00-0',
      device: 'mlx5_0',
    };
    expect(seriesValue(page, 'container_device_claim_info', claim)).toBe(1);
    expect(seriesValue(page, 'device_agent_kubelet_allocatable_devices', { resource: GPU })).toBe(3);
    expect(seriesValue(page, 'device_agent_kubelet_allocatable_cpus')).toBe(8);
    expect(seriesValue(page, 'device_agent_kubelet_allocatable_memory_bytes', { kind: 'memory', numa_node: '0' })).toBe(8 * GIB);
  });

  it('count healthy devices of another plugin, and forget the pods that came to their end', async () => {
    const node = await watchedNode({ counts: { nvidia: 3 } });
    const { kubelet, agent } = node;
    const [first, ...others] = await uuidsOf(node);
    const plugin = await vendorOf(kubelet, [`${first}`, ...others]);
    const allocatable = (page: string): number | undefined =>
      seriesValue(page, 'device_agent_kubelet_allocatable_devices', { resource: GPU });
    await kubelet.run({ ...podNamed('all'), containers: [{ name: 'main', wants: { [GPU]: 3 } }] });
    await agent.until('attributed', (page) => seriesOf(page, 'container_device_allocation').length === 3 && allocatable(page) === 3);
    plugin.tell([{ id: `${first}`, healthy: false }, ...others.map((id) => ({ id }))]);
    const page = await agent.until('one is out', (text) => allocatable(text) === 2);
    expect(seriesOf(page, 'container_device_allocation'), 'its holder keeps it').toHaveLength(3);
    plugin.close();
    await agent.until('all are out', (text) => allocatable(text) === undefined);
    expect(seriesOf(await agent.metrics(), 'container_device_allocation')).toHaveLength(3);
    await kubelet.finish(podNamed('all'));
    await agent.until('none', (text) => seriesOf(text, 'container_device_allocation').length === 0);
  });

  it('are enough in their oldest version alone', async () => {
    const node = await watchedNode({ counts: { nvidia: 3, infiniband: 1 }, kubelet: ['-only-v1alpha1', ...NODE] });
    const { kubelet, agent } = node;
    await vendorOf(kubelet, await uuidsOf(node));
    const { main } = await kubelet.run(POD);
    const page = await agent.until('attributed', (text) => seriesOf(text, 'container_device_allocation').length === 2);
    const told = seriesOf(page, 'container_device_allocation').map(({ container, device }) => `${container} ${device}`);
    expect(told.sort(), 'it knows of app containers only').toEqual((main?.devices[GPU] ?? []).map((id) => `main ${id}`).sort());
    for (const absent of ['device_agent_kubelet_allocatable_', 'container_exclusive_', 'container_device_claim_info{']) {
      expect(page).not.toMatch(new RegExp(`^${absent}`, 'm'));
    }
    expect(seriesValue(page, 'device_agent_podresources_up')).toBe(1);
    await kubelet.finish(POD);
    await agent.until(
      'an ended pod is still listed, without devices',
      (text) => seriesOf(text, 'container_device_allocation').length === 0,
    );
  });

  it('answer Get with the entry of List, and GetAllocatableResources with what is healthy, as the client decodes them', async () => {
    const node = await watchedNode({ counts: { nvidia: 3 }, kubelet: NODE });
    const { kubelet } = node;
    const plugin = await vendorOf(kubelet, await uuidsOf(node));
    await kubelet.run(POD);
    const client = new PodResourcesListerClient(`unix:${kubelet.podResourcesSocket}`, credentials.createInsecure());
    closing({ close: () => client.close() });
    const call = <T>(ask: (done: (error: Error | null, answer: T) => void) => unknown): Promise<T> =>
      new Promise((resolve, reject) => ask((error, answer) => (error === null ? resolve(answer) : reject(error))));
    const list = await call<ListPodResourcesResponse>((done) => client.list({}, done));
    const get = await call<GetPodResourcesResponse>((done) => client.get({ podNamespace: 'ml', podName: 'train' }, done));
    const inOrder = (pod: GetPodResourcesResponse['podResources']) => ({
      ...pod,
      containers: pod?.containers.map((container) => ({
        ...container,
        devices: [...container.devices].sort((a, b) => ((a.deviceIds[0] ?? '') < (b.deviceIds[0] ?? '') ? -1 : 1)),
      })),
    });
    expect(inOrder(get.podResources)).toEqual(inOrder(list.podResources[0]));
    expect(
      get.podResources?.containers.map(({ name }) => name),
      'sidecars first, no init container',
    ).toEqual(['proxy', 'main']);
    const unknown = call((done) => client.get({ podNamespace: 'ml', podName: 'nobody' }, done));
    await expect(unknown).rejects.toMatchObject({ code: 2, details: 'pod nobody in namespace ml not found' });
    const all = await call<AllocatableResourcesResponse>((done) => client.getAllocatableResources({}, done));
    expect(all.devices.map(({ topology }) => topology?.nodes.map(({ ID }) => ID)).sort()).toEqual([[0n], [0n], [1n]]);
    expect(all.cpuIds).toEqual([0n, 1n, 2n, 3n, 4n, 5n, 6n, 7n]);
    expect(plugin.watchers).toBe(1);
  });
});
