import { randomBytes } from 'node:crypto';
import { linkSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import type { Server as NetServer } from 'node:net';
import { dirname, join } from 'node:path';
import { type Server as GrpcServer, ServerCredentials } from '@grpc/grpc-js';

/**
 * Makes a socket as the kubelet does: what lay there is removed, `bind` listens under a random name in the same directory,
 * and that is renamed. So the file stays behind when its server ends.
 */
export async function makeRenamedSocket(path: string, bind: (path: string) => Promise<unknown>): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  rmSync(path, { force: true, recursive: true });
  const temporary = join(dirname(path), randomBytes(4).toString('hex'));
  await bind(temporary);
  renameSync(temporary, path);
}

export function bindGrpc(server: GrpcServer, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error)));
  });
}

export function listen(server: NetServer, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

/** Ends a server at that path and leaves its socket file behind, as a process does that is killed. */
export function keepSocketFile(path: string, end: () => void): void {
  const second = join(dirname(dirname(path)), `.${randomBytes(4).toString('hex')}`);
  try {
    linkSync(path, second);
  } catch {
    // Somebody has removed it.
    end();
    return;
  }
  end();
  renameSync(second, path);
}
