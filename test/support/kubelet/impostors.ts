import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Session } from 'node:http2';
import { createServer, type Server, type Socket } from 'node:net';

/**
 * What can answer in the kubelet's place: `garbage` bytes, `silence` after accepting, `hang-up` at once, or half an answer and
 * then the connection's end.
 */
export type Impostor = 'garbage' | 'silence' | 'hang-up' | 'half-answer';

export interface ImpostorServer {
  readonly server: Server;
  /** Ends the listener and all connections. */
  end(): Promise<void>;
}

export function createImpostor(kind: Impostor): ImpostorServer {
  if (kind === 'half-answer') return halfAnswer();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.resume();
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    if (kind === 'garbage') socket.write('SSH-2.0-OpenSSH_9.2\r\n'.repeat(8));
    if (kind === 'hang-up') socket.destroy();
  });
  return { server, end: () => end(server, sockets) };
}

/** Proper HTTP/2 and the beginning of a gRPC message that announces far more bytes than follow. */
function halfAnswer(): ImpostorServer {
  const sessions = new Set<ServerHttp2Session>();
  const server: Http2Server = createHttp2Server();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => {});
    session.on('close', () => sessions.delete(session));
  });
  server.on('stream', (stream) => {
    stream.on('error', () => {});
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    stream.write(Buffer.from([0, 0, 0, 16, 0, 10, 8]), () => stream.session?.destroy());
  });
  return { server, end: () => end(server, sessions) };
}

function end(server: Server, open: Iterable<{ destroy(): unknown }>): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    for (const connection of open) connection.destroy();
  });
}
