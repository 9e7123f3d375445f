import { createHash } from 'node:crypto';
import { readdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { connectErrno, LONGEST_SOCKET_PATH } from '../../host/fs/socket-file.ts';

/** Name prefix of all sockets that any process of this program creates for a resource. */
function prefixOf(resource: string): string {
  return `device-agent-${createHash('sha256').update(resource).digest('hex').slice(0, 8)}-`;
}

/**
 * Returns a socket path that no other attempt uses. `unique` differs per process and attempt, because kubelets from 1.37 on identify
 * plugin instances by the path. The path also contains as much of the resource's name as fits, for readability.
 */
export function socketPath(directory: string, resource: string, unique: string): string {
  const path = join(directory, `${prefixOf(resource)}${unique}.sock`);
  const room = Math.max(0, LONGEST_SOCKET_PATH - Buffer.byteLength(path) - 1);
  const readable = resource.replace(/[^A-Za-z0-9.-]/g, '_').slice(0, Math.min(40, room));
  return join(directory, `${prefixOf(resource)}${readable === '' ? '' : `${readable}-`}${unique}.sock`);
}

/** Ignores errors: the path can be a directory or on a read-only mount, and nothing depends on its removal. */
export function removeSocket(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // The next socket has another name.
  }
}

/** Removes the sockets of this resource on which no process listens; killed processes leave them behind. */
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
