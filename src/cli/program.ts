import { Command, type CommanderError, Help, Option } from 'commander';
import type { OptionEntry, Registry } from '../config/registry.ts';
import { toText } from '../config/values.ts';
import { UserError } from '../errors.ts';
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

const ALL = '--help-all';
const OF_ALL = `
"device-agent ${ALL}" shows the options that all commands have.`;

export interface ProgramCalls {
  /** Called with the command of the command line. */
  invoke(invocation: Invocation): void;
  /** Called with the requested help text. */
  print(text: string): void;
}

/** Whether a command line asks for the help with all options, and the command line that asks for help. */
export function wantedHelp(args: readonly string[]): { readonly isAll: boolean; readonly args: readonly string[] } {
  return { isAll: args.includes(ALL), args: args.map((arg) => (arg === ALL ? '--help' : arg)) };
}

/**
 * Creates the commander program. Its parser throws {@link ParsingEnded} when there is no command to run. `isAll`: its help has all options.
 */
export function createProgram(registry: Registry, specs: readonly CommandSpec[], calls: ProgramCalls, isAll = false): Command {
  const program = new Command('device-agent').description(
    'Which pod holds which device, how that device is doing, and whether it is healthy: one agent per Kubernetes node.',
  );
  const ownSections = new Set(specs.map((spec) => spec.ownSection?.path));
  const global = registry.entries.filter((entry) => !ownSections.has(entry.section.path));
  program
    .configureHelp(helpSettings(isAll, registry))
    .addHelpText('after', () => (isAll ? `${examplesText(specs.map(({ examples }) => examples[0] ?? ''))}\n${NOTES}` : ''));
  for (const entry of global) addOption(program, entry);
  for (const spec of specs) {
    const command = addCommand(program, spec, isAll ? NOTES : OF_ALL);
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
    ALL,
    ...flagNames(command.parent ?? undefined),
  ];
}

function addCommand(program: Command, spec: CommandSpec, end: string): Command {
  const words = spec.name.split(' ');
  let parent = program;
  for (const word of words.slice(0, -1)) {
    parent = parent.commands.find((command) => command.name() === word) ?? parent.command(word).description(commandGroups[word] ?? '');
  }
  const command = parent.command(words.at(-1) as string).description(spec.summary);
  if (spec.formats !== undefined) {
    const [usual] = spec.formats;
    const form = new Option('-o, --output <format>', 'Form of the output.').choices(spec.formats);
    command.addOption(spec.isTextOnTerminal === true ? form : form.default(usual));
  }
  for (const { name, help, isRequired } of argumentsOf(spec)) command.argument(isRequired === true ? `<${name}>` : `[${name}]`, help);
  for (const option of spec.options ?? []) command.addOption(ownOption(option));
  const notes = spec.notes === undefined ? '' : `\n${spec.notes}\n`;
  return command.addHelpText('after', () => `${examplesText(spec.examples)}\n${notes}${end}`);
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
  return `${spec.help}${choices} (default: ${usual === '' ? 'empty' : usual})`;
}

function givenFlags(command: Command, entries: readonly OptionEntry[]): [string, string | boolean][] {
  return entries.flatMap((entry): [string, string | boolean][] => {
    const name = new Option(entry.flag).attributeName();
    if (command.getOptionValueSource(name) !== 'cli') return [];
    return [[entry.key, command.getOptionValue(name) as string | boolean]];
  });
}

/** Commands come first. The help that asks for all has the options of all commands, under their headings. */
function helpSettings(isAll: boolean, registry: Registry): Partial<Help> {
  return {
    formatHelp(command, helper) {
      if (command.parent === null && !isAll) return shortHelp(command, registry);
      const text = Help.prototype.formatHelp.call(this as Help, command, helper);
      if (command.parent !== null) return text;
      const [usage, about, ...options] = text.split('\n\n');
      return [usage, about, commandRows(command).trimEnd(), ...options].join('\n\n');
    },
    visibleCommands(command) {
      return command.parent === null ? [] : Help.prototype.visibleCommands.call(this as Help, command);
    },
    visibleOptions(command) {
      const own = Help.prototype.visibleOptions.call(this as Help, command);
      if (!isAll) return own;
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

/** The options that `device-agent --help` shows. */
const USUAL: readonly string[] = [
  'config.file',
  'web.listen-address',
  'web.config.file',
  'refresh.interval',
  'device.exclude',
  'family.dir',
  'podresources.socket',
  'state.file',
  'log.level',
];
const WIDTH = 80;

/** The help of the program: its commands, the options that matter to most, and where the others are. */
function shortHelp(program: Command, registry: Registry): string {
  const options = USUAL.map((key) => registry.byKey(key)).map(({ flag, spec }): Row => [`${flag} <${spec.kind}>`, spec.help]);
  const others: readonly Row[] = [
    ['--no-probe.<family>', 'Do not read the devices of a family.'],
    ['-h, --help', 'Show this help, after a command its own.'],
    ['--help-all', 'Show all options, after a command also its own.'],
  ];
  return `Usage: ${program.name()} <command> [options]

${wrapped(program.description())}

${commandRows(program)}
Options:
${rows([...options, ...others])}`;
}

/** The commands, one in each line, below their heading. */
const commandRows = (program: Command): string =>
  `Commands:\n${rows(program.commands.map((command): Row => [command.name(), command.description()]))}`;

type Row = readonly [term: string, text: string];

function rows(all: readonly Row[]): string {
  const column = Math.max(...all.map(([term]) => term.length)) + 4;
  return all.map(([term, text]) => `  ${term.padEnd(column - 2)}${brief(text, WIDTH - column)}\n`).join('');
}

/** The first statement of a text, without its last parts where it is too long for the line. */
function brief(text: string, most: number): string {
  let [first = ''] = text.split(/[.:;](?: |$)/);
  while (first.length > most && /, | and /.test(first)) first = first.replace(/(?:, | and )(?!.*(?:, | and )).*$/, '');
  return first;
}

const wrapped = (text: string): string => text.replace(new RegExp(`(.{1,${WIDTH}})(?: |$)`, 'g'), '$1\n').trimEnd();
