import { makeSocket } from '../../../src/host/fs/own-socket.ts';
import { createFeedServer, type FeedProtocol, type FeedSocketLimits } from '../../../src/server/feed/feed-socket.ts';

/** Serves a protocol on a socket. Returns a function that ends everything. */
export async function serveFeedSocket(path: string, protocol: FeedProtocol, limits?: FeedSocketLimits): Promise<() => Promise<void>> {
  const server = createFeedServer(protocol, limits);
  const socket = await makeSocket(server.listener(), path, 0o600);
  return async () => {
    socket.close();
    await server.close();
  };
}
