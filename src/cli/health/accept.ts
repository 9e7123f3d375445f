import { stateOptions } from '../../agent/options.ts';
import { UserError } from '../../errors.ts';
import { oneLine } from '../../model/one-line.ts';
import type { AcceptAnswer } from '../../server/control/control-socket.ts';
import { ownSocket } from '../agent-api.ts';
import { askControl } from '../ask-control.ts';
import type { CommandContext, Ending } from '../context.ts';

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
