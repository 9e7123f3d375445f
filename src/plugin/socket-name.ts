import { createHash } from 'node:crypto';
import { readdirSync, unlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { connectErrno, LONGEST_SOCKET_PATH } from '../host/fs/socket-file.ts';

/** Begins the names of all sockets that any process of this program makes for a resource. */
function prefixOf(resource: string): string {
  return `device-agent-${createHash('sha256').update(resource).digest('hex').slice(0, 8)}-`;
}

/**
 * Path of a socket that no other start has: `unique` tells the processes and their attempts apart, since kubelets from 1.37 on know
 * instances of a plugin by it. As much of the resource's name as fits is in it for the reader.
 */
export function socketPath(directory: string, resource: string, unique: string): string {
  const path = join(directory, `${prefixOf(resource)}${unique}.sock`);
  const room = Math.max(0, LONGEST_SOCKET_PATH - Buffer.byteLength(path) - 1);
  const readable = resource.replace(/[^A-Za-z0-9.-]/g, '_').slice(0, Math.min(40, room));
  return join(directory, `${prefixOf(resource)}${readable === '' ? '' : `${readable}-`}${unique}.sock`);
}

/** What cannot be removed stays: somebody may have put a directory there, or mounted it read-only, and nothing depends on it. */
export function removeSocket(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // The next socket has another name.
  }
}

/** Sockets of this resource but for `own`, sorted: those of other processes, and what a process left behind when it was killed. */
export function otherSockets(directory: string, resource: string, own = ''): string[] {
  const prefix = prefixOf(resource);
  return namesIn(directory)
    .filter((name) => name.startsWith(prefix) && name.endsWith('.sock') && name !== basename(own))
    .sort()
    .map((name) => join(directory, name));
}

/** Removes those that nobody listens to; true when somebody listens to one of the others. */
export async function removeDeadSockets(paths: readonly string[]): Promise<boolean> {
  let isOneAlive = false;
  for (const path of paths) {
    const errno = await connectErrno(path);
    if (errno === 'ECONNREFUSED') removeSocket(path);
    // What is none or is gone by now is nobody; one that is too busy to accept is there.
    else if (errno === undefined || errno === 'EAGAIN') isOneAlive = true;
  }
  return isOneAlive;
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
