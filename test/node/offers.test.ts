import { setTimeout } from 'node:timers/promises';
import { credentials, status as grpcStatus, type ServiceError } from '@grpc/grpc-js';
import { describe, expect, it } from 'vitest';
import { PodResourcesListerClient } from '../../src/generated/podresources/v1/api.ts';
import { HCA, type Look, type OfferingKubelet, Rollouts, toldLooks } from '../kubelet/real/support/rollouts.ts';
import { until } from '../support/until.ts';
import { kubelets, StockNode, whyNoNode } from './support/stock-node.ts';

const why = whyNoNode();
if (why !== undefined) process.stderr.write(`skipped: rollouts on a stock kubelet, ${why}\n`);

const ROUNDS = 20;

function offering(node: StockNode): OfferingKubelet {
  const ask = async <T>(
    call: (client: PodResourcesListerClient, done: (error: Error | null, answer: T) => void) => unknown,
  ): Promise<T> => {
    const client = new PodResourcesListerClient(`unix:${node.podResourcesSocket}`, credentials.createInsecure());
    const asked = (): Promise<T> =>
      new Promise<T>((resolve, reject) => {
        call(client, (error, answer) => (error === null ? resolve(answer) : reject(error)));
      }).catch(async (error: ServiceError) => {
        // The limit of the kubelet counts all its clients together.
        if (error.code !== grpcStatus.RESOURCE_EXHAUSTED) throw error;
        await setTimeout(50);
        return asked();
      });
    return asked().finally(() => client.close());
  };
  const idsOf = (devices: readonly { readonly resourceName: string; readonly deviceIds: readonly string[] }[]): string[] =>
    devices
      .filter(({ resourceName }) => resourceName === HCA)
      .flatMap(({ deviceIds }) => deviceIds)
      .sort();
  return {
    pluginDirectory: node.pluginDirectory,
    flags: () => node.flags(),
    offered: async () =>
      idsOf((await ask<{ devices: never[] }>((client, done) => client.getAllocatableResources({}, done as never))).devices),
    async run(name, count) {
      node.add({ name, containers: [{ name: 'main', limits: { [HCA]: count } }] });
      let outcome: readonly string[] | string | undefined;
      await until(async () => {
        const status = await node.status(name).catch(() => undefined);
        if (status?.phase === 'Failed') outcome = `${status.reason}: ${status.message}`;
        const { podResources } = await ask<{ podResources: { name: string; containers: { devices: never[] }[] }[] }>((client, done) =>
          client.list({}, done as never),
        );
        const own = podResources.find((pod) => pod.name === `${name}-node-1`);
        if (own !== undefined) outcome = idsOf(own.containers.flatMap(({ devices }) => devices));
        return outcome !== undefined;
      }, `${name} is admitted or refused`);
      return outcome as readonly string[] | string;
    },
    async remove(name) {
      node.remove(name);
      await until(async () => (await node.status(name).catch(() => undefined)) === undefined, `${name} is gone`);
    },
  };
}

describe.skipIf(why !== undefined).each(await kubelets())(
  'agents and plugins that replace each other on a stock kubelet $version',
  ({ program, version }) => {
    it(`leave a kubelet that offers what the one that stays serves, ${ROUNDS} times`, async () => {
      const node = new StockNode(program);
      const rollouts = new Rollouts(offering(node), 1);
      try {
        await node.start();
        await rollouts.start();
        const looks: Look[] = [];
        for (let round = 0; round < ROUNDS; round += 1) {
          const look = await rollouts.round();
          expect(look, `look ${round}`).toMatchObject({ pod: look.expected });
          looks.push(look);
        }
        process.stderr.write(`${version}: ${toldLooks(looks)}\n`);
      } finally {
        await rollouts.close();
        await node.close();
      }
    });
  },
);
