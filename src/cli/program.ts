import { Command, type CommanderError, Help, Option } from 'commander';
import type { OptionEntry, Registry } from '../config/registry.ts';
import { toText } from '../config/values.ts';
import { UserError } from '../errors.ts';
import { fullHelp } from '../model/deprecation.ts';
import type { ArgumentSpec, CommandSpec, OwnOption } from './command-spec.ts';
import { commandGroups } from './commands.ts';

/** A called command with its options. */
export interface Invocation {
  readonly spec: CommandSpec;
  /** Text of each option that was set by a flag, keyed by option key. */
  readonly flags: ReadonlyMap<string, string | boolean>;
  readonly options: Readonly<Record<string, unknown>>;
}

const NOTES = `
Each flag has an environment variable (--log.level is DEVICE_AGENT_LOG_LEVEL) and a key in the
configuration file. Flags override the environment, which overrides the file. Data goes to stdout,
logs to stderr. Exit status: 0 ok, 1 findings or failure, 2 wrong usage or configuration.`;

export interface ProgramCalls {
  /** Called with the command of the command line. */
  invoke(invocation: Invocation): void;
  /** Called with the requested help text. */
  print(text: string): void;
}

/** Creates the commander program. Its parser throws {@link ParsingEnded} when there is no command to run. */
export function createProgram(registry: Registry, specs: readonly CommandSpec[], calls: ProgramCalls): Command {
  const program = new Command('device-agent').description(
    'Which pod holds which device, how that device is doing, and whether it is healthy: one agent per Kubernetes node.',
  );
  const ownSections = new Set(specs.map((spec) => spec.ownSection?.path));
  const global = registry.entries.filter((entry) => !ownSections.has(entry.section.path));
  program
    .configureHelp(helpSettings())
    .addHelpText('after', () => `${examplesText(specs.map(({ examples }) => examples[0] ?? ''))}\n${NOTES}`);
  for (const entry of global) addOption(program, entry);
  for (const spec of specs) {
    const command = addCommand(program, spec);
    const own = registry.entries.filter((entry) => spec.ownSection !== undefined && entry.section.path === spec.ownSection.path);
    for (const entry of own) addOption(command, entry);
    command.action(() => {
      const flags = new Map([...givenFlags(program, global), ...givenFlags(command, own)]);
      const given = Object.fromEntries(argumentsOf(spec).map(({ name }, n) => [name, command.args[n]]));
      calls.invoke({ spec, flags, options: { ...ownOptionsAbove(command), ...command.opts(), ...given } });
    });
  }
  redirectOutput(program, calls.print);
  return program;
}

/** Returns all flags of a command with aliases and negations, for the search of the nearest one. */
export function flagNames(command: Command | undefined): string[] {
  if (command === undefined) return [];
  return [
    ...command.options.flatMap(({ long, short }) => [long, short].filter((name) => name !== undefined && name !== null)),
    '--help',
    ...flagNames(command.parent ?? undefined),
  ];
}

function addCommand(program: Command, spec: CommandSpec): Command {
  const words = spec.name.split(' ');
  let parent = program;
  for (const word of words.slice(0, -1)) {
    parent = parent.commands.find((command) => command.name() === word) ?? parent.command(word).description(commandGroups[word] ?? '');
  }
  const command = parent.command(words.at(-1) as string).description(spec.summary);
  if (spec.formats !== undefined) {
    const [usual] = spec.formats;
    command.addOption(new Option('-o, --output <format>', 'Form of the output.').choices(spec.formats).default(usual));
  }
  for (const { name, help, isRequired } of argumentsOf(spec)) command.argument(isRequired === true ? `<${name}>` : `[${name}]`, help);
  for (const option of spec.options ?? []) command.addOption(ownOption(option));
  const notes = spec.notes === undefined ? '' : `\n${spec.notes}\n`;
  return command.addHelpText('after', () => `${examplesText(spec.examples)}\n${notes}${NOTES}`);
}

function ownOption({ flags, help, choices }: OwnOption): Option {
  const option = new Option(flags, help);
  return choices === undefined ? option : option.choices(choices);
}

const argumentsOf = ({ argument, secondArgument }: CommandSpec): readonly ArgumentSpec[] =>
  [argument, secondArgument].filter((each) => each !== undefined);

/** The parser gives an option to the first command that has it, so a command that follows another one finds its options there. */
function ownOptionsAbove(command: Command): Readonly<Record<string, unknown>> {
  const above = command.parent;
  if (above === null || above.parent === null) return {};
  const foreign = above.options.find(
    (option) => option.long?.includes('.') === true && above.getOptionValueSource(option.attributeName()) === 'cli',
  );
  if (foreign !== undefined) throw new UserError('flag-unknown', { flag: foreign.long ?? '', nearest: '', command: fullName(command) });
  return { ...ownOptionsAbove(above), ...above.opts() };
}

export function fullName(command: Command): string {
  return command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`;
}

function addOption(command: Command, entry: OptionEntry): void {
  const heading = `${entry.section.title}:`;
  const value = entry.negation === undefined ? ` <${entry.spec.kind === 'string' ? 'text' : entry.spec.kind}>` : '';
  const option = new Option(entry.flag + value, describe(entry)).helpGroup(heading);
  // A repeated flag extends a list; for other kinds the last value wins.
  if (entry.spec.kind === 'list')
    option.argParser((text, before: string | undefined) => (before === undefined ? text : `${before},${text}`));
  command.addOption(option);
  if (entry.negation !== undefined) command.addOption(new Option(entry.negation).helpGroup(heading).hideHelp());
}

function describe({ spec }: OptionEntry): string {
  const choices = spec.choices === undefined ? '' : ` One of ${spec.choices.join(', ')}.`;
  const usual = toText(spec, spec.default);
  return `${fullHelp(spec)}${choices} (default: ${usual === '' ? 'empty' : usual})`;
}

function givenFlags(command: Command, entries: readonly OptionEntry[]): [string, string | boolean][] {
  return entries.flatMap((entry): [string, string | boolean][] => {
    const name = new Option(entry.flag).attributeName();
    if (command.getOptionValueSource(name) !== 'cli') return [];
    return [[entry.key, command.getOptionValue(name) as string | boolean]];
  });
}

/** The help of each command also shows the options of its parent commands, under their headings. */
function helpSettings(): Partial<Help> {
  return {
    visibleOptions(command) {
      const own = Help.prototype.visibleOptions.call(this as Help, command);
      const above: Option[] = [];
      // A command between, such as `demo` of `demo fault`, has options of its own.
      for (let at = command.parent; at !== null; at = at.parent)
        if (at.parent === null) above.push(...at.options.filter(({ hidden }) => !hidden));
      return [...own, ...above];
    },
    optionTerm: (option) => (option.long?.includes('.') && option.isBoolean() ? option.flags.replace('--', '--[no-]') : option.flags),
  };
}

function examplesText(examples: readonly string[]): string {
  return `\nExamples:\n${examples.map((example) => `  $ ${example}`).join('\n')}`;
}

/** Suppresses commander's own error messages and passes help texts to `print`. */
function redirectOutput(command: Command, print: (text: string) => void): void {
  command.configureOutput({ writeOut: print, writeErr: () => {}, outputError: () => {} });
  command.exitOverride((error) => {
    throw new ParsingEnded(command, error);
  });
  for (const inner of command.commands) redirectOutput(inner, print);
}

/** Parsing ended early: help was printed, or the command line is wrong. */
export class ParsingEnded extends Error {
  readonly command: Command;
  override readonly cause: CommanderError;

  constructor(command: Command, cause: CommanderError) {
    super(cause.message);
    this.command = command;
    this.cause = cause;
  }
}
