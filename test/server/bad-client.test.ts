import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it } from 'vitest';
import { Connections } from '../../src/server/http/connections.ts';
import { serverLimits } from '../../src/server/http/server.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';
import { ask, bigExposition, connectTo, METRICS, start } from './asking.ts';

const HEALTHZ = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n';

describe('a bad client', () => {
  it('that does not read its answer loses its connection, and its place goes to others', async () => {
    const { exposition, bytes } = bigExposition();
    const clock = new ManualClock();
    const { url } = await start({ parts: { exposition, clock }, options: { 'max-requests': 1 } });
    const slow = connectTo(url, METRICS);
    await slow.answered();
    const refused = await ask(`${url}/api/v1/status`);
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1']);
    expect((await ask(`${url}/healthz`)).status, 'liveness does not wait').toBe(200);
    clock.advance(serverLimits.answerMs);
    await expect.poll(async () => (await ask(`${url}/api/v1/status`)).status).toBe(200);
    slow.socket.resume();
    await slow.closed;
    expect(slow.socket.bytesRead).toBeLessThan(bytes);
  });

  it('takes no copy of the page, so that many who do not read cost hardly more than one', async () => {
    const { exposition, bytes } = bigExposition();
    const { url } = await start({ parts: { exposition }, options: { 'max-requests': 0 } });
    const held = (): number => process.memoryUsage().arrayBuffers + process.memoryUsage().external;
    const before = held();
    const slow = Array.from({ length: 30 }, () => connectTo(url, METRICS));
    await Promise.all(slow.map((one) => one.answered()));
    expect(held() - before).toBeLessThan(bytes);
  });

  it('that opens more connections than there may be loses its own, and the kubelet is answered while it holds them', async () => {
    const { url } = await start({ limits: { connections: 10 } });
    const kept = connectTo(url, HEALTHZ, { localAddress: '127.0.0.2' });
    await kept.answered();
    const all = Array.from({ length: 30 }, () => connectTo(url, HEALTHZ));
    for (const { socket } of [kept, ...all]) socket.resume();
    await expect.poll(() => all.filter(({ socket }) => socket.destroyed).length).toBe(21);
    for (let probe = 0; probe < 20; probe += 1) expect((await ask(`${url}/healthz`)).status).toBe(200);
    expect(kept.socket.destroyed, 'the connection of another address').toBe(false);
  });

  it('that waits longest without a request loses its connection first, and one with a running answer stays', async () => {
    const { exposition } = bigExposition();
    const { url } = await start({ parts: { exposition }, limits: { connections: 3 } });
    const busy = connectTo(url, METRICS);
    await busy.answered();
    const idle = connectTo(url, HEALTHZ);
    await idle.answered();
    const next = connectTo(url, HEALTHZ);
    await next.answered();
    expect((await ask(`${url}/healthz`)).status).toBe(200);
    idle.socket.resume();
    await idle.closed;
    expect([busy.socket.destroyed, next.socket.destroyed]).toEqual([false, false]);
  });

  it('that sends requests before it has its answer loses the connection, and no more of them are handled', async () => {
    let probes = 0;
    const fault = (): undefined => {
      probes += 1;
    };
    const { url } = await start({ parts: { fault } });
    const greedy = connectTo(url, HEALTHZ.repeat(20_000));
    greedy.socket.resume();
    await greedy.closed;
    expect(probes).toBe(1);
    expect((await ask(`${url}/healthz`)).status).toBe(200);
  });

  it('that sends thousands of requests at once has hardly one read of them, so that others do not wait for the rest', async () => {
    let read = 0;
    const connections = new Connections(10);
    const server = createServer(connections.oneAtATime((_, response) => response.end()));
    server.prependListener('request', () => {
      read += 1;
    });
    connections.accept(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const greedy = connectTo(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, HEALTHZ.repeat(1_500));
    greedy.socket.resume();
    await greedy.closed;
    server.close();
    expect(read).toBeLessThan(200);
  });

  it('has at most half of the answers, so that another address has its own', async () => {
    const { exposition } = bigExposition();
    const { url } = await start({ parts: { exposition }, options: { 'max-requests': 4 } });
    await Promise.all(Array.from({ length: 2 }, () => connectTo(url, METRICS).answered()));
    const status = async (localAddress: string) => (await ask(`${url}/api/v1/status`, {}, 'GET', { localAddress })).status;
    expect([await status('127.0.0.1'), await status('127.0.0.2')]).toEqual([503, 200]);
  });

  it('that has its answer and stays idle is let go', async () => {
    const { url } = await start({ limits: { keepAliveMs: 100 } });
    const idle = connectTo(url, METRICS);
    idle.socket.resume();
    await idle.closed;
    expect(idle.socket.bytesRead).toBeGreaterThan(1_000);
  });

  it('that never finishes its request is cut off', async () => {
    const { url } = await start({ limits: { headersMs: 250, requestMs: 500, checkMs: 50 } });
    const half = connectTo(url, 'GET /metrics HTTP/1.1\r\nHost:');
    const silent = connectTo(url, '');
    half.socket.resume();
    silent.socket.resume();
    await Promise.all([half.closed, silent.closed]);
    expect((await ask(`${url}/healthz`)).status).toBe(200);
  });

  it('that never finishes a later request is cut off too, and one that is idle is not', async () => {
    const { url } = await start({ limits: { headersMs: 100, requestMs: 200, checkMs: 50 } });
    const half = connectTo(url, HEALTHZ);
    const idle = connectTo(url, HEALTHZ);
    await Promise.all([half.answered(), idle.answered()]);
    half.socket.write('GET /metrics HTTP/1.1\r\nHost:');
    half.socket.resume();
    await half.closed;
    expect(idle.socket.destroyed).toBe(false);
    idle.socket.destroy();
  });

  it('that keeps a connection does not keep the server from closing', async () => {
    const { exposition } = bigExposition();
    const { url, server } = await start({ parts: { exposition }, limits: { closeMs: 100 } });
    const idle = connectTo(url, HEALTHZ);
    const slow = connectTo(url, METRICS);
    await Promise.all([idle.answered(), slow.answered()]);
    await server.close();
    idle.socket.resume();
    slow.socket.resume();
    await Promise.all([idle.closed, slow.closed]);
    await expect(ask(`${url}/healthz`)).rejects.toThrow('ECONNREFUSED');
  });
});
