import { createServer, type Server, type Socket } from 'node:net';
import { errnoName } from '../fs/tree.ts';
import { FRAME_BYTES, putFrame } from './relay-frames.ts';
import type { LogSource } from './source.ts';

/** Each family and each command beside the agent has a connection. */
const MOST_CLIENTS = 64;
/** Size of an answer. More records wait in the kernel until the client asks again. */
const ANSWER_BYTES = 65_536;
/** The buffer in which each answer is built. */
const scratch = Buffer.allocUnsafe(ANSWER_BYTES + 2 * FRAME_BYTES);

/**
 * Passes the kernel log on. Each client has a log of its own from the oldest record on, and gets records only when it asks: one that is slow
 * loses those that the kernel overwrites, as a process that reads the device itself, and sees it by their numbers. `looked` is called with why
 * the log cannot be read, undefined when it can.
 */
export function relayServer(open: () => LogSource, looked: (errno: string | undefined) => void): Server {
  const server = createServer((socket) => serve(socket, open, looked));
  server.maxConnections = MOST_CLIENTS;
  return server;
}

function serve(socket: Socket, open: () => LogSource, looked: (errno: string | undefined) => void): void {
  let log: LogSource | undefined;
  const close = (): void => {
    log?.close();
    log = undefined;
  };
  const answer = (): Buffer => {
    let size = 0;
    try {
      log ??= open();
      let record = log.next();
      while (typeof record !== 'string') {
        size = putFrame(scratch, size, 'record', record);
        if (size >= ANSWER_BYTES) break;
        record = log.next();
      }
      looked(undefined);
      size = putFrame(scratch, size, record === 'end' ? 'end' : 'more');
    } catch (error) {
      close();
      looked(errnoName(error));
      size = putFrame(scratch, size, 'failed', Buffer.from(errnoName(error)));
    }
    return Buffer.from(scratch.subarray(0, size));
  };
  socket.on('data', () => {
    // Questions that arrive before the client took this answer get one answer together.
    socket.pause();
    socket.write(answer(), () => socket.resume());
  });
  // The client ended in the middle of an answer.
  socket.on('error', () => {});
  socket.on('close', close);
}
