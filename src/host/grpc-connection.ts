import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { Client, connectivityState, credentials, Metadata, status } from '@grpc/grpc-js';
import { defined } from '../model/defined.ts';
import type { ObservedRequest } from '../model/observation.ts';
import { LONGEST_TIMER_MS } from './clock.ts';
import { errnoName } from './fs/tree.ts';

/** Why a call failed, as a gRPC status. */
export interface CallError {
  readonly code: number;
  readonly details: string;
  /** Errno name of the failed connect; absent when the system gave none. */
  readonly errno?: string;
}

/** A unary method of the generated service definitions. */
export interface Method<Request, Answer> {
  readonly path: string;
  readonly requestSerialize: (value: Request) => Buffer;
  readonly responseDeserialize: (value: Buffer) => Answer;
}

/** Takes the bytes of each answer, before anything decodes them, and each failure. */
export type ObserveCall = (call: Pick<ObservedRequest, 'method' | 'answer' | 'error'>) => void;

export type CallResult<Answer> =
  | { readonly answer: Answer; readonly error?: undefined }
  | { readonly answer?: undefined; readonly error: CallError };

const GRPC_TYPE = 'application/grpc';
/** Begin of the details of a call that something else than a gRPC server answered. */
export const OTHER_TYPE = 'the answer has the type';
const notGrpc = (type: string): string => `${OTHER_TYPE} ${JSON.stringify(type.slice(0, 60))} and not ${GRPC_TYPE}`;

const CANCELLED: CallError = { code: status.CANCELLED, details: 'cancelled' };

/**
 * A connection to the gRPC server at a socket, opened on demand. After a failure the next call reconnects at once, without the
 * reconnect delay of the library.
 */
export class GrpcConnection {
  readonly #socket: string;
  readonly #maxMessageBytes: number;
  readonly #observe: ObserveCall | undefined;
  readonly #closing = new AbortController();
  #client: Client | undefined;

  /** `maxMessageBytes`: limit of an answer. */
  constructor(socket: string, maxMessageBytes = 4 * 2 ** 20, observe?: ObserveCall) {
    this.#socket = socket;
    this.#observe = observe;
    this.#maxMessageBytes = maxMessageBytes;
  }

  /** Calls a method. Calls must not overlap. */
  async call<Request, Answer>(method: Method<Request, Answer>, request: Request, timeoutMs: number): Promise<CallResult<Answer>> {
    const observe = this.#observe;
    if (observe === undefined) return await this.#call(method, request, timeoutMs);
    let answer: Uint8Array | undefined;
    const responseDeserialize = (bytes: Buffer): Answer => {
      answer = Uint8Array.from(bytes);
      return method.responseDeserialize(bytes);
    };
    const result = await this.#call({ ...method, responseDeserialize }, request, timeoutMs);
    observe({
      method: method.path,
      ...defined({ answer, error: result.error }),
    });
    return result;
  }

  async #call<Request, Answer>(
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
      let type = GRPC_TYPE;
      const answered = (failed: CallError | null, answer?: Answer): void => {
        if (failed === null) resolve({ answer: answer as Answer });
        else resolve({ error: type.startsWith(GRPC_TYPE) ? failed : { code: status.INTERNAL, details: notGrpc(type) } });
      };
      const call = client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, new Metadata(), { deadline }, answered);
      // The library decodes an answer of any type, and takes the first letters of a web page for the size of a message.
      call.on('metadata', (headers: Metadata) => {
        type = String(headers.get('content-type')[0] ?? '');
      });
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

  /** Cancels the call in progress. */
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
 * Connects, waits for the peer's HTTP/2 settings and disconnects. Returns undefined on success. The gRPC library never ends a handshake
 * that hangs, not even when its client is closed, so each one would leak a descriptor. The library also does not report the errno.
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

/** Only system errors have an errno; errors of the HTTP/2 implementation have none. */
function errnoOf(error: Error | undefined): { errno?: string } {
  const name = errnoName(error);
  return error === undefined || !/^E[A-Z0-9]+$/.test(name) || name === 'EUNKNOWN' ? {} : { errno: name };
}
