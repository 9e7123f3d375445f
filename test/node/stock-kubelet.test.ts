import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { seriesOf } from '../kubelet/real/support/watched-node.ts';
import { type ServedAgent, seriesValue } from '../support/serve.ts';
import { AgentOnStockNode, attributed, HCA } from './support/agent-on-stock-node.ts';
import { kubelets, whyNoNode } from './support/stock-node.ts';

const why = whyNoNode();
if (why !== undefined) process.stderr.write(`skipped: all tests on a stock kubelet, ${why}\n`);

const WAIT = { interval: 50 };
const ROUNDS = 20;

describe.skipIf(why !== undefined).each(await kubelets())('the agent on a stock kubelet $version', ({ program, minor }) => {
  let on: AgentOnStockNode;
  let agent: ServedAgent;

  const add = async (name: string, count: number): Promise<void> => {
    on.node.add({ name, containers: [{ name: 'main', limits: { [HCA]: count } }] });
    await expect.poll(async () => (await on.statusOf(name)).phase, WAIT).toBe('Running');
  };
  const remove = async (name: string): Promise<void> => {
    on.node.remove(name);
    await expect.poll(() => on.listed(name), WAIT).toBeUndefined();
  };

  beforeAll(async () => {
    on = new AgentOnStockNode(program);
    await on.node.start();
  });

  afterEach(async () => {
    await on?.stopAgent();
  });

  afterAll(async () => {
    await on?.close();
  });

  it('is registered; a static pod has its devices, variables, nodes and CDI edits, and is attributed until it goes', async () => {
    // Before the resource is known, the kubelet takes it for none of its business.
    on.node.add({ name: 'early', containers: [{ name: 'main', limits: { [HCA]: 1 } }] });
    await expect.poll(async () => (await on.statusOf('early')).phase, WAIT).toBe('Running');
    agent = await on.startAgent();
    await expect.poll(() => on.usable(), WAIT).toBe(4);
    expect(await on.listed('early'), 'devices of a pod that came before the plugin').toEqual([]);

    on.node.add({
      name: 'train',
      init: [
        { name: 'prepare', limits: { [HCA]: 1 }, ends: true },
        { name: 'proxy', limits: { [HCA]: 1 }, isSidecar: true },
      ],
      containers: [{ name: 'main', limits: { [HCA]: 2, cpu: '100m', memory: '32Mi' } }, { name: 'idle' }],
    });
    await expect.poll(async () => (await on.listed('train'))?.length, WAIT).toBe(2);
    await agent.until('attributed within a second of the listing', (page) => attributed(page, 'train').length === 3);
    const ids = (await on.listed('train')) as string[];
    const sidecar = (await on.listed('train', 'proxy')) as string[];
    const page = await agent.metrics();
    expect(attributed(page, 'train')).toEqual([...ids, ...sidecar].sort());
    expect(seriesOf(page, 'container_device_unresolved')).toEqual([]);

    await expect.poll(() => on.node.output('train', 'main'), WAIT).toContain('dev widget');
    const output = on.node.output('train', 'main');
    expect(/env HCAS=(\S*)/.exec(output)?.[1]?.split(',').sort()).toEqual(ids);
    for (const id of ids) {
      expect(output).toContain(`dev widget-${id}`);
      expect(output).toContain(`env CDI_${id}=yes`);
    }
    expect(output).not.toContain(`CDI_${sidecar[0]}`);
    await remove('train');
    await agent.until('gone', (text) => attributed(text, 'train').length === 0);
    await remove('early');
  });

  it('is registered by the plugin watcher too', async () => {
    agent = await on.startAgent('--plugin.registration=watcher');
    await expect.poll(() => on.usable(), WAIT).toBe(4);
    await add('watched', 2);
    await agent.until('attributed', (page) => attributed(page, 'watched').length === 2);
    await remove('watched');
    await on.stopAgent();
  });

  it('takes a sick device out: allocatable, refusals and the status of its pod', async () => {
    agent = await on.startAgent();
    await expect.poll(() => on.usable(), WAIT).toBe(4);
    await add('holder', 2);
    const [held, other] = (await on.listed('holder')) as [string, string];
    const health = async (): Promise<Record<string, string>> => {
      const [main] = (await on.statusOf('holder')).containerStatuses ?? [];
      const entries = main?.allocatedResourcesStatus?.flatMap(({ resources }) => resources) ?? [];
      return Object.fromEntries(entries.map(({ resourceID, health: state }) => [resourceID, state]));
    };
    // On by default from 1.36 on.
    const isTold = minor >= 36;
    const expected = (states: Record<string, string>): Record<string, string> => (isTold ? states : {});
    await expect.poll(health, WAIT).toEqual(expected({ [held]: 'Healthy', [other]: 'Healthy' }));

    on.machine.pullCable(held);
    await agent.until('judged', (page) => seriesValue(page, 'device_healthy', { device: held }) === 0);
    await expect.poll(() => on.usable(), { interval: 50 }).toBe(3);
    await expect.poll(health, WAIT).toEqual(expected({ [held]: 'Unhealthy', [other]: 'Healthy' }));
    expect(await on.listed('holder'), 'the holder keeps it').toEqual([held, other].sort());
    on.node.add({ name: 'refused', containers: [{ name: 'main', limits: { [HCA]: 3 } }] });
    await expect.poll(async () => (await on.statusOf('refused')).phase, WAIT).toBe('Failed');
    const refused = await on.statusOf('refused');
    expect(refused.reason).toBe('UnexpectedAdmissionError');
    expect(refused.message).toContain(`requested number of devices unavailable for ${HCA}. Requested: 3, Available: 2`);
    expect(await on.listed('refused'), 'a refused pod is not listed').toBeUndefined();

    on.machine.plugCable(held);
    await expect.poll(() => on.usable(), WAIT).toBe(4);
    await expect.poll(health, WAIT).toEqual(expected({ [held]: 'Healthy', [other]: 'Healthy' }));
    on.node.remove('refused');
    await remove('holder');
  });

  it(`survives ${ROUNDS} restarts of the kubelet by SIGTERM and SIGKILL with every allocation attributed throughout`, async () => {
    agent = await on.startAgent();
    await expect.poll(() => on.usable(), WAIT).toBe(4);
    await add('one', 1);
    await add('two', 2);
    const [one, two] = [(await on.listed('one')) as string[], (await on.listed('two')) as string[]];
    await agent.until('attributed', (page) => attributed(page, 'one').length === 1 && attributed(page, 'two').length === 2);
    let isOver = false;
    const wrong: string[] = [];
    const watching = (async () => {
      while (!isOver) {
        const page = await agent.metrics();
        if (attributed(page, 'one').join() !== one.join() || attributed(page, 'two').join() !== two.join()) {
          wrong.push(`${attributed(page, 'one')} | ${attributed(page, 'two')}`);
        }
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    })();
    try {
      for (let round = 0; round < ROUNDS; round += 1) {
        await on.node.stopKubelet(round % 2 === 0 ? 'TERM' : 'KILL');
        await on.node.startKubelet();
        await expect.poll(() => on.told(), WAIT).toBe(4);
        await expect
          .poll(async () => [await on.listed('one').catch(() => undefined), await on.listed('two').catch(() => undefined)], WAIT)
          .toEqual([one, two]);
      }
    } finally {
      isOver = true;
      await watching;
    }
    expect(wrong).toEqual([]);
    expect((await on.statusOf('two')).phase).toBe('Running');
    await remove('one');
    await remove('two');
  });
});
