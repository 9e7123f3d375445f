import { type ChildProcess, execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type Access, OPEN_ACCESS } from '../../../src/server/access/access.ts';
import { isInstalled } from '../../support/installed.ts';
import { leaveOut } from '../../support/skipped.ts';
import { ask, connectTo, start } from '../asking.ts';
import { broken, feedOf, gpu, snapshotOf } from './support.ts';

interface Line {
  readonly heartbeat?: string;
  readonly devices?: readonly { readonly id: string; readonly state: string; readonly message: string }[];
}

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill();
});

const WATCH = 'GET /api/health/watch HTTP/1.1\r\nHost: localhost\r\n\r\n';

/** As an administrator follows it. */
function curl(url: string): { lines(): readonly Line[]; readonly ended: Promise<void> } {
  if (!isInstalled('curl')) leaveOut('curl is not installed');
  const child = execFile('curl', ['-sN', `${url}/api/health/watch`], { maxBuffer: Number.POSITIVE_INFINITY });
  children.push(child);
  let text = '';
  child.stdout?.on('data', (chunk: string) => {
    text += chunk;
  });
  return {
    lines: () =>
      text
        .split('\n')
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Line),
    ended: new Promise((resolve) => child.once('exit', () => resolve())),
  };
}

describe('GET /api/health/watch', () => {
  it('sends the list at once, then each change, and heartbeats between', async () => {
    const { store, feed } = feedOf([gpu()], { heartbeatMs: 200 });
    const { url } = await start({ parts: { feed } });
    const { lines } = curl(url);
    await expect.poll(() => lines().length).toBeGreaterThan(0);
    expect(lines()[0]?.devices).toEqual([
      {
        family: 'nvidia',
        id: 'GPU-aa',
        pciAddress: '0000:3b:00.0',
        uuid: 'GPU-aa',
        state: 'HEALTHY',
        message: '',
        names: expect.any(Array),
      },
    ]);
    store.publish(snapshotOf([gpu({}, broken())]));
    await expect.poll(() => lines().filter(({ devices }) => devices !== undefined).length).toBe(2);
    expect(lines().findLast(({ devices }) => devices !== undefined)?.devices?.[0]).toMatchObject({
      state: 'UNHEALTHY',
      message: 'PortDown (Polling): port 1 is down; remedy: check-cable',
    });
    await expect.poll(() => lines().filter(({ heartbeat }) => heartbeat !== undefined).length).toBeGreaterThan(1);
  });

  it('has places of its own: neither takes those of the other', async () => {
    const { feed } = feedOf([gpu()]);
    const { url } = await start({ parts: { feed }, options: { 'max-requests': 1 } });
    const streams = Array.from({ length: 16 }, (_, at) => connectTo(url, WATCH, { localAddress: `127.0.0.${at % 2 === 0 ? 1 : 2}` }));
    await Promise.all(streams.map((stream) => stream.answered()));
    const refused = await ask(`${url}/api/health/watch`);
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '10']);
    expect(refused.body.toString()).toContain('too-many-streams');
    expect((await ask(`${url}/metrics`)).status).toBe(200);
    streams[0]?.socket.destroy();
    await expect.poll(async () => (await ask(`${url}/api/health/watch`, {}, 'HEAD')).status).toBe(200);
  });

  it('leaves half of the places to other addresses', async () => {
    const { feed } = feedOf([gpu()]);
    const { url } = await start({ parts: { feed } });
    await Promise.all(Array.from({ length: 8 }, () => connectTo(url, WATCH).answered()));
    const status = async (localAddress: string) => (await ask(`${url}/api/health/watch`, {}, 'HEAD', { localAddress })).status;
    expect([await status('127.0.0.1'), await status('127.0.0.2')]).toEqual([503, 200]);
  });

  it('drops a client that does not read, and no other', async () => {
    const many = Array.from({ length: 500 }, (_, at) => gpu({ id: `GPU-${at}x`, minor: at }));
    const { store, feed } = feedOf(many, { heartbeatMs: 150 });
    const directory = mkdtempSync(join(tmpdir(), 'watch-'));
    // A unix socket, because the buffers of TCP take megabytes.
    const socketPath = join(directory, 'web.sock');
    await start({ parts: { feed }, options: { 'listen-address': `unix:${socketPath}` } });
    const readers = Array.from({ length: 15 }, () => connectTo('', WATCH, { socketPath }));
    for (const { socket } of readers) socket.resume();
    const deaf = connectTo('', WATCH, { socketPath });
    await deaf.answered();
    let at = 0;
    const ticks = setInterval(() => {
      at += 1;
      store.publish(snapshotOf(many.map((one) => ({ ...one, verdict: broken({ message: `count ${at}` }) }))));
    }, 100);
    const status = async () => (await ask('http://localhost/api/health/watch', {}, 'HEAD', { socketPath })).status;
    expect(await status(), 'all places are taken').toBe(503);
    await expect.poll(status).toBe(200);
    clearInterval(ticks);
    expect(readers.filter(({ socket }) => socket.destroyed)).toEqual([]);
    rmSync(directory, { recursive: true });
  });

  it('ends its streams when the server closes', async () => {
    const { feed } = feedOf([gpu()]);
    const { url, server } = await start({ parts: { feed } });
    const { lines, ended } = curl(url);
    await expect.poll(() => lines().length).toBe(1);
    await Promise.all([server.close(), ended]);
  });

  it('ends the streams of those who may no longer read', async () => {
    const { feed } = feedOf([gpu()]);
    let apply: (access: Access) => void = () => undefined;
    const access = {
      current: OPEN_ACCESS,
      subscribe: (listener: typeof apply) => {
        apply = listener;
      },
    };
    const { url } = await start({ parts: { feed, access } });
    const { lines, ended } = curl(url);
    await expect.poll(() => lines().length).toBe(1);
    apply({ ...OPEN_ACCESS, users: new Map([['ann', '$2y$10$hash']]) });
    await ended;
    expect((await ask(`${url}/api/health/watch`)).status).toBe(401);
  });

  it('obeys --web.api and passwords, needs a snapshot and has no parameters', async () => {
    const { feed } = feedOf([gpu()]);
    const off = await start({ parts: { feed }, options: { api: false } });
    expect((await ask(`${off.url}/api/health/watch`)).status).toBe(404);
    const users = new Map([['ann', '$2y$10$hash']]);
    const access = { current: { ...OPEN_ACCESS, users }, subscribe: () => undefined };
    const locked = await start({ parts: { feed, access, comparePassword: async (password) => password === 'right' } });
    const as = (password: string) => ({ authorization: `Basic ${Buffer.from(`ann:${password}`).toString('base64')}` });
    expect((await ask(`${locked.url}/api/health/watch`)).status).toBe(401);
    expect((await ask(`${locked.url}/api/health/watch`, as('right'), 'HEAD')).status).toBe(200);
    const early = await start({ parts: { feed: feedOf(undefined).feed } });
    expect((await ask(`${early.url}/api/health/watch`)).status).toBe(503);
    expect((await ask(`${off.url}/api/health/watch?device=x`)).status).toBe(404);
    expect((await ask(`${early.url}/api/health/watch?device=x`)).status).toBe(400);
  });
});
