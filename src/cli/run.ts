import { existsSync } from 'node:fs';
import { stateOptions } from '../agent/options.ts';
import { type Configuration, type Flags, loadConfiguration } from '../config/configuration.ts';
import type { Environment } from '../config/environment.ts';
import { familyDirectory } from '../config/families/early-directory.ts';
import { readFamilyDirectory, withDeclared } from '../config/families/family-directory.ts';
import { nearestHint } from '../config/nearest.ts';
import type { OptionSection } from '../config/registry.ts';
import { createRegistry, type Registry, variableOf } from '../config/registry.ts';
import { loadFamilies, optionSections } from '../config/sections.ts';
import { structuredParts } from '../config/structured.ts';
import { UserError } from '../errors.ts';
import { get } from '../host/node-http.ts';
import { adoptLibraryLines, createLogger, type Logger } from '../log/logger.ts';
import { defined } from '../model/defined.ts';
import { familyLoaders } from '../probes/families.ts';
import { controlSocket, TURN_PATH } from '../server/control/control-socket.ts';
import { isAnyForReading, ownSocket, stateFileOf } from './agent-api.ts';
import type { CommandSpec } from './command-spec.ts';
import { commands } from './commands.ts';
import type { CommandContext, Ending } from './context.ts';
import { errorToExit } from './error-to-exit.ts';
import type { Output } from './output.ts';
import { createProgram, flagNames, fullName, type Invocation, ParsingEnded, wantedHelp } from './program.ts';
import { checkMeaning, logSettings } from './settings.ts';

/** Runs one command line and resolves with the exit status. Prints a user error to stderr as one sentence with its remedy. */
export async function runCommandLine(args: readonly string[], environment: Environment, output: Output): Promise<Ending> {
  try {
    return await runChecked(args, environment, output);
  } catch (error) {
    const { text, status } = errorToExit(error, args);
    process.stderr.write(text);
    return { status };
  }
}

async function runChecked(given: readonly string[], environment: Environment, output: Output): Promise<Ending> {
  const { args, isAll } = wantedHelp(given);
  const directory = await familyDirectory(args, environment);
  const [ofProgram, read] = await Promise.all([loadFamilies(familyLoaders), readFamilyDirectory(directory)]);
  const families = read.families.length === 0 ? ofProgram : withDeclared(ofProgram, read.families, directory.path);
  const sections = optionSections(families);
  const ofCommands = await ownSections(commands.filter(({ name }) => args.includes(name)));
  const { invocation, help } = parse(createRegistry([...sections, ...ofCommands], structuredParts), args, isAll);
  if (invocation === undefined) {
    await output.write(help);
    return { status: 0 };
  }
  const { spec, options } = invocation;
  const own = ofCommands.filter(({ path }) => path === spec.ownSection?.path);
  const registry = createRegistry([...sections, ...own], structuredParts);
  const used = spec.hasOwnFile === true ? { ...environment, [variableOf('config.file')]: undefined } : environment;
  const asGiven = await loadConfiguration(registry, used, invocation.flags);
  const flags = await flagsForDemo(invocation, asGiven.configuration, used);
  const { configuration, unknownVariables } = flags === invocation.flags ? asGiven : await loadConfiguration(registry, used, flags);
  const logger = createLogger(logSettings(configuration));
  adoptLibraryLines(logger);
  checkMeaning(configuration, families);
  warnOfVariables(logger, unknownVariables);
  for (const { message, remedy } of read.leftOut)
    logger.warn('a declaration that others can change is left out', { problem: message, remedy });
  if (spec.readsDevices?.(options) === true) await takeTurn({ configuration, flags });
  const run = await spec.load();
  return await run({
    configuration,
    registry,
    environment: used,
    flags,
    families,
    declared: { directory, ...read },
    logger,
    output,
    options,
  });
}

/** The command asks the running demo of this user if no option names an agent and no agent runs here. */
async function flagsForDemo({ spec, flags, options }: Invocation, configuration: Configuration, environment: Environment): Promise<Flags> {
  const isDefault = (key: string): boolean => configuration.setting(key).origin.from === 'default';
  const isAsked = spec.knowsDemo !== true || options.read === true || options.npd !== undefined || isAnyForReading(flags);
  const { file } = configuration.section('state', stateOptions);
  if (isAsked || !['state.file', 'path.sysfs', 'web.listen-address'].every(isDefault) || existsSync(controlSocket(file))) return flags;
  const { stateFileOfDemo } = await import('./demo/running-demos.ts');
  const found = stateFileOfDemo(environment);
  if (found === undefined) return flags;
  process.stderr.write(`asked the demo ${found.demo.pid} at ${found.demo.address}\n`);
  return new Map([...flags, ['state.file', found.file]]);
}

function parse(registry: Registry, args: readonly string[], isAll: boolean): { readonly invocation?: Invocation; readonly help: string } {
  let invocation: Invocation | undefined;
  let help = '';
  const program = createProgram(
    registry,
    commands,
    {
      invoke: (given) => {
        invocation = given;
      },
      print: (text) => {
        help += text;
      },
    },
    isAll,
  );
  try {
    program.parse(args, { from: 'user' });
  } catch (error) {
    const wrong = error instanceof ParsingEnded ? usageError(error) : error;
    if (wrong !== undefined) throw wrong;
  }
  return invocation === undefined ? { help } : { invocation, help };
}

function warnOfVariables(logger: Logger, unknown: readonly { readonly variable: string; readonly nearest?: string }[]): void {
  for (const { variable, nearest } of unknown) {
    logger.warn('unknown environment variable', { variable, ...defined({ nearest }) });
  }
}

/** Converts commander's error to a user error; undefined when parsing ended because help was printed. */
function usageError({ command, cause }: ParsingEnded): UserError | undefined {
  if (cause.exitCode === 0) return undefined;
  const quoted = /'([^']*)'/.exec(cause.message)?.[1] ?? '';
  const inner = command.commands.map((one) => one.name());
  switch (cause.code) {
    case 'commander.unknownOption': {
      const flag = quoted.replace(/=.*$/s, '');
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
  return new UserError('usage-invalid', { problem: cause.message.replace(/^error: /, ''), command: fullName(command) });
}

/** Returns a hint for `--x=true` or `--x=false`. */
function switchHint(flag: string, names: readonly string[]): string {
  const on = flag.replace(/^--no-/, '--');
  const off = on.replace(/^--/, '--no-');
  return names.includes(on) && names.includes(off) ? `: write ${on} or ${off}` : '';
}

/** Loads the option sections that belong to single commands. They cannot be set in the file. */
async function ownSections(specs: readonly CommandSpec[]): Promise<readonly OptionSection[]> {
  return await Promise.all(specs.flatMap(({ ownSection }) => (ownSection === undefined ? [] : [ownSection.load()])));
}

/** An agent that hangs must not hold up the commands that find out why. */
const HEAD_MS = 2_000;
/** A wait that is shorter is not worth a word. */
const UNTOLD_MS = 300;
/** Long enough for a capture and a doctor. */
const LONGEST_WAIT_MS = 60_000;

const WAITING = 'another command reads the devices beside the agent; this one waits, because both need memory of the same container\n';
const ENOUGH = `it has waited ${LONGEST_WAIT_MS / 1_000} s and goes on; when memory is short, the kernel ends one of the two (exit status 137)\n`;
const MANY = 'many commands read the devices beside the agent; when memory is short, the kernel ends one of them (exit status 137)\n';

/**
 * Waits until no other command reads the devices beside the agent, one minute at most. The turn lasts until this process ends. Without an agent
 * there is none. Never rejects.
 */
async function takeTurn(
  context: Pick<CommandContext, 'configuration' | 'flags'>,
  tell: (text: string) => void = (text) => void process.stderr.write(text),
): Promise<void> {
  const file = stateFileOf(context);
  const socketPath = file === undefined ? undefined : await ownSocket(file).catch(() => undefined);
  if (socketPath === undefined) return;
  await new Promise<void>((resolve) => {
    let timers: NodeJS.Timeout[] = [];
    const done = (text?: string): void => {
      timers.forEach(clearTimeout);
      // The connection alone must not keep the process alive.
      sent.socket?.unref();
      if (text !== undefined) tell(text);
      resolve();
    };
    const sent = get({ socketPath, path: TURN_PATH, agent: false }, (response) => {
      timers.forEach(clearTimeout);
      if (response.statusCode === 503) return done(MANY);
      timers = [setTimeout(tell, UNTOLD_MS, WAITING), setTimeout(done, LONGEST_WAIT_MS, ENOUGH)];
      for (const event of ['data', 'close', 'error']) response.once(event, () => done());
    });
    sent.once('error', () => done());
    timers = [setTimeout(done, HEAD_MS)];
  });
}
