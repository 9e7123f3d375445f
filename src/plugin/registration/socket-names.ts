import { createHash } from 'node:crypto';
import { readdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { connectErrno, LONGEST_SOCKET_PATH } from '../../host/fs/socket-file.ts';

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

/** Removes what processes that were killed left behind: sockets of this resource that nobody listens to. */
export async function removeDeadSockets(directory: string, resource: string): Promise<void> {
  const names = namesIn(directory).filter((name) => name.startsWith(prefixOf(resource)) && name.endsWith('.sock'));
  for (const path of names.map((name) => join(directory, name))) {
    if ((await connectErrno(path)) === 'ECONNREFUSED') removeSocket(path);
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory);
  } catch {
    return [];
  }
}
