import { Client, connectivityState, credentials, type ServiceError, status } from '@grpc/grpc-js';
import type { CallError } from './failure.ts';

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

/**
 * One gRPC connection to one socket, made when needed. After a failure that may be the connection's fault it is made anew at
 * the next call, so that no back-off of the library stands between the socket's return and the next answer.
 */
export class Connection {
  readonly #path: string;
  readonly #maxMessageBytes: number;
  #client: Client | undefined;
  #closed = false;

  constructor(path: string, maxMessageBytes: number) {
    this.#path = path;
    this.#maxMessageBytes = maxMessageBytes;
  }

  async call<Request, Response>(method: Method<Request, Response>, request: Request, timeoutMs: number): Promise<CallResult<Response>> {
    if (this.#closed) return { error: { code: status.CANCELLED, details: 'closed' } };
    const client = this.#open();
    const result = await unary(client, method, request, timeoutMs);
    if (result.error !== undefined && !HARMLESS.has(result.error.code)) this.#drop(client);
    return result;
  }

  /** The next call connects anew. */
  reset(): void {
    this.#client?.close();
    this.#client = undefined;
  }

  close(): void {
    this.#closed = true;
    this.reset();
  }

  #open(): Client {
    this.#client ??= new Client(`unix:${this.#path}`, credentials.createInsecure(), {
      'grpc.default_authority': 'localhost',
      'grpc.max_receive_message_length': this.#maxMessageBytes,
      'grpc.initial_reconnect_backoff_ms': 100,
      'grpc.max_reconnect_backoff_ms': 1_000,
      'grpc.use_local_subchannel_pool': 1,
      'grpc.enable_retries': 0,
      'grpc.enable_channelz': 0,
    });
    return this.#client;
  }

  /** A connection that still waits for its peer's first word is kept: the library has no way to end it, and one is enough. */
  #drop(client: Client): void {
    if (client.getChannel().getConnectivityState(false) === connectivityState.CONNECTING) return;
    client.close();
    if (client === this.#client) this.#client = undefined;
  }
}

function unary<Request, Response>(
  client: Client,
  { path, requestSerialize, responseDeserialize }: Method<Request, Response>,
  request: Request,
  timeoutMs: number,
): Promise<CallResult<Response>> {
  return new Promise((resolve) => {
    const options = { deadline: Date.now() + timeoutMs };
    client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, options, (error: ServiceError | null, response) => {
      if (error !== null) resolve({ error });
      else if (response === undefined) resolve({ error: { code: status.INTERNAL, details: 'no message' } });
      else resolve({ response });
    });
  });
}
