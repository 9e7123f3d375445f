import { readFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { parseJson } from '../../host/documents/json.ts';
import { request as requestPlain } from '../../host/node-http.ts';
import { shortened } from '../../model/one-line.ts';
import type { PublishOptions } from './options.ts';

const BOUNDS = { mostBytes: 8 * 1024 * 1024, mostEntries: 200_000, mostDepth: 60 };

/** The log has no more of it. */
const MESSAGE_BYTES = 300;

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE';

/** Answer of the API server. */
export interface KubernetesAnswer {
  readonly status: number;
  /** Undefined when the answer is not JSON. */
  readonly body: unknown;
}

/** The API server answered nothing that can be used: the reason is the message. */
export class NoAnswer extends Error {
  constructor(message: string) {
    super(shortened(message, MESSAGE_BYTES));
  }
}

export interface Kubernetes {
  /** Sends one request. Rejects with {@link NoAnswer}. A status of an error is an answer. */
  call(method: Method, path: string, body?: object, contentType?: string): Promise<KubernetesAnswer>;
}

type Account = Pick<PublishOptions, 'api-server' | 'token-file' | 'ca-file'>;

/** Returns the address of the API server; undefined when nothing names one. */
export function serverAddress(given: string, environment: Readonly<Record<string, string | undefined>>): URL | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = environment;
  if (given !== '') return URL.canParse(given) ? new URL(given) : undefined;
  if (host === undefined || host === '') return undefined;
  return new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`);
}

/**
 * A client of a few requests. It reads token and certificate for each of them, because the kubelet renews both. One connection for each
 * request: there is one in some minutes. Node's `fetch` takes no certificate of an authority.
 */
export function kubernetesAt(server: URL, account: Account, patienceMs = 10_000): Kubernetes {
  return {
    async call(method, path, body, contentType = 'application/json') {
      const isSecure = server.protocol === 'https:';
      // Over plain HTTP everyone could read the token.
      const token = isSecure && account['token-file'] !== '' ? (await contentOf(account['token-file'])).trim() : '';
      const text = body === undefined ? undefined : JSON.stringify(body);
      const options = {
        method,
        agent: false,
        signal: AbortSignal.timeout(patienceMs),
        headers: {
          Accept: 'application/json',
          ...(token === '' ? {} : { Authorization: `Bearer ${token}` }),
          ...(text === undefined ? {} : { 'Content-Type': contentType, 'Content-Length': Buffer.byteLength(text) }),
        },
        ...(isSecure && account['ca-file'] !== '' ? { ca: await contentOf(account['ca-file']) } : {}),
      };
      const request = isSecure ? (await import('node:https')).request : requestPlain;
      return await new Promise((resolve, reject) => {
        const failed = ({ name, message }: Error): void =>
          reject(new NoAnswer(name === 'AbortError' ? `no answer within ${patienceMs / 1_000} s` : message));
        const sent = request(new URL(path, server), options, (response) => take(response, resolve, failed));
        sent.on('error', failed);
        sent.end(text);
      });
    },
  };
}

async function contentOf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new NoAnswer((error as Error).message);
  }
}

function take(response: IncomingMessage, resolve: (answer: KubernetesAnswer) => void, failed: (error: Error) => void): void {
  const parts: Buffer[] = [];
  let bytes = 0;
  response.on('data', (part: Buffer) => {
    bytes += part.length;
    parts.push(part);
    if (bytes > BOUNDS.mostBytes) response.destroy(new Error(`the answer has more than ${BOUNDS.mostBytes} bytes`));
  });
  response.on('error', failed);
  response.on('end', () => resolve({ status: response.statusCode ?? 0, body: parsed(Buffer.concat(parts).toString()) }));
}

function parsed(text: string): unknown {
  try {
    return parseJson(text, BOUNDS);
  } catch {
    return undefined;
  }
}
