import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { ask, start } from './asking.ts';

describe('a bad client', () => {
  const bigPage = Buffer.alloc(64 * 1024 * 1024, 'x');
  const big = {
    page: () => Promise.resolve({ kept: bigPage, live: Buffer.alloc(0) }),
    contentTypes: { text: 'text/plain', openmetrics: '' },
  };
  const connectTo = (url: string, send: string) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.on('error', () => undefined);
    socket.write(send);
    return { socket, closed: new Promise<void>((resolve) => socket.once('close', () => resolve())) };
  };

  it('that does not read its answer loses its place to the next one', async () => {
    const { url } = await start({ parts: { exposition: big }, options: { 'max-requests': 1 }, limits: { answerMs: 300 } });
    const slow = connectTo(url, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n');
    await new Promise((resolve) => slow.socket.once('readable', resolve));
    expect((await ask(`${url}/api/v1/status`)).status).toBe(200);
    slow.socket.resume();
    await slow.closed;
    expect(slow.socket.bytesRead).toBeLessThan(bigPage.length);
  });

  it('that holds the only place does not hold up liveness, and the others are told to come again', async () => {
    const { url } = await start({ parts: { exposition: big }, options: { 'max-requests': 1 }, limits: { patienceMs: 100 } });
    const slow = connectTo(url, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n');
    await new Promise((resolve) => slow.socket.once('readable', resolve));
    expect((await ask(`${url}/healthz`)).status).toBe(200);
    const refused = await ask(`${url}/metrics`);
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1']);
    slow.socket.destroy();
    await slow.closed;
    await expect.poll(async () => (await ask(`${url}/api/v1/status`)).status).toBe(200);
  });

  it('takes no copy of the page, so that many who do not read cost hardly more than one', async () => {
    const { url } = await start({ parts: { exposition: big } });
    const held = (): number => process.memoryUsage().arrayBuffers + process.memoryUsage().external;
    const before = held();
    const slow = Array.from({ length: 30 }, () => connectTo(url, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'));
    await Promise.all(slow.map(({ socket }) => new Promise((resolve) => socket.once('readable', resolve))));
    expect(held() - before).toBeLessThan(bigPage.length);
    for (const { socket } of slow) socket.destroy();
    await Promise.all(slow.map(({ closed }) => closed));
  });

  it('that opens one connection after the other gets no more than there may be', async () => {
    const { url } = await start({ limits: { connections: 3 } });
    const idle = Array.from({ length: 3 }, () => connectTo(url, 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'));
    await Promise.all(idle.map(({ socket }) => new Promise((resolve) => socket.once('readable', resolve))));
    const further = connectTo(url, 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
    further.socket.resume();
    await further.closed;
    expect(further.socket.bytesRead).toBe(0);
    idle[0]?.socket.destroy();
    await expect
      .poll(() =>
        ask(`${url}/healthz`).then(
          ({ status }) => status,
          () => 0,
        ),
      )
      .toBe(200);
    for (const { socket } of idle) socket.destroy();
  });

  it('that has its answer and stays idle is let go', async () => {
    const { url } = await start({ limits: { keepAliveMs: 100 } });
    const idle = connectTo(url, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n');
    idle.socket.resume();
    await idle.closed;
    expect(idle.socket.bytesRead).toBeGreaterThan(1_000);
  });

  it('that sends requests without reading the answers has no more of them under way than all may, and leaves no trace', async () => {
    const asked = { count: 0 };
    const page = () => {
      asked.count += 1;
      return Promise.resolve({ kept: bigPage, live: Buffer.alloc(0) });
    };
    const { url } = await start({ parts: { exposition: { ...big, page } }, options: { 'max-requests': 5 }, limits: { patienceMs: 200 } });
    const greedy = connectTo(url, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(200));
    await new Promise((resolve) => greedy.socket.once('readable', resolve));
    expect((await ask(`${url}/healthz`)).status).toBe(200);
    expect((await ask(`${url}/api/v1/status`)).status).toBe(503);
    expect(asked.count).toBe(5);
    greedy.socket.destroy();
    await greedy.closed;
    await expect.poll(async () => (await ask(`${url}/api/v1/status`)).status).toBe(200);
    const others = Array.from({ length: 4 }, () => connectTo(url, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n'));
    await Promise.all(others.map(({ socket }) => new Promise((resolve) => socket.once('readable', resolve))));
    expect((await ask(`${url}/api/v1/status`)).status, 'all places but four are free').toBe(200);
    for (const { socket } of others) socket.destroy();
  });

  it('that never finishes its request is cut off', async () => {
    const { url } = await start({ limits: { headersMs: 250, requestMs: 500 } });
    const half = connectTo(url, 'GET /metrics HTTP/1.1\r\nHost:');
    const silent = connectTo(url, '');
    half.socket.resume();
    silent.socket.resume();
    await Promise.all([half.closed, silent.closed]);
    expect((await ask(`${url}/healthz`)).status).toBe(200);
  });

  it('that keeps a connection does not keep the server from closing', async () => {
    const { url, server } = await start({ parts: { exposition: big }, limits: { closeMs: 100 } });
    const idle = connectTo(url, 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n');
    const slow = connectTo(url, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n');
    await Promise.all([idle, slow].map(({ socket }) => new Promise((resolve) => socket.once('readable', resolve))));
    await server.close();
    idle.socket.resume();
    slow.socket.resume();
    await Promise.all([idle.closed, slow.closed]);
    await expect(ask(`${url}/healthz`)).rejects.toThrow('ECONNREFUSED');
  });
});
