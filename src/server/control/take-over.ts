import type { ClientRequest, IncomingMessage } from 'node:http';
import { parseJson } from '../../host/documents/json.ts';
import { request as requestOf } from '../../host/node-http.ts';
import { CONTROL_PATH, type ControlRequest, type TakeOverAnswer } from './control-socket.ts';

/** The older agent writes its last state before it answers, and waits up to five seconds for its disk. */
const ANSWER_MS = 12_000;
const LONGEST_ANSWER = 65_536;
const BOUNDS = { mostBytes: LONGEST_ANSWER, mostEntries: 100, mostDepth: 4 };
const REQUEST: ControlRequest = { do: 'take-over' };

export interface TakenOver {
  /** Identities of the sockets that this agent may replace. */
  readonly sockets: readonly string[];
  /** Gives everything back: this agent ends. */
  end(): void;
}

/**
 * Asks the agent that has the control socket to write its state a last time, and to leave state and sockets to this one. It has them back when
 * this process ends. Undefined when no agent answers or when it refuses; `problem` says why it refused.
 */
export function takeOver(path: string): Promise<TakenOver | { readonly problem: string } | undefined> {
  return new Promise((resolve) => {
    const options = { socketPath: path, path: CONTROL_PATH, method: 'POST', agent: false };
    const sent: ClientRequest = requestOf(options, (response: IncomingMessage) => {
      let text = '';
      response.on('error', () => resolve({ problem: 'the connection ended' }));
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
        const end = text.indexOf('\n');
        if (end < 0 && text.length <= LONGEST_ANSWER) return;
        clearTimeout(timer);
        const answer = answerIn(text.slice(0, Math.max(0, end)));
        if (answer?.refused !== undefined || answer === undefined) {
          sent.destroy();
          return resolve({ problem: answer?.refused ?? 'it does not know the request' });
        }
        // The connection alone must not keep the process alive.
        sent.socket?.unref();
        resolve({ sockets: answer.sockets, end: () => sent.destroy() });
      });
    });
    const timer = setTimeout(() => {
      sent.destroy();
      resolve({ problem: `it did not answer within ${ANSWER_MS / 1_000} s` });
    }, ANSWER_MS);
    sent.on('error', ({ code }: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      resolve(code === 'ENOENT' || code === 'ECONNREFUSED' ? undefined : { problem: code ?? 'the connection failed' });
    });
    sent.end(JSON.stringify(REQUEST));
  });
}

function answerIn(line: string): TakeOverAnswer | undefined {
  const value = parseJson(line, BOUNDS) as { readonly sockets?: unknown; readonly refused?: unknown } | null | undefined;
  if (typeof value?.refused === 'string') return { refused: value.refused };
  return Array.isArray(value?.sockets) ? { sockets: value.sockets.filter((one) => typeof one === 'string') } : undefined;
}
