import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { family as infiniband } from '../../src/probes/infiniband/index.ts';
import { seriesValue } from '../support/serve.ts';
import { ServedNode } from './served-node.ts';

const HCA = 'example.com/hca';
const STALE_AFTER_MS = 3_000;

let node: ServedNode;

beforeAll(async () => {
  node = new ServedNode({
    family: infiniband,
    counts: { infiniband: 2 },
    resource: HCA,
    config: { plugin: { resources: [{ resource: HCA, select: { family: 'infiniband', kind: 'pf' } }] }, health: { unknown: 'unhealthy' } },
    flags: ['--refresh.interval=200ms', `--refresh.stale-after=${STALE_AFTER_MS}ms`],
  });
  await node.start();
});
afterAll(() => node.stop());

it('judges no device by the age of what an agent read that has not run since', async () => {
  const healthy = (page: string): boolean => ['mlx5_0', 'mlx5_1'].every((device) => seriesValue(page, 'device_healthy', { device }) === 1);
  await node.agent?.until('both are healthy', healthy);
  await node.agent?.stop('SIGTERM');
  await sleep(STALE_AFTER_MS + 200);

  const seen = node.lists.length;
  const agent = await node.startAgent();
  await agent.until('both are healthy again', healthy);
  await expect.poll(() => Object.values(node.list())).toEqual(['Healthy', 'Healthy']);
  expect(agent.log()).not.toContain('DeviceNotRead');
  for (const { devices } of node.lists.slice(seen)) expect(Object.values(devices)).not.toContain('Unhealthy');
});
