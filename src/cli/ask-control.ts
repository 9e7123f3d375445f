import { stateOptions } from '../agent/options.ts';
import { UserError } from '../errors.ts';
import { request as requestOf } from '../host/node-http.ts';
import { parseDuration } from '../model/duration.ts';
import { oneLine } from '../model/one-line.ts';
import type { ReleaseAnswer } from '../model/release.ts';
import type { AcceptAnswer } from '../server/control/control-socket.ts';
import { CONTROL_PATH, type ControlRequest } from '../server/control/control-socket.ts';
import { ownSocket } from './agent-api.ts';
import type { CommandContext, Ending } from './context.ts';

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

/** Asks the running agent to end conditions that no reading can confirm. Only the user of the agent can open its socket. */
export async function runHealthAccept({ configuration, options, output }: CommandContext): Promise<Ending> {
  const { device, condition, why } = options;
  if (typeof device !== 'string') throw new UserError('flag-invalid', { flag: 'DEVICE', problem: 'is missing' });
  if (typeof why !== 'string' || why.trim() === '') throw new UserError('flag-invalid', { flag: '--why', problem: 'needs a text' });
  const { file } = configuration.section('state', stateOptions);
  if (file === '') throw new UserError('accept-refused', { problem: 'without --state.file the agent has no socket for it' });
  const request = { do: 'accept' as const, device, why: oneLine(why), ...(typeof condition === 'string' ? { condition } : {}) };
  const answer = await askControl<AcceptAnswer>(await ownSocket(file), request, 'accept-refused');
  if (answer.refused !== undefined) throw new UserError('accept-refused', { problem: answer.refused });
  await output.write(`${oneLine(`${answer.device}: ${answer.accepted.join(', ')} accepted`)}\n`);
  return { status: 0 };
}

/** Asks the running agent to close the driver of a family for a time, or to open it again. */
export async function runRelease({ configuration, options, output }: CommandContext): Promise<Ending> {
  const { family, for: time, end, why } = options;
  if (typeof family !== 'string') throw new UserError('flag-invalid', { flag: 'FAMILY', problem: 'is missing' });
  const forMs = end === true ? 0 : typeof time === 'string' ? parseDuration(time) : undefined;
  if (forMs === undefined) throw new UserError('flag-invalid', { flag: '--for', problem: 'needs a time, such as 10m' });
  const { file } = configuration.section('state', stateOptions);
  if (file === '') throw new UserError('release-refused', { problem: 'without --state.file the agent has no socket for it' });
  const by = typeof why === 'string' && why.trim() !== '' ? `device-agent release (${oneLine(why)})` : 'device-agent release';
  const answer = await askControl<ReleaseAnswer>(await ownSocket(file), { do: 'release', family, forMs, by }, 'release-refused');
  if (answer.refused !== undefined) throw new UserError('release-refused', { problem: answer.refused });
  const { untilMs, hanging } = answer;
  const state = untilMs === undefined ? 'the agent uses the driver again' : `closed until ${new Date(untilMs).toISOString()}`;
  const calls = hanging === 0 ? '' : `; ${hanging} calls hang in the driver and keep it open until they return`;
  await output.write(`${oneLine(`${answer.family}: ${state}${calls}`)}\n`);
  return { status: hanging === 0 ? 0 : 1 };
}
