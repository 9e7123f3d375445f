import { existsSync } from 'node:fs';
import { type Client, type ClientOptions, credentials, type ServiceError } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type DeviceHealthResponse, DeviceInfoClient } from '../../src/generated/deviceinfo/v1alpha1/deviceinfo.ts';
import { type GPUStateResponse, MetricsServiceClient } from '../../src/generated/metricssvc/metricssvc.ts';
import { type HealthCheckResponse, HealthCheckServiceClient } from '../../src/generated/nvhcd/nvhcd.ts';
import { GpuNode, SOCKETS, type SocketName } from './gpu-node.ts';

const WAIT = { interval: 50 };
const AMD = ['0020:10:00.0', '0020:11:00.0'] as const;
const INTEL = ['0030:10:00.0', '0030:11:00.0'] as const;

let node: GpuNode;
let ends: (() => void)[];
beforeEach(() => {
  node = new GpuNode();
  ends = [];
});
afterEach(async () => {
  for (const end of ends) end();
  await node.stop();
});

function client<T extends Client>(
  Type: new (address: string, security: typeof INSECURE, options: ClientOptions) => T,
  name: SocketName,
): T {
  const made = new Type(`unix:${node.socket(name)}`, INSECURE, { 'grpc.use_local_subchannel_pool': 1 });
  ends.push(() => made.close());
  return made;
}
const INSECURE = credentials.createInsecure();

const asked = <T>(call: (reply: (error: ServiceError | null, response: T) => void) => unknown): Promise<T> =>
  new Promise((resolve, reject) => call((error, response) => (error === null ? resolve(response) : reject(error))));

/** Each asks on a connection of its own, as the plugins do. Undefined: no answer. */
async function cards(): Promise<Record<string, string> | undefined> {
  const one = client(MetricsServiceClient, 'metricssvc');
  const told = await asked<GPUStateResponse>((reply) => one.list({}, reply)).catch(() => undefined);
  one.close();
  return told && Object.fromEntries(told.GPUState.map(({ Device, Health }) => [Device, Health]));
}

async function failures(): Promise<readonly string[] | undefined> {
  const one = client(HealthCheckServiceClient, 'nvhcd');
  const told = await asked<HealthCheckResponse>((reply) => one.runHealthCheck({ args: [] }, reply)).catch(() => undefined);
  one.close();
  return told && JSON.parse(told.output).failed_checks;
}

/** Follows the stream and connects again when it ends. Returns the worst severity of each device. */
function followed(): () => Record<string, number> {
  let latest: DeviceHealthResponse | undefined;
  let isOver = false;
  const open = (): void => {
    if (isOver) return;
    const one = client(DeviceInfoClient, 'xpumd');
    const stream = one.watchDeviceHealth({});
    stream.on('data', (list: DeviceHealthResponse) => {
      latest = list;
    });
    stream.on('error', () => undefined);
    stream.once('close', () => {
      one.close();
      setTimeout(open, 200);
    });
  };
  open();
  ends.push(() => {
    isOver = true;
  });
  return () =>
    Object.fromEntries(latest?.devices.map(({ info, health }) => [info?.pci?.bdf, Math.max(...health.map((one) => one.severity))]) ?? []);
}

describe('sockets that plugins ask', () => {
  it('tell each change of a verdict, and again after the agent was stopped or killed', async () => {
    await node.start();
    const severities = followed();
    const well = { [AMD[0]]: 'healthy', [AMD[1]]: 'healthy' };
    const fine = { [INTEL[0]]: 1, [INTEL[1]]: 1 };
    await expect.poll(cards, WAIT).toEqual(well);
    await expect.poll(severities, WAIT).toEqual(fine);
    await expect.poll(failures, WAIT).toEqual([]);

    node.heat(AMD[1]);
    node.heat(INTEL[0]);
    await expect.poll(cards, WAIT).toEqual({ ...well, [AMD[1]]: 'unhealthy' });
    await expect.poll(severities, WAIT).toEqual({ ...fine, [INTEL[0]]: 3 });
    const reasons = expect.arrayContaining([
      expect.stringContaining(`amdgpu/${AMD[1]}: unhealthy`),
      expect.stringContaining(`intelgpu/${INTEL[0]}: unhealthy`),
    ]);
    await expect.poll(failures, WAIT).toEqual(reasons);

    await node.agent?.stop();
    expect(SOCKETS.map((name) => existsSync(node.socket(name)))).toEqual([false, false, false]);
    expect([await cards(), await failures()]).toEqual([undefined, undefined]);
    node.heat(INTEL[0], false);
    await node.start();
    await expect.poll(cards, WAIT).toEqual({ ...well, [AMD[1]]: 'unhealthy' });
    await expect.poll(severities, WAIT).toEqual(fine);

    await node.agent?.stop('SIGKILL');
    node.heat(AMD[1], false);
    await node.start();
    await expect.poll(cards, WAIT).toEqual(well);
    await expect.poll(severities, WAIT).toEqual(fine);
    await expect.poll(failures, WAIT).toEqual([]);
  });

  it('keep the agent at work in a flood of clients, and answer when it is over', async () => {
    const agent = await node.start();
    await expect.poll(cards, WAIT).toBeDefined();
    const calls = Array.from({ length: 60 }, async () => {
      const one = client(MetricsServiceClient, 'metricssvc');
      const many = await Promise.allSettled(Array.from({ length: 50 }, () => asked<GPUStateResponse>((reply) => one.list({}, reply))));
      return many.filter(({ status }) => status === 'fulfilled').length;
    });
    const streams = Array.from({ length: 60 }, () => client(DeviceInfoClient, 'xpumd').watchDeviceHealth({}));
    const served = new Set<unknown>();
    for (const stream of streams) {
      stream.on('error', () => undefined);
      stream.on('data', () => served.add(stream));
    }
    const answered = await Promise.all(calls);
    // Who has a connection gets all its answers, and who has none gets none: never more than sixteen at a time.
    expect(new Set(answered)).toEqual(new Set([0, 50]));
    expect(answered.filter((count) => count > 0).length).toBeLessThanOrEqual(16);
    await expect.poll(() => served.size, WAIT).toBe(16);
    node.heat(AMD[0]);
    await agent.until('the verdict', (page) => /^device_healthy\{.*device="0020:10:00.0".*\} 0$/m.test(page));
    for (const stream of streams) stream.cancel();
    for (const end of ends.splice(0)) end();
    await expect.poll(cards, WAIT).toMatchObject({ [AMD[0]]: 'unhealthy' });
    await expect.poll(followed(), WAIT).toMatchObject({ [INTEL[0]]: 1 });
  });

  it('do not exist without their options', async () => {
    await node.start([]);
    await node.agent?.until('a card', (page) => page.includes('device="0020:10:00.0"'));
    expect(SOCKETS.map((name) => existsSync(node.socket(name)))).toEqual([false, false, false]);
  });
});
