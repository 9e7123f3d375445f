import { randomBytes } from 'node:crypto';
import { mkdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type Server, ServerCredentials } from '@grpc/grpc-js';

/**
 * Creates a socket as the kubelet does: removes the old file, binds to a random name in the same directory, and renames it. The file
 * therefore remains after the server has ended.
 */
export async function makeRenamedSocket(path: string, bind: (path: string) => Promise<unknown>): Promise<void> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o750 });
  rmSync(path, { force: true, recursive: true });
  const temporary = join(dirname(path), randomBytes(4).toString('hex'));
  await bind(temporary);
  renameSync(temporary, path);
}

export function bindGrpc(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.bindAsync(`unix:${path}`, ServerCredentials.createInsecure(), (error) => (error === null ? resolve() : reject(error)));
  });
}
