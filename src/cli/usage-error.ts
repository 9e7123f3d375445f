import type { Command } from 'commander';
import { nearestHint } from '../config/nearest.ts';
import { UserError } from '../errors.ts';
import { flagNames, type ParsingEnded } from './program.ts';

/** What is wrong with a command line, in our own words; undefined when parsing only ended because help was printed. */
export function usageError({ command, cause }: ParsingEnded): UserError | undefined {
  if (cause.exitCode === 0) return undefined;
  const quoted = /'([^']*)'/.exec(cause.message)?.[1] ?? '';
  const inner = command.commands.map((one) => one.name());
  switch (cause.code) {
    case 'commander.unknownOption': {
      const flag = quoted.replace(/=.*$/s, '');
      return new UserError('flag-unknown', { flag, nearest: nearestHint(flag, flagNames(command)), command: fullName(command) });
    }
    case 'commander.unknownCommand':
      return new UserError('command-unknown', { command: `${fullName(command)} ${quoted}`, nearest: nearestHint(quoted, inner) });
    case 'commander.help':
      return new UserError('usage-invalid', { problem: `"${fullName(command)}" needs a command: ${inner.join(', ')}` });
    default:
      return new UserError('usage-invalid', { problem: cause.message.replace(/^error: /, '') });
  }
}

function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}
