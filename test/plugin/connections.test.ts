import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { credentials } from '@grpc/grpc-js';
import { afterEach, describe, expect, it } from 'vitest';
import { DevicePluginClient } from '../../src/generated/deviceplugin/v1beta1/api.ts';
import { systemClock } from '../../src/host/clock.ts';
import { servePlugin } from '../../src/plugin/registration/plugin-server.ts';
import { socketPath } from '../../src/plugin/registration/sockets.ts';
import { PluginService } from '../../src/plugin/service.ts';
import { listen } from '../support/kubelet/sockets.ts';
import { until } from '../support/until.ts';
import { type Bench, deviceState, listed, setUp, TOY } from './support.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const OFFERS = { resource: TOY, current: () => [], onChange: () => () => {} };

async function serve() {
  const directory = mkdtempSync(join(tmpdir(), 'connections-'));
  closers.push(() => rmSync(directory, { recursive: true, force: true }));
  const service = new PluginService({ offers: OFFERS as never, access: () => undefined, healthOf: () => 'Healthy', clock: systemClock });
  const server = await servePlugin(join(directory, 'plugin.sock'), service, systemClock, undefined);
  closers.push(() => server.cut());
  return server;
}

/** A connection with what happened to it. The server speaks first: an accepted connection gets the settings of HTTP/2. */
function dial(path: string): { readonly socket: Socket; state: 'open' | 'accepted' | 'closed' } {
  const dialled = { socket: connect(path), state: 'open' as 'open' | 'accepted' | 'closed' };
  dialled.socket.once('data', () => {
    dialled.state = 'accepted';
  });
  dialled.socket.on('error', () => {});
  dialled.socket.on('close', () => {
    dialled.state = 'closed';
  });
  closers.push(() => dialled.socket.destroy());
  return dialled;
}

const descriptors = (): number => readdirSync('/proc/self/fd').length;

describe("the plugin's server", () => {
  it('closes the connections of idle clients when it is cut, and keeps no descriptor', async () => {
    const before = descriptors();
    for (let round = 0; round < 5; round++) {
      const server = await serve();
      const client = dial(server.path);
      await until(() => client.state === 'accepted', 'the server has accepted');
      server.cut();
      await until(() => client.state === 'closed', 'the connection is closed');
    }
    await until(() => descriptors() <= before, 'the descriptors are closed');
  });

  it('ends the list of a client by its end, not by a broken connection, when it is closed', async () => {
    const server = await serve();
    const client = new DevicePluginClient(`unix:${server.path}`, credentials.createInsecure());
    closers.push(() => client.close());
    let lists = 0;
    const events: string[] = [];
    const stream = client.listAndWatch({});
    stream.on('data', () => {
      lists += 1;
    });
    for (const event of ['end', 'error'] as const) stream.on(event, (error?: Error) => events.push(error?.message ?? event));
    await until(() => lists > 0, 'the list is there');
    await server.close();
    await until(() => events.length > 0, 'the stream is over');
    expect(events).toEqual(['end']);
  });

  it('accepts a bounded number of connections, and others again when those have ended', async () => {
    const server = await serve();
    const clients = Array.from({ length: 100 }, () => dial(server.path));
    await until(() => clients.every(({ state }) => state !== 'open'), 'each was answered');
    expect(clients.filter(({ state }) => state === 'accepted')).toHaveLength(16);
    for (const { socket } of clients) socket.destroy();
    let late = dial(server.path);
    await until(() => {
      if (late.state === 'closed') late = dial(server.path);
      return late.state === 'accepted';
    }, 'there is room again');
  });

  it('gives the place of a connection without a list to a further client, and never that of a client with one', async () => {
    const server = await serve();
    const follow = async (): Promise<readonly string[]> => {
      const client = new DevicePluginClient(`unix:${server.path}`, credentials.createInsecure(), { 'grpc.use_local_subchannel_pool': 1 });
      closers.push(() => client.close());
      const seen: string[] = [];
      client
        .listAndWatch({})
        .on('data', () => seen.push('list'))
        .on('error', ({ message }) => seen.push(message));
      await until(() => seen.length > 0, 'the list is there');
      return seen;
    };
    const first = await follow();
    const idle = Array.from({ length: 45 }, () => dial(server.path));
    await until(() => idle.every(({ state }) => state !== 'open'), 'each was answered');
    await expect.poll(follow, { interval: 200 }).toEqual(['list']);
    expect(first).toEqual(['list']);
  });

  it('is registered beside hundreds of sockets that others made with its name, after a look at a bounded number of them', async () => {
    const bench: Bench = setUp();
    closers.push(() => bench.close());
    await bench.manager.start();
    let looks = 0;
    const decoys = await Promise.all(
      Array.from({ length: 300 }, async (_, at): Promise<Server> => {
        const server = createServer((socket) => {
          looks += 1;
          socket.destroy();
        });
        await listen(server, socketPath(bench.directory, TOY.resource, `decoy-${at}`));
        return server;
      }),
    );
    closers.push(() => decoys.map((server) => server.close()));
    bench.store.publish([deviceState({ id: 't0' })]);
    bench.plugin.start();
    await until(() => listed(bench.manager).join() === 't0=Healthy', 'the resource is served');
    expect(looks).toBeLessThanOrEqual(64);
  });
});
