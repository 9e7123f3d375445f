import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { isInstalled } from '../support/installed.ts';
import { type RunningPrometheus, startPrometheus } from '../support/prometheus.ts';
import { scrapeJob } from '../support/scrapes.ts';

const installed = isInstalled('prometheus');

/** An agent that tells one device. Its pods before and after a rollout have addresses of their own. */
async function agent(): Promise<Server> {
  const server = createServer((_request, response) => {
    response.setHeader('Content-Type', 'text/plain; version=0.0.4');
    response.end('device_temperature_celsius{device="mlx5_0",sensor="asic"} 40\n');
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}
const addressOf = (server: Server): string => `127.0.0.1:${(server.address() as AddressInfo).port}`;

describe.skipIf(!installed)(`series over a rollout${installed ? '' : ' (skipped: prometheus is not installed)'}`, () => {
  let prometheus: RunningPrometheus | undefined;
  let servers: readonly Server[] = [];
  afterEach(async () => {
    await prometheus?.stop();
    for (const server of servers) server.close();
  });

  it('are the same for the old and the new pod of a node, with each scrape that is shipped', async () => {
    servers = await Promise.all([agent(), agent()]);
    const pods = servers.map((server) => ({ address: addressOf(server), node: 'node-1' }));
    const ways = ['podmonitor', 'servicemonitor', 'plain'] as const;
    prometheus = await startPrometheus({ scrape_configs: ways.map((way) => scrapeJob(way, pods)) });
    const { targets, query } = prometheus;
    await expect.poll(targets, { interval: 100 }).toEqual(Array.from({ length: 6 }, () => 'up'));
    const series = async (): Promise<readonly string[]> =>
      (await query('device_temperature_celsius')).map(({ metric }) => `${metric.job} ${metric.node} ${metric.instance}`).toSorted();
    await expect.poll(series, { interval: 100 }).toEqual(ways.map((way) => `${way} node-1 node-1`).toSorted());
  });
});
