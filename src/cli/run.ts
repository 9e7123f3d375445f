import { loadConfiguration } from '../config/configuration.ts';
import type { Environment } from '../config/environment.ts';
import { familyDirectory } from '../config/families/early-directory.ts';
import { readFamilyDirectory, withDeclared } from '../config/families/family-directory.ts';
import { createRegistry, type Registry } from '../config/registry.ts';
import { loadFamilies, optionSections } from '../config/sections.ts';
import { structuredParts } from '../config/structured.ts';
import { adoptLibraryLines, createLogger, type Logger } from '../log/logger.ts';
import { familyLoaders } from '../probes/families.ts';
import { commands } from './commands.ts';
import type { Ending } from './context.ts';
import { errorToExit } from './error-to-exit.ts';
import type { Output } from './output.ts';
import { ownSections } from './own-sections.ts';
import { createProgram, type Invocation, ParsingEnded, wantedHelp } from './program.ts';
import { checkMeaning, logSettings } from './settings.ts';
import { takeTurn } from './turn.ts';
import { usageError } from './usage-error.ts';

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
  const { spec, flags, options } = invocation;
  const own = ofCommands.filter(({ path }) => path === spec.ownSection?.path);
  const registry = createRegistry([...sections, ...own], structuredParts);
  const { configuration, unknownVariables } = await loadConfiguration(registry, environment, flags);
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
    environment,
    flags,
    families,
    declared: { directory, ...read },
    logger,
    output,
    options,
  });
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
    const wrong = error instanceof ParsingEnded ? usageError(error, registry) : error;
    if (wrong !== undefined) throw wrong;
  }
  return invocation === undefined ? { help } : { invocation, help };
}

function warnOfVariables(logger: Logger, unknown: readonly { readonly variable: string; readonly nearest?: string }[]): void {
  for (const { variable, nearest } of unknown) {
    logger.warn('unknown environment variable', { variable, ...(nearest === undefined ? {} : { nearest }) });
  }
}
