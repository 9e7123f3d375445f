import { stateOptions } from '../agent/options.ts';
import { UserError } from '../errors.ts';
import { parseDuration } from '../model/duration.ts';
import { oneLine } from '../model/one-line.ts';
import type { ReleaseAnswer } from '../model/release.ts';
import { ownSocket } from './agent-api.ts';
import { askControl } from './ask-control.ts';
import type { CommandContext, Ending } from './context.ts';

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
