import { cpus } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { seriesOf } from '../kubelet/real/support/watched-node.ts';
import { type ServedAgent, seriesValue } from '../support/serve.ts';
import { unless } from '../support/skipped.ts';
import { AgentOnStockNode, attributed, HCA } from './support/agent-on-stock-node.ts';
import { kubelets, whyNoNode } from './support/stock-node.ts';

const why = whyNoNode();

const WAIT = { interval: 50 };
// Up to 1.35 a kubelet knows neither gate.
const cases = (await kubelets())
  .flatMap((kubelet) => [true, false].map((gate) => ({ ...kubelet, gate })))
  .filter(({ minor }) => minor === 0 || minor >= 36);

/** Static policies; half a CPU is reserved, which rounds up to one. */
const settings = (gate: boolean): string => `
featureGates: {PodsAPI: ${gate}, PodLevelResourceManagers: ${gate}}
cpuManagerPolicy: static
memoryManagerPolicy: Static
topologyManagerPolicy: best-effort
topologyManagerScope: pod
systemReserved: {cpu: 500m, memory: 924Mi}
reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}]`;

const MEMORY = 128 * 2 ** 20;

const title = `pods on a stock kubelet $version, gates $gate${unless(why === undefined, why ?? '')}`;
describe.skipIf(why !== undefined).each(cases)(title, ({ program, minor, gate }) => {
  let on: AgentOnStockNode;
  let agent: ServedAgent;

  beforeAll(async () => {
    on = new AgentOnStockNode(program, { KUBELET_CONFIG_EXTRA: settings(gate) });
    await on.node.start();
    agent = await on.startAgent('--podresources.restart-grace=4s', '--podsapi', `--podsapi.socket=${on.node.podsApiSocket}`);
  });

  afterAll(async () => {
    await on?.close();
  });

  const uids = (page: string) => seriesOf(page, 'container_device_pod_info');
  const isUp = (page: string) => seriesValue(page, 'device_agent_podsapi_up');

  it('have a UID where the Pods API is on, if they hold devices, and all else without it', async () => {
    await expect.poll(() => on.usable(), WAIT).toBe(4);
    on.node.add({ name: 'train', containers: [{ name: 'main', limits: { [HCA]: 1 } }] });
    on.node.add({ name: 'idle', containers: [{ name: 'main' }] });
    for (const name of ['train', 'idle']) await expect.poll(async () => (await on.statusOf(name)).phase, WAIT).toBe('Running');
    const page = await agent.until('attributed', (text) => attributed(text, 'train').length === 1 && isUp(text) === Number(gate));
    const expected = gate ? [{ namespace: 'default', pod: 'train-node-1', pod_uid: on.node.uidOf('train') }] : [];
    await agent.until('the UID', (text) => uids(text).length === expected.length);
    expect(uids(await agent.metrics())).toEqual(expected);
    expect(page).not.toContain('device_agent_podresources_up 0');
    expect(agent.log().match(/Pods API does not answer/g)?.length ?? 0).toBe(gate ? 0 : 1);
  });

  it.runIf(gate && minor >= 37 && cpus().length > 1)('have exclusive CPUs and memory that containers share, counted once', async () => {
    const container = (name: string, limits?: object) => ({
      name,
      image: 'localhost/pause:1',
      imagePullPolicy: 'Never',
      args: ['show'],
      ...(limits === undefined ? {} : { resources: { limits } }),
    });
    const pod = async (name: string, containers: readonly object[]): Promise<string> => {
      const limits = { cpu: '1', memory: '128Mi' };
      const spec = { terminationGracePeriodSeconds: 0, resources: { requests: limits, limits }, containers };
      on.node.addManifest(name, { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'default' }, spec });
      await expect.poll(async () => (await on.statusOf(name)).phase, WAIT).toBe('Running');
      return await agent.until('told', (text) => seriesValue(text, 'pod_exclusive_cpus', { pod: `${name}-node-1` }) === 1);
    };
    const remove = async (name: string): Promise<void> => {
      on.node.remove(name);
      await agent.until('gone', (text) => !text.includes('pod_exclusive_'));
    };

    const shared = await pod('shared', [container('one'), container('two')]);
    expect(seriesValue(shared, 'pod_exclusive_memory_bytes', { kind: 'memory', numa_node: '0' })).toBe(MEMORY);
    expect(shared).not.toContain('container_exclusive_');
    await remove('shared');

    // What a container has is in both, so each level alone is the sum.
    const single = await pod('single', [container('main', { cpu: '1', memory: '128Mi' })]);
    expect(seriesValue(single, 'container_exclusive_cpus', { container: 'main' })).toBe(1);
    expect(seriesValue(single, 'container_exclusive_memory_bytes', { container: 'main' })).toBe(MEMORY);
    expect(seriesValue(single, 'pod_exclusive_memory_bytes', { kind: 'memory', numa_node: '0' })).toBe(MEMORY);
    await remove('single');
  });

  it.runIf(gate)('keep their UID through a restart of the kubelet', async () => {
    const before = uids(await agent.metrics());
    await on.node.stopKubelet('KILL');
    await agent.until('the end of the kubelet', (text) => isUp(text) === 0);
    expect(uids(await agent.metrics())).toEqual(before);
    await on.node.startKubelet();
    await agent.until('the kubelet', (text) => isUp(text) === 1);
    expect(uids(await agent.metrics())).toEqual(before);
    await expect.poll(() => on.usable(), WAIT).toBe(4);
    on.node.remove('train');
    await agent.until('no holder', (text) => uids(text).length === 0);
  });
});
