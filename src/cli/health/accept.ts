import { request as requestOf } from 'node:http';
import { stateOptions } from '../../agent/options.ts';
import { UserError } from '../../errors.ts';
import { oneLine } from '../../model/one-line.ts';
import { ACCEPT_PATH, type AcceptRequest, type ControlAnswer, controlSocket } from '../../server/control/control-socket.ts';
import type { CommandContext, Ending } from '../context.ts';

const ANSWER_MS = 10_000;

/** Asks the running agent to end conditions that no reading can confirm. Only the user of the agent can open its socket. */
export async function runHealthAccept({ configuration, options, output }: CommandContext): Promise<Ending> {
  const { device, condition, why } = options;
  if (typeof device !== 'string') throw new UserError('flag-invalid', { flag: 'DEVICE', problem: 'is missing' });
  if (typeof why !== 'string' || why.trim() === '') throw new UserError('flag-invalid', { flag: '--why', problem: 'needs a text' });
  const { file } = configuration.section('state', stateOptions);
  if (file === '') throw new UserError('accept-refused', { problem: 'without --state.file the agent has no socket for it' });
  const answer = await ask(controlSocket(file), {
    do: 'accept',
    device,
    why: oneLine(why),
    ...(typeof condition === 'string' ? { condition } : {}),
  });
  if ('refused' in answer) throw new UserError('accept-refused', { problem: answer.refused });
  await output.write(`${oneLine(`${answer.device}: ${answer.accepted.join(', ')} accepted`)}\n`);
  return { status: 0 };
}

function ask(path: string, request: AcceptRequest): Promise<ControlAnswer> {
  return new Promise((resolve, reject) => {
    const failed = (problem: string): void => reject(new UserError('accept-refused', { problem }));
    const sent = requestOf({ socketPath: path, path: ACCEPT_PATH, method: 'POST', agent: false, timeout: ANSWER_MS }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => {
        text += part;
      });
      response.on('error', ({ message }) => failed(`${path}: ${message}`));
      response.on('end', () => {
        try {
          resolve(JSON.parse(text) as ControlAnswer);
        } catch {
          failed(`${path} is not the socket of an agent`);
        }
      });
    });
    sent.on('timeout', () => sent.destroy(new Error('the agent does not answer')));
    sent.on('error', ({ code, message }: NodeJS.ErrnoException) =>
      failed(code === 'ENOENT' || code === 'ECONNREFUSED' ? `no agent runs that uses ${path}` : `${path}: ${message}`),
    );
    sent.end(JSON.stringify(request));
  });
}
