import { connect as http2Connect } from 'node:http2';
import { connect } from 'node:net';
import { status } from '@grpc/grpc-js';
import { LONGEST_TIMER_MS } from '../host/clock.ts';
import { errnoName } from '../host/fs/tree.ts';
import type { CallError } from './failure.ts';

/**
 * Connects, waits for the peer's first HTTP/2 frame and hangs up; undefined when it came. The gRPC library neither gives up
 * a handshake that hangs nor stops connecting for a channel that was closed after a failure: it would lose a descriptor each
 * time. And it keeps the errno to itself.
 */
export function tryHandshake(path: string, timeoutMs: number, signal: AbortSignal): Promise<CallError | undefined> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const session = http2Connect('http://localhost', { createConnection: () => socket });
    const end = (error?: CallError): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      session.destroy();
      socket.destroy();
      resolve(error);
    };
    const timer = setTimeout(
      () => end({ code: status.DEADLINE_EXCEEDED, details: 'no HTTP/2 settings' }),
      Math.min(timeoutMs, LONGEST_TIMER_MS),
    );
    const abort = (): void => end({ code: status.CANCELLED, details: 'given up' });
    signal.addEventListener('abort', abort);
    const unavailable = (error?: Error): void => end({ code: status.UNAVAILABLE, details: error?.message ?? 'closed', ...errnoOf(error) });
    session.on('error', unavailable);
    socket.on('error', unavailable);
    session.once('close', () => unavailable());
    session.once('remoteSettings', () => end());
  });
}

/** Only what the system says: errors of the HTTP/2 implementation are no errno. */
function errnoOf(error: Error | undefined): { errno?: string } {
  const name = errnoName(error);
  return error === undefined || !/^E[A-Z0-9]+$/.test(name) || name === 'EUNKNOWN' ? {} : { errno: name };
}
