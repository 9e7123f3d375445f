import { existsSync, unlinkSync } from 'node:fs';
import { type AddressInfo, connect, isIPv6, type Server } from 'node:net';
import { dirname } from 'node:path';
import { Server as TlsServer } from 'node:tls';
import { UserError } from '../../errors.ts';
import { LONGEST_SOCKET_PATH, socketAt } from '../../host/fs/socket-file.ts';

export type ListenAddress = { readonly host?: string; readonly port: number } | { readonly path: string };

/** Parses `:port`, `host:port`, `[ipv6]:port`, `unix:/path` or `/path`; undefined for other text. */
export function parseListenAddress(text: string): ListenAddress | undefined {
  const path = text.startsWith('unix:') ? text.slice('unix:'.length) : text;
  if (path.startsWith('/')) return { path };
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([^\s:[\]/]*)):(\d{1,5})$/.exec(text);
  if (match === null) return undefined;
  const [, ipv6, name, digits] = match;
  const port = Number(digits);
  if (port > 65_535 || (ipv6 !== undefined && !isIPv6(ipv6))) return undefined;
  const host = ipv6 ?? name;
  return host === undefined || host === '' ? { port } : { host, port };
}

/** Describes what an invalid address must be, as the text after the word "must"; undefined for a valid address. */
export function listenAddressProblem(text: string): string | undefined {
  const address = parseListenAddress(text);
  if (address === undefined) return 'be :port, host:port, [ipv6]:port or the path of a unix socket';
  if ('path' in address && Buffer.byteLength(address.path) > LONGEST_SOCKET_PATH)
    return `be a socket path of ${LONGEST_SOCKET_PATH} bytes at most`;
  return undefined;
}

type ListenFailure = (fields: { readonly address: string; readonly problem: string }, cause?: unknown) => UserError;

const listenFailure: ListenFailure = (fields, cause) => new UserError('listen-failed', fields, cause);

/**
 * Binds the server. Returns its address as URL or `unix:` path. Fails with what `failure` makes of the problem. Replaces a socket file that a
 * killed process left behind, but not one on which a process listens.
 */
export async function listen(server: Server, text: string, failure: ListenFailure = listenFailure): Promise<string> {
  const address = parseListenAddress(text);
  if (address === undefined) throw failure({ address: text, problem: 'it is neither host:port nor a path' });
  try {
    await bind(server, address).catch(async (error: NodeJS.ErrnoException) => {
      const isSocketFile = 'path' in address && error.code === 'EADDRINUSE' && socketAt(address.path).kind === 'socket';
      if (!isSocketFile || (await isAnswered(address.path))) throw error;
      unlinkSync(address.path);
      await bind(server, address);
    });
  } catch (error) {
    throw failure({ address: text, problem: describe(error as NodeJS.ErrnoException, address) }, error);
  }
  return reachableAt(server.address(), server instanceof TlsServer ? 'https' : 'http');
}

function bind(server: Server, address: ListenAddress): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(address, () => {
      server.off('error', reject);
      resolve();
    });
  });
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code !== 'ECONNREFUSED'));
  });
}

const NO_DIRECTORY = 'the directory does not exist';
const ERRNO_TEXTS: Readonly<Record<string, string>> = {
  EADDRINUSE: 'the address is already in use',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'this machine has no such address',
  ENOTFOUND: 'the host name is not known',
  ENOENT: NO_DIRECTORY,
  EROFS: 'the file system is read-only',
};

function describe(error: NodeJS.ErrnoException, address: ListenAddress): string {
  if ('path' in address) {
    // Binding to a path also fails with EACCES when the directory is absent.
    if (error.code === 'EACCES' && !existsSync(dirname(address.path))) return NO_DIRECTORY;
    if (error.code === 'EADDRINUSE' && socketAt(address.path).kind === 'not-a-socket') return 'the path holds a file that is not a socket';
  }
  return ERRNO_TEXTS[error.code ?? ''] ?? error.message;
}

function reachableAt(bound: AddressInfo | string | null, scheme: 'http' | 'https'): string {
  if (bound === null || typeof bound === 'string') return `unix:${bound ?? ''}`;
  const anywhere = bound.address === '::' || bound.address === '0.0.0.0';
  const host = anywhere ? 'localhost' : bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return `${scheme}://${host}:${bound.port}`;
}
