import { describe, expect, it } from 'vitest';
import { ask, bigExposition, connectTo, METRICS, start } from './asking.ts';

const HEALTHZ = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';

describe('a bad client', () => {
  it('that does not read its answer loses its place to the next one', async () => {
    const { exposition, bytes } = bigExposition();
    const { url } = await start({ parts: { exposition }, options: { 'max-requests': 1 }, limits: { answerMs: 300 } });
    const slow = connectTo(url, METRICS);
    await slow.answered();
    expect((await ask(`${url}/api/v1/status`)).status).toBe(200);
    slow.socket.resume();
    await slow.closed;
    expect(slow.socket.bytesRead).toBeLessThan(bytes);
  });

  it('that holds the only place does not hold up liveness, and gives it to whoever waited long enough', async () => {
    const { exposition } = bigExposition();
    const { url } = await start({ parts: { exposition }, options: { 'max-requests': 1 }, limits: { patienceMs: 100 } });
    const slow = connectTo(url, METRICS);
    await slow.answered();
    expect((await ask(`${url}/healthz`)).status).toBe(200);
    expect((await ask(`${url}/api/v1/status`)).status).toBe(200);
    slow.socket.resume();
    await slow.closed;
  });

  it('that has just got the only place keeps it, and the others are told to come again', async () => {
    const { exposition, asked } = bigExposition();
    const { url } = await start({ parts: { exposition }, options: { 'max-requests': 1 }, limits: { patienceMs: 300 } });
    const first = connectTo(url, METRICS);
    await first.answered();
    // Both wait; the second gets the first one's place, and is young when the third has waited as long.
    const second = connectTo(url, METRICS);
    await expect.poll(() => second.socket.bytesWritten).toBeGreaterThan(0);
    const refused = await ask(`${url}/metrics`);
    expect([refused.status, refused.headers['retry-after'], asked.count]).toEqual([503, '1', 2]);
    second.socket.destroy();
    await second.closed;
    await expect.poll(async () => (await ask(`${url}/api/v1/status`)).status).toBe(200);
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

  it.each(['/metrics', '/', '/api/v1/status'])(
    'that asks for thousands of answers of %s before it has one loses its connection',
    async (path) => {
      const { exposition, asked } = bigExposition();
      const { url } = await start({ parts: { exposition }, options: { 'max-requests': 2 }, limits: { patienceMs: 600_000 } });
      const holder = connectTo(url, METRICS);
      await holder.answered();
      const greedy = connectTo(url, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`.repeat(5_000));
      greedy.socket.resume();
      await greedy.closed;
      const patient = connectTo(url, 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(10));
      await patient.answered();
      expect(asked.count).toBe(1);
      holder.socket.destroy();
      await expect.poll(async () => (await ask(`${url}/api/v1/status`)).status).toBe(200);
    },
  );

  it('that has its answer and stays idle is let go', async () => {
    const { url } = await start({ limits: { keepAliveMs: 100 } });
    const idle = connectTo(url, METRICS);
    idle.socket.resume();
    await idle.closed;
    expect(idle.socket.bytesRead).toBeGreaterThan(1_000);
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
