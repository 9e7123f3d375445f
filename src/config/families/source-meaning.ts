import type { Declaration, DeclaredSource } from '../../probes/declared/declaration.ts';
import { isAllowed } from '../../probes/declared/glob.ts';
import { tokensOf } from '../../probes/kit/template.ts';
import { nearestHint } from '../nearest.ts';
import type { Path } from '../text-positions.ts';

const MOST_SEGMENTS = 12;
export const MOST_WILDCARDS = 3;

export type Say = (path: Path, message: string) => void;

export function checkCommandName({ commands = {} }: Declaration, name: string, at: Path, say: Say) {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) say(at, `there is no command "${name}"${nearestHint(name, Object.keys(commands))}`);
  return command;
}

export function checkTokens(template: string, words: ReadonlySet<string>, at: Path, say: Say): void {
  for (const token of tokensOf(template))
    if (!words.has(token)) say(at, `{${token}} has no value here; known are ${[...words].map((word) => `{${word}}`).join(', ')}`);
  if (/[{}]/.test(template.replace(/\{[A-Za-z0-9]+\}/g, ''))) say(at, 'a brace in a template belongs to a token such as {name}');
}

export interface SourceToCheck {
  readonly declaration: Declaration;
  readonly source: DeclaredSource;
  /** Words of the device that its paths may use. */
  readonly words: ReadonlySet<string>;
  /** Templates that use the wildcards of the file. */
  readonly labels?: Readonly<Record<string, string>>;
}

export function checkSource({ declaration, source, words, labels = {} }: SourceToCheck, at: Path, say: Say): void {
  const { file, entry, link, command, pointer, column, each, line, field, without, unit, map, scale } = source;
  const places = [file, entry, link, command].filter((place) => place !== undefined);
  if (places.length !== 1) say(at, 'it needs exactly one of "file", "entry", "link" and "command"');
  if (command !== undefined) {
    checkCommandName(declaration, command, [...at, 'command'], say);
    if ((pointer === undefined) === (column === undefined)) say(at, 'a command needs either "pointer" or "column"');
    const format = declaration.commands?.[command]?.format;
    if (format === 'csv' && pointer !== undefined) say([...at, 'pointer'], 'the output of this command is csv, which has columns');
    const { columns } = declaration.commands?.[command] ?? {};
    if (column !== undefined && columns !== undefined && !columns.includes(column))
      say([...at, 'column'], `there is no column "${column}"${nearestHint(column, columns)}`);
  } else if ((pointer ?? column) !== undefined) say(at, '"pointer" and "column" belong to a command');
  if (each !== undefined && (line ?? field) !== undefined) say(at, '"each" takes all lines, so "line" and "field" have no meaning');
  if (without !== undefined && each === undefined) say([...at, 'without'], '"without" belongs to "each"');
  if (scale === 0) say([...at, 'scale'], 'a scale of 0 loses the value');
  if (unit !== undefined && map !== undefined) say([...at, 'map'], 'a text has either a unit or a map');
  if (file !== undefined) checkFile(file, [...at, 'file'], say);
  if (entry !== undefined) checkGlob(entry, [...at, 'entry'], say);
  if (link !== undefined) checkGlob(link, [...at, 'link'], say);
  for (const [name, template] of Object.entries({ file, entry, link, pointer }))
    if (template !== undefined) checkTokens(template, words, [...at, name], say);
  if (source.as !== undefined) checkTokens(source.as, new Set([...words, 'value']), [...at, 'as'], say);
  for (const [name, template] of Object.entries(labels)) checkTokens(template, wordsOfSource(source), [...at, 'labels', name], say);
}

/** The words that a value of a source has: the wildcards of its file, and the key of its line. */
export function wordsOfSource({ file, entry, each }: DeclaredSource): ReadonlySet<string> {
  const captures = wildcardsOf(file ?? entry ?? '').map((_, n) => String(n + 1));
  return new Set([...captures, ...(each === undefined ? [] : ['key'])]);
}

function checkFile(file: string, at: Path, say: Say): void {
  if (!file.startsWith('/')) checkGlob(file, at, say);
  else if (file.startsWith('/sys/')) checkGlob(file.slice('/sys/'.length), at, say);
  else if (file.startsWith('/proc/driver/')) checkGlob(file.slice('/proc/'.length), at, say);
  else say(at, 'a file lies below the directory of the device, /sys/ or /proc/driver/');
}

export function checkGlob(glob: string, at: Path, say: Say): void {
  const segments = glob.split('/');
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..'))
    say(at, 'a path has no empty part, no "." and no ".."');
  else if (!isAllowed(glob)) say(at, 'this file must not be read: a read can change something, wake the device, or block');
  if (segments.length > MOST_SEGMENTS) say(at, `a path has ${MOST_SEGMENTS} parts at most`);
  if (segments.some((segment) => wildcardsOf(segment).length > MOST_WILDCARDS))
    say(at, `a part of a path has ${MOST_WILDCARDS} wildcards at most`);
  if (/[*#][*#]/.test(glob)) say(at, 'two wildcards need a text between them');
}

export const wildcardsOf = (glob: string): readonly string[] => glob.match(/[*#]/g) ?? [];
