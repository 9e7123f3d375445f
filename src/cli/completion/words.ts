import { createRegistry, type OptionEntry, type OptionSection, type Registry } from '../../config/registry.ts';
import type { CommandSpec, OwnOption } from '../command-spec.ts';

/** A flag as a shell completes it. */
export interface FlagWord {
  /** `--log.level` or `-o`. */
  readonly names: readonly string[];
  readonly help: string;
  readonly takesValue: boolean;
  /** Values that the shell offers; without them it offers files. */
  readonly values?: readonly string[];
}

export interface CommandWords {
  /** Words after `device-agent`. */
  readonly name: string;
  readonly summary: string;
  /** Flags of this command only. */
  readonly flags: readonly FlagWord[];
  /** Values of the word that may follow the command. */
  readonly values: readonly string[];
  /** That word is a file. */
  readonly isFile: boolean;
}

/** All that a shell completes. */
export interface Words {
  readonly commands: readonly CommandWords[];
  /** Flags of every command. */
  readonly flags: readonly FlagWord[];
}

/**
 * Derives everything from the declarations, so that a new command or option is completed without further work. `ofCommands`: the options of
 * single commands.
 */
export function wordsOf(specs: readonly CommandSpec[], registry: Registry, ofCommands: readonly OptionSection[]): Words {
  const own = new Set(ofCommands.map(({ path }) => path));
  const help: FlagWord = { names: ['--help'], help: 'Help for the command.', takesValue: false };
  const global = registry.entries.filter(({ section }) => !own.has(section.path));
  return { commands: specs.map((spec) => commandWords(spec, ofCommands)), flags: [...global.flatMap(entryWords), help] };
}

function commandWords(spec: CommandSpec, ofCommands: readonly OptionSection[]): CommandWords {
  const { name, summary, formats, options = [], argument, ownSection } = spec;
  const section = ofCommands.filter(({ path }) => path === ownSection?.path);
  const format: FlagWord[] =
    formats === undefined ? [] : [{ names: ['-o', '--output'], help: 'Form of the output.', takesValue: true, values: formats }];
  const flags = [...format, ...options.map(ownWords), ...createRegistry(section).entries.flatMap(entryWords)];
  return { name, summary, flags, values: argument?.choices ?? [], isFile: argument?.isFile === true };
}

/** `-w, --watch` is a switch; `--by <group>` takes a value. */
function ownWords({ flags, help, choices, usual }: OwnOption): FlagWord {
  const values = choices ?? usual;
  const names = flags.replace(/ [<[].*$/, '').split(', ');
  return { names, help, takesValue: flags.includes('<'), ...(values === undefined ? {} : { values }) };
}

function entryWords({ flag, negation, spec }: OptionEntry): FlagWord[] {
  if (negation !== undefined) return [flag, negation].map((name) => ({ names: [name], help: spec.help, takesValue: false }));
  return [{ names: [flag], help: spec.help, takesValue: true, ...(spec.choices === undefined ? {} : { values: spec.choices }) }];
}

/** Names of commands that only group others: `config`. Their words are the rest of the names. */
export function groupsOf(commands: readonly CommandWords[]): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const { name } of commands) {
    const [first = '', second] = name.split(' ');
    if (second !== undefined) groups.set(first, [...(groups.get(first) ?? []), second]);
  }
  return groups;
}

/** First words of all commands, each once. */
export const firstWords = (commands: readonly CommandWords[]): string[] => [
  ...new Set(commands.map(({ name }) => name.split(' ')[0] ?? '')),
];
