import { Client, connectivityState, credentials, type ServiceError, status } from '@grpc/grpc-js';
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
  #client: Client | undefined;

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
    const client = this.#open();
    const result = await unary(client, method, request, deadline, this.#closing.signal);
    if (result.error !== undefined && !HARMLESS.has(result.error.code) && client === this.#client) this.reset();
    return result;
  }

  /** The next call connects anew. */
  reset(): void {
    this.#client?.close();
    this.#client = undefined;
  }

  close(): void {
    this.#closing.abort();
    this.reset();
  }

  #isConnected(): boolean {
    return this.#client?.getChannel().getConnectivityState(false) === connectivityState.READY;
  }

  #open(): Client {
    this.#client ??= new Client(`unix:${this.#path}`, credentials.createInsecure(), {
      'grpc.default_authority': 'localhost',
      'grpc.max_receive_message_length': this.#maxMessageBytes,
      'grpc.initial_reconnect_backoff_ms': NEVER_MS,
      'grpc.max_reconnect_backoff_ms': NEVER_MS,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_retries': 0,
      'grpc.enable_channelz': 0,
    });
    return this.#client;
  }
}

function unary<Request, Response>(
  client: Client,
  { path, requestSerialize, responseDeserialize }: Method<Request, Response>,
  request: Request,
  deadline: number,
  signal: AbortSignal,
): Promise<CallResult<Response>> {
  return new Promise((resolve) => {
    const answered = (error: ServiceError | null, response?: Response): void => {
      signal.removeEventListener('abort', abort);
      if (error !== null) resolve({ error: { code: error.code, details: error.details } });
      else if (response === undefined) resolve({ error: { code: status.INTERNAL, details: 'no message' } });
      else resolve({ response });
    };
    const call = client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, { deadline }, answered);
    // Closing a channel leaves the calls on it waiting for their deadline.
    const abort = (): void => call.cancel();
    signal.addEventListener('abort', abort);
  });
}
