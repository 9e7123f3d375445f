import { type ClientHttp2Session, connect } from 'node:http2';
import { connect as connectSocket } from 'node:net';
import { RegisterRequest, RegistrationService } from '../generated/deviceplugin/v1beta1/api.ts';
import type { Clock } from '../host/clock.ts';

/** How a call of `Register` ended. The message of a refusal is the kubelet's own. */
export type RegisterResult =
  | { readonly kind: 'ok' }
  | { readonly kind: 'refused' | 'unreachable' | 'timeout' | 'cancelled'; readonly message: string };

export interface PendingCall {
  readonly result: Promise<RegisterResult>;
  cancel(): void;
}

/**
 * Calls `Register` over a connection of its own. Not through grpc-js's client, which can neither end a connection whose peer accepted
 * and says nothing, nor connect at once after a failure; against a kubelet that hangs, both would add up.
 */
export function callRegister(socketPath: string, request: RegisterRequest, timeoutMs: number, clock: Clock): PendingCall {
  const session = connect('http://localhost', { createConnection: () => connectSocket(socketPath) });
  let finish: (result: RegisterResult) => void = () => {};
  const result = new Promise<RegisterResult>((resolve) => {
    finish = resolve;
  });
  const end = (ended: RegisterResult): void => {
    cancelTimer();
    finish(ended);
    session.destroy();
  };
  const cancelTimer = clock.after(timeoutMs, () => end({ kind: 'timeout', message: `no answer within ${timeoutMs / 1_000} s` }));
  session.on('error', (error) => end({ kind: 'unreachable', message: error.message }));
  session.on('close', () => end({ kind: 'unreachable', message: 'the connection ended without an answer' }));
  ask(session, request, end);
  return { result, cancel: () => end({ kind: 'cancelled', message: 'called off' }) };
}

function ask(session: ClientHttp2Session, request: RegisterRequest, end: (result: RegisterResult) => void): void {
  const call = session.request({
    ':method': 'POST',
    ':path': RegistrationService.register.path,
    ':authority': 'localhost',
    'content-type': 'application/grpc',
    te: 'trailers',
  });
  let code: string | undefined;
  let message = '';
  const note = (headers: Readonly<Record<string, unknown>>): void => {
    if (headers['grpc-status'] !== undefined) code = String(headers['grpc-status']);
    if (headers['grpc-message'] !== undefined) message = decodeMessage(String(headers['grpc-message']));
  };
  call.on('response', note);
  call.on('trailers', note);
  call.on('error', (error) => end({ kind: 'unreachable', message: error.message }));
  call.on('close', () => {
    if (code === '0') end({ kind: 'ok' });
    else if (code === undefined) end({ kind: 'unreachable', message: 'the call ended without a status' });
    else end({ kind: 'refused', message: message === '' ? `gRPC status ${code}` : message });
  });
  call.resume();
  call.end(frame(RegisterRequest.encode(request).finish()));
}

/** A gRPC message: not compressed, length, bytes. */
function frame(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

function decodeMessage(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
