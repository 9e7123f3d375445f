import { type BigIntStats, statSync } from 'node:fs';
import { connect } from 'node:net';
import type { Clock } from '../clock.ts';
import { type EntryWatch, watchEntry } from './entry-watch.ts';
import { errnoName } from './tree.ts';

/** Longest path of a unix socket on Linux, in bytes, without the closing zero (unix(7)). Node binds what fits of a longer one. */
export const LONGEST_SOCKET_PATH = 107;

/** What lies at a path where a socket is expected. `identity` differs for every socket ever bound there. */
export type SocketState =
  | { readonly kind: 'socket'; readonly identity: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'not-a-socket'; readonly what: 'directory' | 'file' | 'device' | 'pipe' }
  | { readonly kind: 'unreadable'; readonly errno: string };

/** Looks without connecting. Symbolic links are followed, as connecting does. */
export function socketAt(path: string): SocketState {
  try {
    const stats = statSync(path, { bigint: true });
    return stats.isSocket() ? { kind: 'socket', identity: identityOf(stats) } : { kind: 'not-a-socket', what: kindOf(stats) };
  } catch (error) {
    const errno = errnoName(error);
    return errno === 'ENOENT' || errno === 'ENOTDIR' ? { kind: 'missing' } : { kind: 'unreadable', errno };
  }
}

/** Device, inode and time of birth: ext4 gives the inode of a removed socket to the next one at once. */
function identityOf(stats: BigIntStats): string {
  return `${stats.dev}:${stats.ino}:${stats.birthtimeNs}`;
}

function kindOf(stats: BigIntStats): 'directory' | 'file' | 'device' | 'pipe' {
  if (stats.isDirectory()) return 'directory';
  if (stats.isFIFO()) return 'pipe';
  return stats.isFile() ? 'file' : 'device';
}

/** Connects and hangs up: undefined when somebody accepted, otherwise the errno name. */
export function connectErrno(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const done = (errno?: string): void => {
      socket.destroy();
      resolve(errno);
    };
    socket.once('connect', () => done());
    socket.once('error', (error) => done(errnoName(error)));
  });
}

/** Tells when the path holds another socket than before, or none any more, or one again. */
export function watchSocket(path: string, onChange: (state: SocketState) => void, clock: Clock): EntryWatch {
  const fingerprint = (): string => {
    const state = socketAt(path);
    return state.kind === 'socket' ? state.identity : state.kind;
  };
  return watchEntry(path, fingerprint, () => onChange(socketAt(path)), clock);
}
