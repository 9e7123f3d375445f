import { UserError } from '../../errors.ts';
import type { CommandSpec } from '../command-spec.ts';
import type { RunCommand } from '../context.ts';
import { ownSections } from '../own-sections.ts';
import { bashCompletion } from './bash.ts';
import { fishCompletion } from './fish.ts';
import { type Words, wordsOf } from './words.ts';
import { zshCompletion } from './zsh.ts';

const SHELLS: Readonly<Record<string, (words: Words) => string>> = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };

/** The command that prints the completion of these commands for one shell. */
export function completionOf(commands: readonly CommandSpec[]): RunCommand {
  return async ({ registry, output, options: { shell } }) => {
    const write = typeof shell === 'string' && Object.hasOwn(SHELLS, shell) ? SHELLS[shell] : undefined;
    if (write === undefined) {
      const problem = shell === undefined ? 'a shell is needed' : `there is no completion for "${shell}"`;
      const known = Object.keys(SHELLS).join(', ');
      throw new UserError('usage-invalid', { problem: `${problem}: ${known}`, command: 'device-agent completion' });
    }
    await output.write(write(wordsOf(commands, registry, await ownSections(commands))));
    return { status: 0 };
  };
}
