import type { Command } from 'commander';
import type { Registry } from '../config/registry.ts';

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
export function shortHelp(program: Command, registry: Registry): string {
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
export const commandRows = (program: Command): string =>
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
