import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeSocket, type OwnSocket } from '../../../src/host/fs/own-socket.ts';

let root: string;
let made: OwnSocket | undefined;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'device-agent-socket-'));
  mkdirSync(join(root, 'sockets'));
});
afterEach(() => {
  made?.close();
  rmSync(root, { recursive: true });
});

describe('a socket', () => {
  it('is made in the directory of its path, the only one that is writable in a container, and leaves nothing beside it', async () => {
    const server = createServer();
    const bound: string[] = [];
    const listen = server.listen.bind(server);
    server.listen = ((options: { readonly path: string }, ready: () => void) => {
      bound.push(dirname(dirname(options.path)));
      return listen(options, ready);
    }) as typeof server.listen;
    made = await makeSocket(server, join(root, 'sockets/a.sock'), 0o640);
    expect(bound).toEqual([join(root, 'sockets')]);
    expect([readdirSync(root), readdirSync(join(root, 'sockets'))]).toEqual([['sockets'], ['a.sock']]);
    expect(statSync(made.path).mode & 0o777).toBe(0o640);
  });

  it('is refused at a path that nobody could connect to, though it could be renamed to it', async () => {
    const path = join(root, 'sockets', 'a'.repeat(107 - root.length - '/sockets/'.length + 1));
    await expect(makeSocket(createServer(), path, 0o600)).rejects.toThrow('the path of a socket has 107 bytes at most');
    expect(readdirSync(join(root, 'sockets'))).toEqual([]);
  });
});
