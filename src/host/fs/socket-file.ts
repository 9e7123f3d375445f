import { type BigIntStats, lstatSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import type { Clock } from '../clock.ts';
import { type EntryWatch, watchEntry } from './entry-watch.ts';
import { errnoName } from './tree.ts';

/** Longest path of a unix socket on Linux, in bytes, without the terminating zero (unix(7)). Node truncates a longer path. */
export const LONGEST_SOCKET_PATH = 107;

/** State of a path where a socket is expected. `identity` differs for every socket that was bound there. */
export type SocketState =
  | { readonly kind: 'socket'; readonly identity: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'not-a-socket'; readonly what: 'directory' | 'file' | 'device' | 'pipe' | 'symbolic link' }
  | { readonly kind: 'unreadable'; readonly errno: string };

/** Checks a path without connecting. It follows symbolic links, like connect. With `nofollow`, a link is no socket. */
export function socketAt(path: string, links: 'follow' | 'nofollow' = 'follow'): SocketState {
  try {
    const stats = (links === 'follow' ? statSync : lstatSync)(path, { bigint: true });
    return stats.isSocket() ? { kind: 'socket', identity: identityOf(stats) } : { kind: 'not-a-socket', what: kindOf(stats) };
  } catch (error) {
    const errno = errnoName(error);
    return errno === 'ENOENT' || errno === 'ENOTDIR' ? { kind: 'missing' } : { kind: 'unreadable', errno };
  }
}

/** Device, inode and birth time. The birth time is needed because ext4 reuses the inode of a removed socket at once. */
export function identityOf(stats: BigIntStats): string {
  return `${stats.dev}:${stats.ino}:${stats.birthtimeNs}`;
}

function kindOf(stats: BigIntStats): 'directory' | 'file' | 'device' | 'pipe' | 'symbolic link' {
  if (stats.isSymbolicLink()) return 'symbolic link';
  if (stats.isDirectory()) return 'directory';
  if (stats.isFIFO()) return 'pipe';
  return stats.isFile() ? 'file' : 'device';
}

/** Connects and disconnects. Returns undefined on success, otherwise the errno name. */
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

/** Calls `onChange` when the socket at the path is replaced, removed or created. */
export function watchSocket(path: string, onChange: (state: SocketState) => void, clock: Clock): EntryWatch {
  const fingerprint = (): string => {
    const state = socketAt(path);
    return state.kind === 'socket' ? state.identity : state.kind;
  };
  return watchEntry(path, fingerprint, () => onChange(socketAt(path)), clock);
}
