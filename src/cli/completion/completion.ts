import { UserError } from '../../errors.ts';
import { commands } from '../commands.ts';
import type { CommandContext, Ending } from '../context.ts';
import { bashCompletion } from './bash.ts';
import { fishCompletion } from './fish.ts';
import { type Words, wordsOf } from './words.ts';
import { zshCompletion } from './zsh.ts';

const SHELLS: Readonly<Record<string, (words: Words) => string>> = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };

/** Prints the completion for one shell. */
export async function runCompletion({ registry, output, options }: CommandContext): Promise<Ending> {
  const { shell } = options;
  const write = typeof shell === 'string' && Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
  if (write === undefined) {
    const problem = `${shell === undefined ? 'a shell is needed' : `there is no completion for "${shell}"`}: ${Object.keys(SHELLS).join(', ')}`;
    throw new UserError('usage-invalid', { problem, command: 'device-agent completion' });
  }
  await output.write(write(wordsOf(commands, registry)));
  return { status: 0 };
}
