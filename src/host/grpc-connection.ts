import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { Client, connectivityState, credentials, Metadata, status } from '@grpc/grpc-js';
import { LONGEST_TIMER_MS } from './clock.ts';
import { errnoName } from './fs/tree.ts';

/** Why a call had no answer: a gRPC status. */
export interface CallError {
  readonly code: number;
  readonly details: string;
  /** Why connecting failed, where the system told. */
  readonly errno?: string;
}

/** A unary method as the generated service definitions give it. */
export interface Method<Request, Answer> {
  readonly path: string;
  readonly requestSerialize: (value: Request) => Buffer;
  readonly responseDeserialize: (value: Buffer) => Answer;
}

export type CallResult<Answer> =
  | { readonly answer: Answer; readonly error?: undefined }
  | { readonly answer?: undefined; readonly error: CallError };

const CANCELLED: CallError = { code: status.CANCELLED, details: 'given up' };

/**
 * A connection to the gRPC server at a socket, made when it is needed. After a failure the next call makes it anew, so that nobody
 * waits for the library to connect again.
 */
export class GrpcConnection {
  readonly #socket: string;
  readonly #maxMessageBytes: number;
  readonly #closing = new AbortController();
  #client: Client | undefined;

  /** `maxMessageBytes`: of an answer. */
  constructor(socket: string, maxMessageBytes = 4 * 2 ** 20) {
    this.#socket = socket;
    this.#maxMessageBytes = maxMessageBytes;
  }

  /** One at a time. */
  async call<Request, Answer>(
    { path, requestSerialize, responseDeserialize }: Method<Request, Answer>,
    request: Request,
    timeoutMs: number,
  ): Promise<CallResult<Answer>> {
    const { signal } = this.#closing;
    const deadline = Date.now() + timeoutMs;
    if (this.#client?.getChannel().getConnectivityState(false) !== connectivityState.READY) {
      this.reset();
      const error = await tryHandshake(this.#socket, timeoutMs, signal);
      if (error !== undefined) return { error };
    }
    const client = this.#open();
    let cancel = (): void => {};
    const result = await new Promise<CallResult<Answer>>((resolve) => {
      const answered = (failed: CallError | null, answer?: Answer): void =>
        resolve(failed === null ? { answer: answer as Answer } : { error: failed });
      const call = client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, new Metadata(), { deadline }, answered);
      cancel = () => call.cancel();
      signal.addEventListener('abort', cancel);
    });
    signal.removeEventListener('abort', cancel);
    if (result.error !== undefined) this.reset();
    return result;
  }

  /** The next call connects anew. */
  reset(): void {
    this.#client?.close();
    this.#client = undefined;
  }

  /** Calls off what is under way. */
  close(): void {
    this.#closing.abort();
    this.reset();
  }

  #open(): Client {
    this.#client ??= new Client(`unix:${this.#socket}`, credentials.createInsecure(), {
      'grpc.default_authority': 'localhost',
      'grpc.max_receive_message_length': this.#maxMessageBytes,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_retries': 0,
      'grpc.enable_channelz': 0,
    });
    return this.#client;
  }
}

/**
 * Connects, waits for the peer's first HTTP/2 frame and hangs up; undefined when it came. The gRPC library never gives up a
 * handshake that hangs, not even when its client is closed: it would lose a descriptor each time. And it keeps the errno to itself.
 */
function tryHandshake(path: string, timeoutMs: number, signal: AbortSignal): Promise<CallError | undefined> {
  if (signal.aborted) return Promise.resolve(CANCELLED);
  return new Promise((resolve) => {
    const socket = connect(path);
    const session = connectHttp2('http://localhost', { createConnection: () => socket });
    const end = (error?: CallError): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      session.destroy();
      socket.destroy();
      resolve(error);
    };
    const late = (): void => end({ code: status.DEADLINE_EXCEEDED, details: 'no HTTP/2 settings' });
    const timer = setTimeout(late, Math.min(timeoutMs, LONGEST_TIMER_MS));
    const abort = (): void => end(CANCELLED);
    signal.addEventListener('abort', abort);
    const unavailable = (error?: Error): void => end({ code: status.UNAVAILABLE, details: error?.message ?? 'closed', ...errnoOf(error) });
    session.on('error', unavailable);
    socket.on('error', unavailable);
    session.once('close', () => unavailable());
    session.once('remoteSettings', () => end(signal.aborted ? CANCELLED : undefined));
  });
}

/** Only what the system says: errors of the HTTP/2 implementation are no errno. */
function errnoOf(error: Error | undefined): { errno?: string } {
  const name = errnoName(error);
  return error === undefined || !/^E[A-Z0-9]+$/.test(name) || name === 'EUNKNOWN' ? {} : { errno: name };
}
