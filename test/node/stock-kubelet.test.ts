import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  type AllocatableResourcesResponse,
  type ListPodResourcesResponse,
  PodResourcesListerClient,
} from '../../src/generated/podresources/v1/api.ts';
import { Machine } from '../kubelet/real/support/machine.ts';
import { seriesOf } from '../kubelet/real/support/watched-node.ts';
import { type ServedAgent, seriesValue, serve } from '../support/serve.ts';
import { kubeletPrograms, type PodStatus, StockNode, versionOf, whyNoNode } from './support/stock-node.ts';

const why = whyNoNode();
if (why !== undefined) process.stderr.write(`skipped: all tests on a stock kubelet, ${why}\n`);

const HCA = 'example.com/hca';
const WAIT = { timeout: 30_000, interval: 50 };
const ROUNDS = 20;

const CONFIG = {
  plugin: {
    resources: [
      {
        resource: HCA,
        select: { family: 'infiniband', kind: 'pf' },
        // The simulated character devices are no devices: real containers are given one that is, under a name that they print.
        allocation: {
          strategies: ['envvar', 'cdi-cri'],
          env: { HCAS: '{id}' },
          deviceNodes: [{ path: '/dev/widget-{id}', hostPath: '/dev/null' }],
          mounts: [{ path: '/etc/hca', hostPath: '/etc', readOnly: true }],
          cdiDevices: ['example.com/hca={id}'],
        },
      },
    ],
  },
  health: { conditions: { 'infiniband.PortDown': { for: '300ms', recovery: '400ms' } } },
};

/** What containerd adds for each device by itself. */
const CDI = {
  cdiVersion: '0.6.0',
  kind: 'example.com/hca',
  devices: ['mlx5_0', 'mlx5_1', 'mlx5_2', 'mlx5_3'].map((name) => ({ name, containerEdits: { env: [`CDI_${name}=yes`] } })),
};

const programs = why === undefined ? kubeletPrograms() : ['kubelet'];
const versions = why === undefined ? await Promise.all(programs.map(versionOf)) : [''];

describe.skipIf(why !== undefined).each(programs.map((program, at) => ({ program, version: versions[at] as string })))(
  'the agent on a stock kubelet $version',
  ({ program, version }) => {
    let node: StockNode;
    let machine: Machine;
    let agent: ServedAgent;
    let config: string;

    const startAgent = async (...flags: string[]): Promise<void> => {
      agent = await serve([...machine.flags(), ...node.flags(), `--config.file=${config}`, '--refresh.interval=1s', ...flags]);
    };
    const ask = async <T>(
      call: (client: PodResourcesListerClient, done: (error: Error | null, answer: T) => void) => unknown,
    ): Promise<T> => {
      const client = new PodResourcesListerClient(`unix:${node.podResourcesSocket}`, credentials.createInsecure());
      try {
        return await new Promise((resolve, reject) => {
          call(client, (error, answer) => (error === null ? resolve(answer) : reject(error)));
        });
      } finally {
        client.close();
      }
    };
    /** Device ids that the kubelet says a pod's container has. */
    const listed = async (pod: string, container = 'main'): Promise<string[] | undefined> => {
      const { podResources } = await ask<ListPodResourcesResponse>((client, done) => client.list({}, done));
      const found = podResources.find(({ name }) => name === `${pod}-node-1`);
      return found?.containers
        .find(({ name }) => name === container)
        ?.devices.flatMap(({ deviceIds }) => deviceIds)
        .sort();
    };
    const usable = async (): Promise<number | undefined> =>
      seriesValue(await agent.metrics(), 'device_agent_kubelet_allocatable_devices', { resource: HCA });
    /** Straight from the kubelet; undefined while it cannot be asked. */
    const told = async (): Promise<number | undefined> => {
      const answer = ask<AllocatableResourcesResponse>((client, done) => client.getAllocatableResources({}, done));
      return answer.then(({ devices }) => devices.filter(({ resourceName }) => resourceName === HCA).length).catch(() => undefined);
    };
    const attributed = (page: string, pod: string): (string | undefined)[] =>
      seriesOf(page, 'container_device_allocation')
        .filter((labels) => labels.pod === `${pod}-node-1`)
        .map(({ device }) => device)
        .sort();
    const statusOf = async (pod: string): Promise<PodStatus> => (await node.status(pod)) ?? { phase: 'unknown' };
    const add = async (name: string, count: number): Promise<void> => {
      node.add({ name, containers: [{ name: 'main', limits: { [HCA]: count } }] });
      await expect.poll(async () => (await statusOf(name)).phase, WAIT).toBe('Running');
    };
    const remove = async (name: string): Promise<void> => {
      node.remove(name);
      await expect.poll(() => listed(name), WAIT).toBeUndefined();
    };

    beforeAll(async () => {
      machine = new Machine({ hcas: 4 });
      config = join(machine.root, 'config.json');
      writeFileSync(config, JSON.stringify(CONFIG));
      node = new StockNode(program);
      mkdirSync(node.cdiDirectory, { recursive: true });
      writeFileSync(join(node.cdiDirectory, 'hca.json'), JSON.stringify(CDI));
      await node.start();
    });

    afterEach(async () => {
      await agent?.stop();
    });

    afterAll(async () => {
      await agent?.stop('SIGKILL');
      await node?.close();
      machine?.remove();
    });

    it('is registered; a static pod has its devices, variables, nodes and CDI edits, and is attributed until it goes', async () => {
      // Before the resource is known, the kubelet takes it for none of its business.
      node.add({ name: 'early', containers: [{ name: 'main', limits: { [HCA]: 1 } }] });
      await expect.poll(async () => (await statusOf('early')).phase, WAIT).toBe('Running');
      await startAgent();
      await expect.poll(usable, WAIT).toBe(4);
      expect(await listed('early'), 'devices of a pod that came before the plugin').toEqual([]);

      node.add({
        name: 'train',
        init: [
          { name: 'prepare', limits: { [HCA]: 1 }, ends: true },
          { name: 'proxy', limits: { [HCA]: 1 }, isSidecar: true },
        ],
        containers: [{ name: 'main', limits: { [HCA]: 2, cpu: '100m', memory: '32Mi' } }, { name: 'idle' }],
      });
      await expect.poll(async () => (await listed('train'))?.length, WAIT).toBe(2);
      await agent.until('attributed within a second of the listing', (page) => attributed(page, 'train').length === 3, 1_000);
      const ids = (await listed('train')) as string[];
      const sidecar = (await listed('train', 'proxy')) as string[];
      const page = await agent.metrics();
      expect(attributed(page, 'train')).toEqual([...ids, ...sidecar].sort());
      expect(seriesOf(page, 'container_device_unresolved')).toEqual([]);

      await expect.poll(() => node.output('train', 'main'), WAIT).toContain('dev widget');
      const output = node.output('train', 'main');
      expect(/env HCAS=(\S*)/.exec(output)?.[1]?.split(',').sort()).toEqual(ids);
      for (const id of ids) {
        expect(output).toContain(`dev widget-${id}`);
        expect(output).toContain(`env CDI_${id}=yes`);
      }
      expect(output).not.toContain(`CDI_${sidecar[0]}`);
      await remove('train');
      await agent.until('gone', (text) => attributed(text, 'train').length === 0, 3_000);
      await remove('early');
    });

    it('is registered by the plugin watcher too', async () => {
      await startAgent('--plugin.registration=watcher');
      await expect.poll(usable, WAIT).toBe(4);
      await add('watched', 2);
      await agent.until('attributed', (page) => attributed(page, 'watched').length === 2);
      await remove('watched');
      await agent.stop();
    });

    it('takes a sick device out: allocatable, refusals and the status of its pod', async () => {
      await startAgent();
      await expect.poll(usable, WAIT).toBe(4);
      await add('holder', 2);
      const [held, other] = (await listed('holder')) as [string, string];
      const health = async (): Promise<Record<string, string>> => {
        const [main] = (await statusOf('holder')).containerStatuses ?? [];
        const entries = main?.allocatedResourcesStatus?.flatMap(({ resources }) => resources) ?? [];
        return Object.fromEntries(entries.map(({ resourceID, health: state }) => [resourceID, state]));
      };
      // On by default from 1.36 on.
      const isTold = Number(version.split('.')[1]) >= 36;
      const expected = (states: Record<string, string>): Record<string, string> => (isTold ? states : {});
      await expect.poll(health, WAIT).toEqual(expected({ [held]: 'Healthy', [other]: 'Healthy' }));

      machine.pullCable(held);
      await agent.until('judged', (page) => seriesValue(page, 'device_healthy', { device: held }) === 0);
      await expect.poll(usable, { timeout: 2_500, interval: 50 }).toBe(3);
      await expect.poll(health, WAIT).toEqual(expected({ [held]: 'Unhealthy', [other]: 'Healthy' }));
      expect(await listed('holder'), 'the holder keeps it').toEqual([held, other].sort());
      node.add({ name: 'refused', containers: [{ name: 'main', limits: { [HCA]: 3 } }] });
      await expect.poll(async () => (await statusOf('refused')).phase, WAIT).toBe('Failed');
      const refused = await statusOf('refused');
      expect(refused.reason).toBe('UnexpectedAdmissionError');
      expect(refused.message).toContain(`requested number of devices unavailable for ${HCA}. Requested: 3, Available: 2`);
      expect(await listed('refused'), 'a refused pod is not listed').toBeUndefined();

      machine.plugCable(held);
      await expect.poll(usable, WAIT).toBe(4);
      await expect.poll(health, WAIT).toEqual(expected({ [held]: 'Healthy', [other]: 'Healthy' }));
      node.remove('refused');
      await remove('holder');
    });

    it(`survives ${ROUNDS} restarts of the kubelet by SIGTERM and SIGKILL with every allocation attributed throughout`, async () => {
      await startAgent();
      await expect.poll(usable, WAIT).toBe(4);
      await add('one', 1);
      await add('two', 2);
      const [one, two] = [(await listed('one')) as string[], (await listed('two')) as string[]];
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
          await node.stopKubelet(round % 2 === 0 ? 'TERM' : 'KILL');
          await node.startKubelet();
          await expect.poll(told, WAIT).toBe(4);
          await expect
            .poll(async () => [await listed('one').catch(() => undefined), await listed('two').catch(() => undefined)], WAIT)
            .toEqual([one, two]);
        }
      } finally {
        isOver = true;
        await watching;
      }
      expect(wrong).toEqual([]);
      expect((await statusOf('two')).phase).toBe('Running');
      await remove('one');
      await remove('two');
    }, 240_000);
  },
);
