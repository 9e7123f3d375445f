import { chmodSync, lstatSync, mkdtempSync, renameSync, rmSync, unlinkSync } from 'node:fs';
import type { Server } from 'node:net';
import { dirname, join } from 'node:path';
import { identityOf, LONGEST_SOCKET_PATH } from './socket-file.ts';

/** A unix socket that this process made. */
export interface OwnSocket {
  readonly path: string;
  /** Differs for every socket that was ever bound, see {@link identityOf}. */
  readonly identity: string;
  /** Whether the path still leads to this socket. */
  isInPlace(): boolean;
  /** Removes the file, if it is still this socket, and takes no further connections. Open connections stay. */
  close(): void;
}

/**
 * Binds the server to a path. The socket is made beside the path, in a directory that only this user can enter, and renamed into place when
 * it has its mode: nobody reaches it with another mode, and what is at the path is replaced without a gap. Rejects with the error of the
 * system.
 */
export async function makeSocket(server: Server, path: string, mode: number): Promise<OwnSocket> {
  // Not by `join`, which drops a dot: the directory above is often read-only.
  const beside = mkdtempSync(`${dirname(path)}/.`);
  const made = join(beside, 's');
  try {
    // The renamed socket would be there, and nobody could connect to it.
    if (Math.max(Buffer.byteLength(made), Buffer.byteLength(path)) > LONGEST_SOCKET_PATH)
      throw new Error(`the path of a socket has ${LONGEST_SOCKET_PATH} bytes at most; use a directory with a shorter path`);
    await bind(server, made);
    chmodSync(made, mode);
    const identity = identityOf(lstatSync(made, { bigint: true }));
    renameSync(made, path);
    return own(server, path, identity);
  } catch (error) {
    server.close();
    throw error;
  } finally {
    rmSync(beside, { recursive: true, force: true });
  }
}

function own(server: Server, path: string, identity: string): OwnSocket {
  const isInPlace = (): boolean => {
    try {
      return identityOf(lstatSync(path, { bigint: true })) === identity;
    } catch {
      return false;
    }
  };
  return {
    path,
    identity,
    isInPlace,
    close() {
      // Node removes the path that was bound, which is not there any more.
      server.close();
      if (isInPlace()) unlinkSync(path);
    },
  };
}

function bind(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ path }, () => {
      server.off('error', reject);
      resolve();
    });
  });
}
