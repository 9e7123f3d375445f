import { Channel, connectivityState, credentials, Metadata, type StatusObject, status } from '@grpc/grpc-js';
import type { CallError } from './failure.ts';
import { tryHandshake } from './handshake.ts';

/** A unary method as the generated service definitions give it. */
export interface Method<Request, Response> {
  readonly path: string;
  readonly requestSerialize: (value: Request) => Buffer;
  readonly responseDeserialize: (value: Buffer) => Response;
}

export type CallResult<Response> =
  | { readonly response: Response; readonly error?: undefined }
  | { readonly response?: undefined; readonly error: CallError };

/** After these nothing is wrong with the connection. */
const HARMLESS: ReadonlySet<number> = new Set([status.RESOURCE_EXHAUSTED, status.UNIMPLEMENTED, status.UNKNOWN]);

const CLOSED: CallError = { code: status.CANCELLED, details: 'closed' };
/** A channel that failed is dropped, never left to connect again by itself. */
const NEVER_MS = 2_147_483_647;

/**
 * One gRPC connection to one socket, made when needed. After a failure that may be the connection's fault it is made anew at
 * the next call, so that no back-off of the library stands between the socket's return and the next answer.
 */
export class Connection {
  readonly #path: string;
  readonly #maxMessageBytes: number;
  readonly #closing = new AbortController();
  /** Ways to call off what is under way: closing a channel leaves the calls on it waiting for their deadline. */
  readonly #pending = new Set<() => void>();
  #channel: Channel | undefined;

  constructor(path: string, maxMessageBytes: number) {
    this.#path = path;
    this.#maxMessageBytes = maxMessageBytes;
  }

  async call<Request, Response>(method: Method<Request, Response>, request: Request, timeoutMs: number): Promise<CallResult<Response>> {
    if (this.#closing.signal.aborted) return { error: CLOSED };
    const deadline = Date.now() + timeoutMs;
    if (!this.#isConnected()) {
      this.reset();
      const error = await tryHandshake(this.#path, timeoutMs, this.#closing.signal);
      if (error !== undefined) return { error };
    }
    if (this.#closing.signal.aborted) return { error: CLOSED };
    const channel = this.#open();
    const result = await unary(channel, method, request, deadline, this.#pending);
    if (result.error !== undefined && !HARMLESS.has(result.error.code) && channel === this.#channel) this.reset();
    return result;
  }

  /** The next call connects anew. */
  reset(): void {
    this.#channel?.close();
    this.#channel = undefined;
  }

  close(): void {
    this.#closing.abort();
    for (const cancel of [...this.#pending]) cancel();
    this.reset();
  }

  #isConnected(): boolean {
    return this.#channel?.getConnectivityState(false) === connectivityState.READY;
  }

  #open(): Channel {
    this.#channel ??= new Channel(`unix:${this.#path}`, credentials.createInsecure(), {
      'grpc.default_authority': 'localhost',
      'grpc.max_receive_message_length': this.#maxMessageBytes,
      'grpc.initial_reconnect_backoff_ms': NEVER_MS,
      'grpc.max_reconnect_backoff_ms': NEVER_MS,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_retries': 0,
      'grpc.enable_channelz': 0,
    });
    return this.#channel;
  }
}

/**
 * One call on the channel itself. The library's client puts three layers of interceptors, an emitter and a stack trace around
 * each call, of which nothing is used here; at one call in ten seconds all that code is cold.
 */
function unary<Request, Response>(
  channel: Channel,
  { path, requestSerialize, responseDeserialize }: Method<Request, Response>,
  request: Request,
  deadline: number,
  pending: Set<() => void>,
): Promise<CallResult<Response>> {
  return new Promise((resolve) => {
    const call = channel.createCall(path, deadline, null, null, null);
    const cancel = (): void => call.cancelWithStatus(status.CANCELLED, 'given up');
    pending.add(cancel);
    let message: Buffer | undefined;
    call.start(new Metadata(), {
      onReceiveMetadata: () => {},
      onReceiveMessage: (bytes: Buffer) => {
        message = bytes;
      },
      onReceiveStatus: (end) => {
        pending.delete(cancel);
        resolve(resultOf(end, message, responseDeserialize));
      },
    });
    call.startRead();
    call.sendMessageWithContext({}, requestSerialize(request));
    call.halfClose();
  });
}

function resultOf<Response>(
  { code, details }: StatusObject,
  message: Buffer | undefined,
  read: (value: Buffer) => Response,
): CallResult<Response> {
  if (code !== status.OK) return { error: { code, details } };
  if (message === undefined) return { error: { code: status.INTERNAL, details: 'no message' } };
  try {
    return { response: read(message) };
  } catch (error) {
    return { error: { code: status.INTERNAL, details: `not the message expected: ${(error as Error).message}` } };
  }
}
