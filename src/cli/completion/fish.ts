import { type FlagWord, firstWords, groupsOf, type Words } from './words.ts';

/** The completion of fish: one line for each word. */
export function fishCompletion({ commands, flags }: Words): string {
  const summaries = new Map(commands.map(({ name, summary }) => [name, summary]));
  const groups = groupsOf(commands);
  const lines = [
    ...firstWords(commands).map((word) => line('__fish_use_subcommand', `-f -a ${quoted(word)}`, summaries.get(word) ?? '')),
    ...[...groups].flatMap(([group, inner]) =>
      inner.map((word) => {
        const condition = `__fish_seen_subcommand_from ${group}; and not __fish_seen_subcommand_from ${inner.join(' ')}`;
        return line(condition, `-f -a ${quoted(word)}`, summaries.get(`${group} ${word}`) ?? '');
      }),
    ),
    ...commands.flatMap(({ name, flags: own, values, isFile }) => [
      ...(isFile ? [line(seen(name), '-F', '')] : []),
      ...(values.length === 0 ? [] : [line(seen(name), `-f -a ${quoted(values.join(' '))}`, '')]),
      ...own.map((flag) => flagLine(seen(name), flag)),
    ]),
    ...flags.map((flag) => flagLine(undefined, flag)),
  ];
  return `# Completion of device-agent for fish.\ncomplete -c device-agent -f\n${lines.join('')}`;
}

const seen = (name: string): string =>
  name
    .split(' ')
    .map((word) => `__fish_seen_subcommand_from ${word}`)
    .join('; and ');

function flagLine(condition: string | undefined, { names, help, takesValue, values }: FlagWord): string {
  const named = names.map((name) => (name.startsWith('--') ? `-l ${quoted(name.slice(2))}` : `-s ${name.slice(1)}`)).join(' ');
  const value = values === undefined ? (takesValue ? ' -r -F' : '') : ` -x -a ${quoted(values.join(' '))}`;
  return line(condition, named + value, help);
}

function line(condition: string | undefined, what: string, help: string): string {
  const when = condition === undefined ? '' : ` -n ${quoted(condition)}`;
  return `complete -c device-agent${when} ${what}${help === '' ? '' : ` -d ${quoted(help)}`}\n`;
}

/** fish knows two escapes between single quotes. */
const quoted = (text: string): string => `'${text.replace(/\s+/g, ' ').replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
