import { createHash } from 'node:crypto';
import { type Dir, opendirSync, statSync, unlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { connectErrno, LONGEST_SOCKET_PATH, socketAt } from '../../host/fs/socket-file.ts';

const PREFIX = 'device-agent-';

/** Name prefix of all sockets that any process of this program creates for a resource. */
function prefixOf(resource: string): string {
  return `${PREFIX}${createHash('sha256').update(resource).digest('hex').slice(0, 8)}-`;
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

/** Every writer of the directory can create sockets with our names, so each start looks only at the first of them. */
const MOST_NAMES = 64;
/** Limit for entries of any name: a directory with more is not read to its end. */
const MOST_ENTRIES = 10_000;

/** A socket of another process that may serve the same resource. */
export interface Neighbour {
  readonly identity: string;
  /** Whether an agent made it, for this resource. */
  readonly isAgents: boolean;
  /** Whether it is younger than the own socket. */
  readonly isNewer: boolean;
}

/** The sockets in these directories on which a process listens, but for the own one, the kubelet's, and those of agents for other resources. */
export async function liveNeighbours(directories: readonly string[], resource: string, own: string): Promise<readonly Neighbour[]> {
  const madeMs = (path: string): number => statSync(path, { throwIfNoEntry: false })?.ctimeMs ?? Number.NEGATIVE_INFINITY;
  const prefix = prefixOf(resource);
  const isCandidate = (name: string): boolean => name.startsWith(prefix) || !(name.startsWith(PREFIX) || name === 'kubelet.sock');
  const paths = directories.flatMap((directory) => namesIn(directory, isCandidate).map((name) => join(directory, name)));
  const found = paths.map(async (path): Promise<Neighbour[]> => {
    const state = socketAt(path, 'nofollow');
    if (path === own || state.kind !== 'socket' || (await connectErrno(path)) === 'ECONNREFUSED') return [];
    return [{ identity: state.identity, isAgents: basename(path).startsWith(prefix), isNewer: madeMs(path) > madeMs(own) }];
  });
  return (await Promise.all(found)).flat();
}

/** Removes the sockets of this resource on which no process listens; killed processes leave them behind. */
export async function removeDeadSockets(directory: string, resource: string): Promise<void> {
  const prefix = prefixOf(resource);
  for (const name of namesIn(directory, (name) => name.startsWith(prefix) && name.endsWith('.sock'))) {
    const path = join(directory, name);
    if ((await connectErrno(path)) === 'ECONNREFUSED') removeSocket(path);
  }
}

function namesIn(directory: string, isWanted: (name: string) => boolean): string[] {
  const names: string[] = [];
  let dir: Dir | undefined;
  try {
    dir = opendirSync(directory);
    for (let entries = 0; entries < MOST_ENTRIES && names.length < MOST_NAMES; entries++) {
      const entry = dir.readSync();
      if (entry === null) break;
      if (isWanted(entry.name)) names.push(entry.name);
    }
  } catch {
    // A directory that does not exist or cannot be read has no sockets of ours.
  }
  dir?.closeSync();
  return names;
}
