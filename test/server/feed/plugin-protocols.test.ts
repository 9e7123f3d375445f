import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Client, type ClientOptions, credentials, type ServiceError } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type DeviceHealthResponse, DeviceInfoClient, SeverityLevel } from '../../../src/generated/deviceinfo/v1alpha1/deviceinfo.ts';
import { type GPUStateResponse, MetricsServiceClient } from '../../../src/generated/metricssvc/metricssvc.ts';
import { type HealthCheckResponse, HealthCheckServiceClient } from '../../../src/generated/nvhcd/nvhcd.ts';
import type { Verdict } from '../../../src/model/health.ts';
import { FEED_LIMITS, type FeedProtocol, type FeedSocketLimits } from '../../../src/server/feed/feed-socket.ts';
import { deviceInfo, metricsService, nodeCheck } from '../../../src/server/feed/feed-sockets.ts';
import { serveFeedSocket } from './served.ts';
import { broken, feedOf, gpu, HEALTHY, snapshotOf } from './support.ts';

const DEGRADED: Verdict = { ...broken({ severity: 'degraded' }), state: 'degraded' };
const UNKNOWN: Verdict = { state: 'unknown', sinceMs: 0, conditions: [] };
const READ = { families: [] };
const FAMILIES = new Set(['amdgpu']);

let directory: string;
let path: string;
let ends: (() => unknown)[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'feed-'));
  path = join(directory, 'plugin.sock');
  ends = [];
});
afterEach(async () => {
  for (const end of ends.reverse()) await end();
  rmSync(directory, { recursive: true });
});

async function serve(protocol: FeedProtocol, limits: FeedSocketLimits = FEED_LIMITS): Promise<() => Promise<void>> {
  const close = await serveFeedSocket(path, protocol, limits);
  ends.push(close);
  return close;
}

function clientOf<T extends Client>(Type: new (address: string, security: typeof INSECURE, options: ClientOptions) => T): T {
  const client = new Type(`unix:${path}`, INSECURE, { 'grpc.use_local_subchannel_pool': 1 });
  ends.push(() => client.close());
  return client;
}
const INSECURE = credentials.createInsecure();

const asked = <T>(call: (reply: (error: ServiceError | null, response: T) => void) => unknown): Promise<T> =>
  new Promise((resolve, reject) => call((error, response) => (error === null ? resolve(response) : reject(error))));

const list = (client: MetricsServiceClient): Promise<GPUStateResponse> => asked((reply) => client.list({}, reply));
const check = (client: HealthCheckServiceClient): Promise<HealthCheckResponse> =>
  asked((reply) => client.runHealthCheck({ args: ['--no-slurm'] }, reply));
const words = ({ GPUState }: GPUStateResponse): Record<string, string> =>
  Object.fromEntries(GPUState.map(({ Device, Health }) => [Device, Health]));

const card = (bus: string, verdict: Verdict = HEALTHY) => ({
  ...gpu({ family: 'amdgpu', id: `0000:${bus}:00.0`, pciAddress: `0000:${bus}:00.0`, uuid: `GPU-${bus}` }, verdict),
  key: `amdgpu/0000:${bus}:00.0`,
});

describe('metricssvc', () => {
  it('has two words: a degraded device is healthy, an unknown one is not; devices of other families are left out', async () => {
    const { feed } = feedOf([card('03'), card('43', DEGRADED), card('83', broken()), card('c3', UNKNOWN), gpu()]);
    await serve(metricsService(feed, FAMILIES));
    const client = clientOf(MetricsServiceClient);
    const answer = await list(client);
    expect(words(answer)).toEqual({
      '0000:03:00.0': 'healthy',
      '0000:43:00.0': 'healthy',
      '0000:83:00.0': 'unhealthy',
      '0000:c3:00.0': 'unhealthy',
    });
    expect(answer.GPUState[0]).toEqual({
      ID: '0000:03:00.0',
      UUID: 'GPU-03',
      Health: 'healthy',
      AssociatedWorkload: [],
      Device: '0000:03:00.0',
    });
    const some = await asked<GPUStateResponse>((reply) => client.getGpuState({ ID: ['0000:83:00.0', 'none'] }, reply));
    expect(words(some)).toEqual({ '0000:83:00.0': 'unhealthy' });
  });

  it.each([
    ['card', broken(), HEALTHY],
    ['partition', HEALTHY, broken()],
  ])('gives a card and its first partition, which have one name, the worse health: of the %s', async (_whose, ofCard, ofPart) => {
    const part = (number: number, alias: string, verdict: Verdict = HEALTHY) =>
      gpu({ family: 'amdgpu', kind: 'partition', id: `0000:03:00.0-xcp${number}`, parent: '0000:03:00.0', aliases: [alias] }, verdict);
    const { feed } = feedOf([card('03', ofCard), part(0, '0000:03:00.0', ofPart), part(1, 'amdgpu_xcp_1')]);
    await serve(metricsService(feed, FAMILIES));
    expect(words(await list(clientOf(MetricsServiceClient)))).toEqual({ '0000:03:00.0': 'unhealthy', amdgpu_xcp_1: 'healthy' });
  });

  it('fails the call before the first snapshot, and says that nothing is healthy while the agent does not work', async () => {
    let fault: string | undefined;
    const { feed, store } = feedOf(undefined, { fault: () => fault });
    await serve(metricsService(feed, FAMILIES));
    const client = clientOf(MetricsServiceClient);
    await expect(list(client)).rejects.toThrow('The first snapshot is not ready yet.');
    store.publish(snapshotOf([card('03')]));
    expect(words(await list(client))).toEqual({ '0000:03:00.0': 'healthy' });
    fault = 'There was no new snapshot for 70 s.';
    expect(words(await list(client))).toEqual({ '0000:03:00.0': 'unhealthy' });
  });

  it('refuses connections beyond the limit, and answers again after they are gone', async () => {
    const { feed } = feedOf([card('03')]);
    await serve(metricsService(feed, FAMILIES), { ...FEED_LIMITS, connections: 3 });
    const holders = Array.from({ length: 3 }, () => clientOf(MetricsServiceClient));
    await Promise.all(holders.map(list));
    const crowd = Array.from({ length: 30 }, () => clientOf(MetricsServiceClient));
    const refused = await Promise.allSettled(crowd.map(list));
    expect(refused.map(({ status }) => status)).toEqual(crowd.map(() => 'rejected'));
    // Those that have a connection keep it.
    expect((await Promise.all(holders.map(list))).map(words)).toEqual(holders.map(() => ({ '0000:03:00.0': 'healthy' })));
    for (const one of holders) one.close();
    await expect.poll(() => list(clientOf(MetricsServiceClient)).then(words, () => undefined)).toEqual({ '0000:03:00.0': 'healthy' });
  });

  it('takes no request of megabytes', async () => {
    const { feed } = feedOf([card('03')]);
    await serve(metricsService(feed, FAMILIES));
    const client = clientOf(MetricsServiceClient);
    await expect(asked((reply) => client.getGpuState({ ID: ['x'.repeat(1 << 20)] }, reply))).rejects.toThrow('RESOURCE_EXHAUSTED');
    expect(words(await list(client))).toEqual({ '0000:03:00.0': 'healthy' });
  });
});

describe('nvhcd', () => {
  it('counts what is not well, and what is not known fails the check, too', async () => {
    let fault: string | undefined;
    const { store } = feedOf(undefined);
    const rules = { isUsable: ({ state }: Verdict) => state === 'healthy' || state === 'degraded', devicesOf: () => undefined };
    await serve(nodeCheck({ snapshot: () => store.snapshot(), fault: () => fault, rules }));
    const client = clientOf(HealthCheckServiceClient);
    const told = async () => {
      const { success, exitCode, output, error } = await check(client);
      expect([success, exitCode, error]).toEqual(success ? [true, 0, ''] : [false, 1, '']);
      const { fail_count, failed_checks } = JSON.parse(output);
      expect([fail_count === 0, failed_checks.length]).toEqual([success, fail_count]);
      return failed_checks;
    };
    expect(await told()).toEqual(['The first snapshot is not ready yet.']);
    store.publish(snapshotOf([gpu(), card('03', DEGRADED)], READ));
    expect(await told()).toEqual([]);
    store.publish(snapshotOf([gpu({}, broken()), card('03', UNKNOWN)], READ));
    expect(await told()).toEqual(['nvidia/GPU-aa: unhealthy, PortDown (Polling), remedy: check-cable', 'amdgpu/0000:03:00.0: unknown']);
    store.publish(snapshotOf([gpu(), card('03')], READ));
    expect(await told()).toEqual([]);
    fault = 'There was no new snapshot for 70 s.';
    expect(await told()).toEqual([fault]);
  });
});

describe('xpumd', () => {
  interface Watched {
    readonly lists: DeviceHealthResponse[];
    readonly ended: Promise<string>;
  }
  function watch(): Watched {
    const stream = clientOf(DeviceInfoClient).watchDeviceHealth({});
    const lists: DeviceHealthResponse[] = [];
    stream.on('data', (one: DeviceHealthResponse) => lists.push(one));
    const ended = new Promise<string>((resolve) => {
      stream.once('error', ({ message }) => resolve(message));
      stream.once('end', () => resolve('end'));
    });
    ends.push(() => stream.cancel());
    return { lists, ended };
  }
  const severities = (told: DeviceHealthResponse | undefined) =>
    Object.fromEntries(told?.devices.map(({ info, health }) => [info?.pci?.bdf, health.map(({ severity }) => severity)]) ?? []);
  const intel = (bus: string, verdict: Verdict = HEALTHY) =>
    gpu({ family: 'intelgpu', id: `0000:${bus}:00.0`, pciAddress: `0000:${bus}:00.0`, pciVendor: '0x8086', pciDevice: '0xe20b' }, verdict);

  it('streams the devices by PCI address; an unknown one has a severity that clients do not take as healthy', async () => {
    const { feed, store } = feedOf([intel('03'), intel('04', DEGRADED), intel('05', UNKNOWN), gpu()]);
    await serve(deviceInfo(feed, new Set(['intelgpu'])));
    const { lists } = watch();
    const { SEVERITY_LEVEL_OK: ok, SEVERITY_LEVEL_CRITICAL: critical } = SeverityLevel;
    await expect.poll(() => severities(lists.at(-1))).toEqual({ '0000:03:00.0': [ok], '0000:04:00.0': [ok], '0000:05:00.0': [critical] });
    store.publish(snapshotOf([intel('03', broken()), intel('04'), intel('05')]));
    await expect.poll(() => severities(lists.at(-1))).toEqual({ '0000:03:00.0': [critical], '0000:04:00.0': [ok], '0000:05:00.0': [ok] });
    expect(lists.at(-1)?.devices[0]).toMatchObject({
      info: { pci: { bdf: '0000:03:00.0', deviceId: '0xe20b', vendorId: '0x8086' }, memory: [] },
      health: [{ name: 'device', reason: 'unhealthy', message: 'PortDown (Polling): port 1 is down; remedy: check-cable' }],
    });
  });

  it('ends its streams when it closes, because clients connect again only after an end', async () => {
    const { feed } = feedOf([intel('03')]);
    const close = await serve(deviceInfo(feed, new Set(['intelgpu'])));
    const { lists, ended } = watch();
    await expect.poll(() => lists.length).toBe(1);
    await close();
    expect(await ended).toBe('end');
  });
});
