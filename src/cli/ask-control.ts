import { UserError } from '../errors.ts';
import { request as requestOf } from '../host/node-http.ts';
import { CONTROL_PATH, type ControlRequest } from '../server/control/control-socket.ts';

const ANSWER_MS = 30_000;

/**
 * Sends a request to the control socket of the running agent. Only the user of the agent can open this socket. `code`: the error when no
 * agent answers.
 */
export function askControl<T extends object>(
  path: string,
  request: ControlRequest,
  code: 'accept-refused' | 'release-refused',
): Promise<T> {
  return new Promise((resolve, reject) => {
    const failed = (problem: string): void => reject(new UserError(code, { problem }));
    const sent = requestOf({ socketPath: path, path: CONTROL_PATH, method: 'POST', agent: false, timeout: ANSWER_MS }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('error', ({ message }) => failed(`${path}: ${message}`));
      response.on('end', () => {
        try {
          resolve(JSON.parse(text) as T);
        } catch {
          failed(`${path} is not the socket of an agent`);
        }
      });
    });
    sent.on('timeout', () => sent.destroy(new Error('the agent does not answer')));
    sent.on('error', ({ code: errno, message }: NodeJS.ErrnoException) =>
      failed(errno === 'ENOENT' || errno === 'ECONNREFUSED' ? `no agent runs that uses ${path}` : `${path}: ${message}`),
    );
    sent.end(JSON.stringify(request));
  });
}
