import { get } from 'node:http';
import { parseListenAddress } from '../server/http/listen.ts';

/** node-problem-detector gives a plugin five seconds by default. A read without the agent may need the rest of that time. */
const ANSWER_MS = 2_000;
const LARGEST_ANSWER = 64 * 1024 * 1024;

export interface ApiAnswer {
  readonly status: number;
  /** Undefined when the answer is not JSON. */
  readonly body: unknown;
}

/** Asks the agent at an address. Returns undefined when no answer arrives in time. */
export function askAgent(listenAddress: string, path: string): Promise<ApiAnswer | undefined> {
  const address = parseListenAddress(listenAddress);
  if (address === undefined || ('port' in address && address.port === 0)) return Promise.resolve(undefined);
  const target = 'path' in address ? { socketPath: address.path } : { host: reachable(address.host), port: address.port };
  return new Promise((resolve) => {
    const request = get({ ...target, path, agent: false, signal: AbortSignal.timeout(ANSWER_MS) }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        if (text.length > LARGEST_ANSWER) request.destroy();
      });
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: parsed(text) }));
      response.on('error', () => resolve(undefined));
      response.on('close', () => resolve(undefined));
    });
    request.on('error', () => resolve(undefined));
  });
}

/** Converts the listening address to a host to connect to. */
function reachable(host: string | undefined): string {
  if (host === undefined || host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
