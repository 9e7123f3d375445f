import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import {
  type AllocatableResourcesResponse,
  type ListPodResourcesResponse,
  PodResourcesListerClient,
} from '../../../src/generated/podresources/v1/api.ts';
import { Machine } from '../../kubelet/real/support/machine.ts';
import { seriesOf } from '../../kubelet/real/support/watched-node.ts';
import { type ServedAgent, seriesValue, serve } from '../../support/serve.ts';
import { type PodStatus, StockNode } from './stock-node.ts';

export const HCA = 'example.com/hca';

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

/** Four simulated HCAs, a stock kubelet, and between them the built agent in a process of its own. */
export class AgentOnStockNode {
  readonly machine = new Machine({ infiniband: 4 });
  readonly node: StockNode;
  readonly #config = join(this.machine.root, 'config.json');
  #agent: ServedAgent | undefined;

  constructor(program: string, settings?: Readonly<Record<string, string>>) {
    writeFileSync(this.#config, JSON.stringify(CONFIG));
    this.node = new StockNode(program, settings);
    mkdirSync(this.node.cdiDirectory, { recursive: true });
    writeFileSync(join(this.node.cdiDirectory, 'hca.json'), JSON.stringify(CDI));
  }

  async startAgent(...flags: string[]): Promise<ServedAgent> {
    const all = [...this.machine.flags(), ...this.node.flags(), `--config.file=${this.#config}`, '--refresh.interval=1s', ...flags];
    this.#agent = await serve(all);
    return this.#agent;
  }

  async stopAgent(): Promise<void> {
    await this.#agent?.stop();
  }

  async close(): Promise<void> {
    await this.#agent?.stop('SIGKILL');
    await this.node.close();
    this.machine.remove();
  }

  /** Device ids that the kubelet says a pod's container has. */
  async listed(pod: string, container = 'main'): Promise<string[] | undefined> {
    const { podResources } = await this.#ask<ListPodResourcesResponse>((client, done) => client.list({}, done));
    const found = podResources.find(({ name }) => name === `${pod}-node-1`);
    return found?.containers
      .find(({ name }) => name === container)
      ?.devices.flatMap(({ deviceIds }) => deviceIds)
      .sort();
  }

  /** How many HCAs can be allocated, by the agent. */
  async usable(): Promise<number | undefined> {
    return seriesValue((await this.#agent?.metrics()) ?? '', 'device_agent_kubelet_allocatable_devices', { resource: HCA });
  }

  /** Straight from the kubelet; undefined while it cannot be asked. */
  async told(): Promise<number | undefined> {
    const answer = this.#ask<AllocatableResourcesResponse>((client, done) => client.getAllocatableResources({}, done));
    return answer.then(({ devices }) => devices.filter(({ resourceName }) => resourceName === HCA).length).catch(() => undefined);
  }

  async statusOf(pod: string): Promise<PodStatus> {
    return (await this.node.status(pod)) ?? { phase: 'unknown' };
  }

  async #ask<T>(call: (client: PodResourcesListerClient, done: (error: Error | null, answer: T) => void) => unknown): Promise<T> {
    const client = new PodResourcesListerClient(`unix:${this.node.podResourcesSocket}`, credentials.createInsecure());
    return new Promise<T>((resolve, reject) => {
      call(client, (error, answer) => (error === null ? resolve(answer) : reject(error)));
    }).finally(() => client.close());
  }
}

/** Devices of a pod on a metrics page. */
export const attributed = (page: string, pod: string): (string | undefined)[] =>
  seriesOf(page, 'container_device_allocation')
    .filter((labels) => labels.pod === `${pod}-node-1`)
    .map(({ device }) => device)
    .sort();
