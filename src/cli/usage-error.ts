import { nearestHint } from '../config/nearest.ts';
import type { Registry } from '../config/registry.ts';
import { RETIRED_VALUES, retiredOptions } from '../config/retired-options.ts';
import { UserError } from '../errors.ts';
import { flagNames, fullName, type ParsingEnded } from './program.ts';

/** Converts commander's error to a user error; undefined when parsing ended because help was printed. */
export function usageError({ command, cause }: ParsingEnded, registry: Registry): UserError | undefined {
  if (cause.exitCode === 0) return undefined;
  const quoted = /'([^']*)'/.exec(cause.message)?.[1] ?? '';
  const inner = command.commands.map((one) => one.name());
  switch (cause.code) {
    case 'commander.unknownOption': {
      const flag = quoted.replace(/=.*$/s, '');
      const problem = retiredOptions(registry).get(flag.replace(/^--/, ''));
      if (problem !== undefined) return new UserError('flag-invalid', { flag, problem });
      const names = flagNames(command);
      if (names.includes(flag)) return new UserError('flag-invalid', { flag, problem: `takes no value${switchHint(flag, names)}` });
      return new UserError('flag-unknown', { flag, nearest: nearestHint(flag, names), command: fullName(command) });
    }
    case 'commander.unknownCommand':
      return new UserError('command-unknown', { command: `${fullName(command)} ${quoted}`, nearest: nearestHint(quoted, inner) });
    case 'commander.excessArguments': {
      const [word = ''] = command.args;
      if (inner.length === 0) break;
      return new UserError('command-unknown', { command: `${fullName(command)} ${word}`, nearest: nearestHint(word, inner) });
    }
    case 'commander.help': {
      const [word, asked] = command.args;
      if (word === 'help' && asked !== undefined)
        return new UserError('command-unknown', { command: `${fullName(command)} ${asked}`, nearest: nearestHint(asked, inner) });
      const problem = `"${fullName(command)}" needs a command: ${inner.join(', ')}`;
      return new UserError('usage-invalid', { problem, command: fullName(command) });
    }
  }
  const [, value = ''] = /argument '([^']*)' is invalid/.exec(cause.message) ?? [];
  const instead = Object.hasOwn(RETIRED_VALUES, value) ? ` ${RETIRED_VALUES[value]}` : '';
  return new UserError('usage-invalid', { problem: `${cause.message.replace(/^error: /, '')}${instead}`, command: fullName(command) });
}

/** Returns a hint for `--x=true` or `--x=false`. */
function switchHint(flag: string, names: readonly string[]): string {
  const on = flag.replace(/^--no-/, '--');
  const off = on.replace(/^--/, '--no-');
  return names.includes(on) && names.includes(off) ? `: write ${on} or ${off}` : '';
}
