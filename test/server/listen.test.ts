import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, describe, expect, it } from 'vitest';
import { UserError } from '../../src/errors.ts';
import { listen, parseListenAddress } from '../../src/server/http/listen.ts';
import { start } from './start.ts';

const undo: (() => unknown)[] = [];
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step();
});

describe('a listen address', () => {
  it.each([
    [':9835', { port: 9835 }],
    ['127.0.0.1:0', { host: '127.0.0.1', port: 0 }],
    ['localhost:80', { host: 'localhost', port: 80 }],
    ['[::1]:9835', { host: '::1', port: 9835 }],
    ['[fe80::1%eth0]:1', { host: 'fe80::1%eth0', port: 1 }],
    ['/run/a.sock', { path: '/run/a.sock' }],
    ['unix:/run/a.sock', { path: '/run/a.sock' }],
  ])('%s is understood', (text, address) => {
    expect(parseListenAddress(text)).toEqual(address);
  });

  it.each(['', '9835', ':', ':65536', ':-1', '::1:80', '[1.2.3.4]:80', '[::1]', 'http://a:80', 'a b:80', 'unix:run'])(
    '%j is refused',
    (text) => {
      expect(parseListenAddress(text)).toBeUndefined();
    },
  );
});

describe('listening', () => {
  it('on a taken port fails with a user error that names address and cause', async () => {
    const { url, server } = await start();
    undo.push(() => server.close());
    const address = `127.0.0.1:${new URL(url).port}`;
    const failure = await start({ options: { 'listen-address': address } }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UserError);
    expect(failure).toMatchObject({ code: 'listen-failed', message: `cannot listen on ${address}: the address is already in use` });
  });

  it('on nonsense fails with a user error', async () => {
    await expect(start({ options: { 'listen-address': 'nonsense' } })).rejects.toMatchObject({ code: 'listen-failed', exit: 1 });
    await expect(start({ options: { 'listen-address': '/no/such/directory/a.sock' } })).rejects.toMatchObject({ code: 'listen-failed' });
  });

  it('works on IPv6 and on a unix socket', async () => {
    const six = await start({ options: { 'listen-address': '[::1]:0' } });
    undo.push(() => six.server.close());
    expect(six.url).toMatch(/^http:\/\/\[::1\]:\d+$/);
    expect((await fetch(`${six.url}/healthz`)).status).toBe(200);
    const directory = mkdtempSync(join(tmpdir(), 'device-agent-web-'));
    undo.push(() => rmSync(directory, { recursive: true }));
    const socket = await start({ options: { 'listen-address': `unix:${directory}/web.sock` } });
    undo.push(() => socket.server.close());
    expect(socket.url).toBe(`unix:${directory}/web.sock`);
    expect(statSync(`${directory}/web.sock`).isSocket()).toBe(true);
  });

  it('replaces a socket file that a killed process left, but not one that is answered', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'device-agent-web-'));
    undo.push(() => rmSync(directory, { recursive: true }));
    const path = join(directory, 'web.sock');
    const worker = new Worker(`require('net').createServer().listen(${JSON.stringify(path)}, () => process.exit())`, { eval: true });
    await new Promise((resolve) => worker.once('exit', resolve));
    const server = createHttpServer();
    expect(await listen(server, path)).toBe(`unix:${path}`);
    undo.push(() => server.close());
    await expect(listen(createHttpServer(), path)).rejects.toMatchObject({ code: 'listen-failed' });
  });

  it('leaves a file alone that is no socket, and says what is wrong with a path', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'device-agent-web-'));
    undo.push(() => rmSync(directory, { recursive: true }));
    const path = join(directory, 'notes.txt');
    writeFileSync(path, 'dear');
    await expect(listen(createHttpServer(), path)).rejects.toThrow(/: the path holds a file that is not a socket$/);
    expect(readFileSync(path, 'utf8')).toBe('dear');
    await expect(listen(createHttpServer(), join(directory, 'none/web.sock'))).rejects.toThrow(/: the directory does not exist$/);
  });
});
