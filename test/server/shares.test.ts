import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ask, bigExposition, type Connection, connectTo, METRICS, start, type Way } from './asking.ts';

/** Answered at once, with or without a place: when its answer comes, what follows it has been read too. */
const HEALTHZ = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';
const NEVER_MS = 600_000;
/** So many that answers are what runs short. */
const ROOMY = { connections: 512 };
const [HOSTILE, OTHER] = [{ localAddress: '127.0.0.2' }, { localAddress: '127.0.0.3' }];

function many(count: number, url: string, send: string, way: Way = HOSTILE): Connection[] {
  return Array.from({ length: count }, () => connectTo(url, send, way));
}
const allAnswered = (connections: readonly Connection[]) => Promise.all(connections.map((one) => one.answered()));
const countClosed = (connections: readonly Connection[]): number => connections.filter(({ socket }) => socket.closed).length;
/** Waits until each was told two times what becomes of its requests, or lost its connection. Reads no further than that takes. */
async function allToldTwice(connections: readonly Connection[]): Promise<string[]> {
  const heads = connections.map(() => '');
  const isTold = (head: string, { socket }: Connection): boolean => socket.destroyed || head.split('HTTP/1.1 ').length > 2;
  const areTold = (): boolean => {
    const untold = connections.flatMap((one, index) => (isTold(heads[index] as string, one) ? [] : [index]));
    for (const index of untold) heads[index] += connections[index]?.socket.read() ?? '';
    return untold.length === 0;
  };
  await expect.poll(areTold, { timeout: 15_000 }).toBe(true);
  return heads;
}

const status = async (url: string, way?: Way): Promise<number> => (await ask(`${url}/api/v1/status`, {}, 'GET', way)).status;

describe('a client that takes what it can get', () => {
  it('by 200 connections on which it reads nothing has half of all places, and the next such a quarter', async () => {
    const { exposition, asked } = bigExposition();
    const { url } = await start({ parts: { exposition }, limits: { ...ROOMY, patienceMs: NEVER_MS, answerMs: NEVER_MS } });
    await allAnswered(many(200, url, HEALTHZ + METRICS));
    expect(await status(url)).toBe(200);
    expect(asked.count).toBe(20);
    await allAnswered(many(100, url, HEALTHZ + METRICS, OTHER));
    expect(await status(url)).toBe(200);
    expect(asked.count).toBe(30);
  });

  it('by 10 requests on one connection has no more than by many, and leaves no trace', async () => {
    const { exposition, asked } = bigExposition();
    const { url } = await start({ parts: { exposition }, options: { 'max-requests': 5 }, limits: { patienceMs: NEVER_MS } });
    const greedy = connectTo(url, HEALTHZ + METRICS.repeat(10), HOSTILE);
    await greedy.answered();
    expect(await status(url)).toBe(200);
    expect(asked.count).toBe(3);
    greedy.socket.destroy();
    await greedy.closed;
    await expect.poll(() => status(url, HOSTILE)).toBe(200);
    await allAnswered(many(2, url, METRICS));
    expect(await status(url, HOSTILE), 'its third place is free again').toBe(200);
  });

  it('has its places back one by one as its answers end', async () => {
    const { exposition, asked } = bigExposition();
    const { url } = await start({ parts: { exposition }, limits: { patienceMs: NEVER_MS } });
    const slow = many(60, url, HEALTHZ + METRICS);
    await allAnswered(slow);
    expect(asked.count).toBe(20);
    for (const { socket } of slow.slice(0, 50)) socket.destroy();
    // Those that never had a place gave up their wait with their connection, and of the others all have one.
    await expect.poll(() => status(url, HOSTILE)).toBe(200);
    expect(asked.count).toBeLessThanOrEqual(30);
  });

  it('by half-open connections keeps half of all, and does not shut out those who share its address', async () => {
    const { url } = await start({ limits: { connections: 8, headersMs: NEVER_MS, requestMs: NEVER_MS } });
    const halves = many(200, url, 'GET /metrics HTTP/1.1\r\nHost:');
    for (const { socket } of halves) socket.resume();
    await expect.poll(() => countClosed(halves)).toBe(196);
    const good = connectTo(url, HEALTHZ);
    await good.answered();
    expect(countClosed(halves)).toBe(196);
    expect(await status(url, HOSTILE)).toBe(200);
    // The one that had to go for it was idle longest.
    await expect.poll(() => countClosed(halves)).toBe(197);
    expect(good.socket.closed).toBe(false);
  });

  it('by connections that all wait for answers gets no more of them, and the others do', async () => {
    const { exposition } = bigExposition();
    const { url } = await start({ parts: { exposition }, limits: { connections: 8, patienceMs: NEVER_MS } });
    await allAnswered(many(4, url, HEALTHZ + METRICS));
    const further = many(3, url, HEALTHZ);
    for (const { socket } of further) socket.resume();
    await Promise.all(further.map(({ closed }) => closed));
    expect(further.map(({ socket }) => socket.bytesRead)).toEqual([0, 0, 0]);
    expect(await status(url)).toBe(200);
  });
});

describe('clients that take all places together', () => {
  const addresses = (count: number): Way[] => Array.from({ length: count }, (_, at) => ({ localAddress: `127.0.0.${10 + at}` }));

  it('by answers that they do not read leave one to whoever has none', async () => {
    const { exposition, asked } = bigExposition();
    const { url } = await start({ parts: { exposition }, limits: { ...ROOMY, newcomerMs: 50, patienceMs: NEVER_MS, answerMs: NEVER_MS } });
    // One after the other each takes half of what is left: 20, 10, 5, 3, 1 and 1.
    for (const way of addresses(6)) await allAnswered(many(40, url, HEALTHZ + METRICS, way));
    expect(asked.count).toBe(40);
    expect(await status(url)).toBe(200);
    expect(await status(url, OTHER)).toBe(200);
  });

  it('and have just got them lose one a moment later', async () => {
    const { exposition, asked } = bigExposition();
    const { url } = await start({
      parts: { exposition },
      limits: { ...ROOMY, newcomerMs: 1_000, patienceMs: NEVER_MS, answerMs: NEVER_MS },
    });
    for (const way of addresses(6)) await allAnswered(many(25, url, HEALTHZ + METRICS, way));
    expect(asked.count).toBe(40);
    expect(await status(url)).toBe(200);
  });

  it('one each keep them for as long as anybody has to wait', async () => {
    const { exposition, asked } = bigExposition();
    const limits = { newcomerMs: 20, patienceMs: 600, answerMs: NEVER_MS };
    const { url } = await start({ parts: { exposition }, options: { 'max-requests': 3 }, limits });
    const slow = addresses(3).map((way) => connectTo(url, HEALTHZ + METRICS, way));
    await allAnswered(slow);
    expect(asked.count).toBe(3);
    await new Promise((resolve) => setTimeout(resolve, 100));
    const waiting = status(url);
    await ask(`${url}/healthz`);
    expect(countClosed(slow)).toBe(0);
    expect(await waiting).toBe(200);
  });

  it('by connections leave one to whoever has none', async () => {
    const { url } = await start({ limits: { connections: 8, headersMs: NEVER_MS, requestMs: NEVER_MS } });
    const groups = addresses(4).map((way) => many(20, url, 'GET /metrics HTTP/1.1\r\nHost:', way));
    for (const { socket } of groups.flat()) socket.resume();
    await expect.poll(() => countClosed(groups.flat())).toBe(72);
    expect((await ask(`${url}/healthz`)).status).toBe(200);
    const open = groups.map((group) => group.length - countClosed(group)).sort();
    await expect.poll(() => groups.reduce((sum, group) => sum + group.length - countClosed(group), 0)).toBe(7);
    expect(Math.min(...open)).toBeGreaterThan(0);
  });

  it('by one connection each lose the one that is idle longest to whoever has none', async () => {
    const { url } = await start({ limits: { connections: 4, headersMs: NEVER_MS, requestMs: NEVER_MS } });
    const halves: Connection[] = [];
    for (const way of addresses(9)) {
      const half = connectTo(url, 'GET /metrics HTTP/1.1\r\nHost:', way);
      half.socket.resume();
      halves.push(half);
      // Through an address of its own, so that the server has come to this one before the next.
      await ask(`${url}/healthz`, {}, 'GET', { localAddress: '127.0.0.99' });
    }
    expect((await ask(`${url}/healthz`)).status).toBe(200);
    expect(countClosed(halves)).toBeGreaterThanOrEqual(5);
    expect(halves.at(-1)?.socket.closed).toBe(false);
  });

  it('by connections that all wait for answers leave one to whoever has none', async () => {
    const { exposition } = bigExposition();
    const limits = { connections: 8, newcomerMs: NEVER_MS, patienceMs: NEVER_MS };
    const { url } = await start({ parts: { exposition }, options: { 'max-requests': 2 }, limits });
    for (const [at, way] of addresses(4).entries()) await allAnswered(many([4, 2, 1, 1][at] as number, url, HEALTHZ + METRICS, way));
    expect((await ask(`${url}/healthz`)).status).toBe(200);
  });
});

describe('whoever cannot be told from a slow client', () => {
  const folder = (): string => {
    const path = mkdtempSync(join(tmpdir(), 'device-agent-shares-'));
    onTestFinished(() => rmSync(path, { recursive: true, force: true }));
    return path;
  };

  it.each([
    { by: 'an address that both come from', way: () => HOSTILE },
    { by: 'a unix socket', way: () => ({ socketPath: join(folder(), 'web.sock') }) },
  ])('gets the place of its oldest answer by $by', async ({ way: waysOf }) => {
    const way: Way = waysOf();
    const { exposition, asked } = bigExposition();
    const { url } = await start({
      parts: { exposition },
      options: way.socketPath === undefined ? {} : { 'listen-address': way.socketPath },
      limits: { ...ROOMY, patienceMs: 400 },
    });
    const base = way.socketPath === undefined ? url : 'http://localhost';
    const slow = many(200, base, HEALTHZ + METRICS, way);
    const told = await allToldTwice(slow);
    // Twenty had places, lost them to those that waited, and these are too young to lose them to the rest.
    expect(told.filter((head) => head.includes('503 Service Unavailable')).length).toBe(200 - asked.count);
    expect(asked.count).toBeGreaterThan(20);
    expect(await status(base, way)).toBe(200);
  });

  it('is answered whole, 50 at once', async () => {
    const socketPath = join(folder(), 'web.sock');
    await start({ options: { 'listen-address': socketPath } });
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask('http://localhost/metrics', {}, 'GET', { socketPath })));
    expect(answers.map((answer) => answer.status)).toEqual(Array(50).fill(200));
  });
});
