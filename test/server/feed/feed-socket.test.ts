import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type ClientReadableStream, credentials } from '@grpc/grpc-js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { DRAResourceHealthClient, HealthStatus, type NodeWatchResourcesResponse } from '../../../src/generated/drahealth/v1/api.ts';
import { DRAResourceHealthClient as AlphaClient } from '../../../src/generated/drahealth/v1alpha1/api.ts';
import { draHealth } from '../../../src/server/feed/feed-sockets.ts';
import type { HealthFeed } from '../../../src/server/feed/health-feed.ts';
import { until } from '../../support/until.ts';
import { serveFeedSocket } from './served.ts';
import { broken, feedOf, gpu, snapshotOf } from './support.ts';

const LIMITS = { connections: 4, streams: 2, aliveMs: 200, idleMs: 60_000 };

let directory: string;
let path: string;
let ends: (() => unknown)[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'feed-'));
  path = join(directory, 'health.sock');
  ends = [];
});
afterEach(async () => {
  for (const end of ends.reverse()) await end();
  rmSync(directory, { recursive: true });
});

const serve = async (feed: HealthFeed, limits = LIMITS): Promise<void> => {
  ends.push(await serveFeedSocket(path, draHealth(feed), limits));
};

interface Watched {
  readonly lists: NodeWatchResourcesResponse[];
  readonly stream: ClientReadableStream<NodeWatchResourcesResponse>;
  error(): string | undefined;
}

function watch(Client: typeof DRAResourceHealthClient | typeof AlphaClient = DRAResourceHealthClient): Watched {
  const client = new Client(`unix:${path}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
  const stream = client.nodeWatchResources({});
  const lists: NodeWatchResourcesResponse[] = [];
  let error: string | undefined;
  stream.on('data', (list: NodeWatchResourcesResponse) => lists.push(list));
  stream.on('error', (failure) => {
    error = failure.message;
  });
  ends.push(() => {
    stream.cancel();
    client.close();
  });
  return { lists, stream, error: () => error };
}

/** A connection that speaks no gRPC. */
function bare(): { readonly socket: Socket; readonly closed: Promise<void> } {
  const socket = connect(path);
  socket.on('error', () => undefined);
  ends.push(() => socket.destroy());
  return { socket, closed: new Promise((resolve) => socket.once('close', () => resolve())) };
}

const healthOf = (list: NodeWatchResourcesResponse | undefined, name: string) =>
  list?.devices.find(({ device }) => device?.deviceName === name);

describe('the health feed on a socket', () => {
  it.each([
    ['v1', DRAResourceHealthClient],
    ['v1alpha1', AlphaClient],
  ])('%s: sends the list at once, and each change', async (_version, Client) => {
    const { store, feed } = feedOf([gpu()]);
    await serve(feed);
    const { lists } = watch(Client);
    await expect.poll(() => lists.length).toBe(1);
    expect(lists[0]?.devices.map(({ device }) => `${device?.poolName} ${device?.deviceName}`).sort()).toEqual([
      'node-1 0000-3b-00-0',
      'node-1 gpu-0',
      'node-1 gpu-aa',
      'node-1 pci-0000-3b-00-0',
    ]);
    expect(healthOf(lists[0], 'gpu-0')).toMatchObject({ health: HealthStatus.HEALTHY, message: '', healthCheckTimeoutSeconds: 30n });
    store.publish(snapshotOf([gpu({}, broken())]));
    await expect.poll(() => lists.length).toBe(2);
    expect(healthOf(lists[1], 'gpu-0')).toMatchObject({
      health: HealthStatus.UNHEALTHY,
      message: 'PortDown (Polling): port 1 is down; remedy: check-cable',
    });
    store.publish(snapshotOf([gpu()]));
    await expect.poll(() => lists.length).toBe(3);
    expect(healthOf(lists[2], 'gpu-0')?.health).toBe(HealthStatus.HEALTHY);
  });

  it('sends an empty list before the first snapshot, and no list twice but at a heartbeat', async () => {
    const { store, feed } = feedOf(undefined, { heartbeatMs: 300 });
    await serve(feed);
    const { lists } = watch();
    await expect.poll(() => lists.length).toBe(1);
    expect(lists[0]?.devices).toEqual([]);
    for (let at = 0; at < 20; at += 1) store.publish(snapshotOf([gpu()]));
    await expect.poll(() => lists.filter(({ devices }) => devices.length > 0).length).toBe(1);
    await expect.poll(() => lists.length).toBeGreaterThan(3);
  });

  it('tells that nothing is known while the agent does not work', async () => {
    let fault: string | undefined;
    const { feed } = feedOf([gpu()], { heartbeatMs: 100, fault: () => fault });
    await serve(feed);
    const { lists } = watch();
    await expect.poll(() => healthOf(lists.at(-1), 'gpu-0')?.health).toBe(HealthStatus.HEALTHY);
    fault = 'There was no new snapshot for 70 s.';
    await expect.poll(() => healthOf(lists.at(-1), 'gpu-0')).toMatchObject({ health: HealthStatus.UNKNOWN, message: fault });
  });

  it('refuses connections and streams beyond the limits, and serves again after others left', async () => {
    const { feed } = feedOf([gpu()]);
    await serve(feed, { ...LIMITS, connections: 2 });
    const [one, two] = [watch(), watch()];
    await expect.poll(() => one.lists.length + two.lists.length).toBe(2);
    await bare().closed;
    one.stream.cancel();
    two.stream.cancel();
    for (const end of ends.splice(1)) end();
    await expect
      .poll(async () => {
        const next = watch();
        await until(() => next.lists.length > 0 || next.error() !== undefined, 'it is served or refused');
        return next.lists.length;
      })
      .toBe(1);
  });

  it('cuts a connection that never answers', async () => {
    const { feed } = feedOf([gpu()]);
    await serve(feed);
    const { socket, closed } = bare();
    socket.resume();
    await closed;
  });

  it('cuts a client that does not read its stream, while others are served', async () => {
    const many = Array.from({ length: 400 }, (_, at) =>
      gpu(
        { id: `GPU-${at}x`, minor: at, pciAddress: `0000:${at.toString(16).padStart(2, '0').slice(-2)}:00.0` },
        broken({ message: 'x'.repeat(900) }),
      ),
    );
    // Server and clients share a process here, so that a busy machine makes each of them slow.
    const { feed } = feedOf(many, { heartbeatMs: 500 });
    await serve(feed, { ...LIMITS, aliveMs: 60_000 });
    const deaf = watch();
    deaf.stream.pause();
    const { lists, error } = watch();
    await expect.poll(() => lists.length).toBeGreaterThan(5);
    await expect.poll(() => deaf.error()).toMatch(/UNAVAILABLE|CANCELLED/);
    expect(error()).toBeUndefined();
  });

  it('removes its socket, and nothing else', async () => {
    const { feed } = feedOf([gpu()]);
    const close = await serveFeedSocket(path, draHealth(feed));
    await close();
    expect(existsSync(path)).toBe(false);
  });
});
