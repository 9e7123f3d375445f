import { parseDuration } from '../../model/duration.ts';
import { isAllowed } from '../../probes/declared/allowed-path.ts';
import { type Declaration, type DeclaredDevices, type DeclaredSource, type Fact, JUDGES } from '../../probes/declared/declaration.ts';
import { isWild } from '../../probes/declared/glob.ts';
import { tokensOf } from '../../probes/declared/template.ts';
import { nearestHint } from '../nearest.ts';
import type { SchemaProblem } from '../schema-check.ts';
import type { Path } from '../text-positions.ts';
import { readingProblems } from './reading-meaning.ts';

/** Longest time that a declaration may give. */
const MOST_MS = 30 * 86_400_000;
const MOST_SEGMENTS = 12;
const MOST_WILDCARDS = 3;
/** Words that every place gives, and those that only a command or a PCI address gives. */
const DEVICE_WORDS = ['name', 'pci', 'pciAddress'] as const;

export type Say = (path: Path, message: string) => void;

/** What is wrong with a declaration that its schema accepts, each with its place. `taken`: names of metrics that the agent itself has. */
export function meaningProblems(declaration: Declaration, taken: ReadonlySet<string>): readonly SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  const say: Say = (path, message) => void problems.push({ path, atKey: false, message });
  checkCommands(declaration, say);
  declaration.devices.forEach((devices, n) => {
    checkDevices(declaration, devices, ['devices', n], say);
  });
  const kinds = declaration.devices.map(({ kind }) => kind);
  const parts = [
    ['readings', declaration.readings],
    ['conditions', declaration.conditions],
    ['resources', declaration.resources],
  ] as const;
  for (const [part, list] of parts)
    list?.forEach((item, n) => {
      for (const [at, kind] of (item.kinds ?? []).entries())
        if (!kinds.includes(kind))
          say([part, n, 'kinds', at], `there is no kind "${kind}", only ${kinds.join(', ')}${nearestHint(kind, kinds)}`);
    });
  problems.push(...readingProblems(declaration, taken));
  for (const [n, reading] of (declaration.readings ?? []).entries()) checkSource(declaration, reading, ['readings', n], say, reading);
  checkConditions(declaration, say);
  checkTimes(declaration, [], say);
  return problems;
}

function checkCommands({ commands = {} }: Declaration, say: Say): void {
  for (const [name, { format, rows, columns, separator, path, timeout }] of Object.entries(commands)) {
    if (path.split('/').includes('..')) say(['commands', name, 'path'], 'the path of a program has no ".."');
    if (format === 'json' && (columns ?? separator) !== undefined)
      say(['commands', name], 'columns and separator belong to the format csv');
    if (format === 'csv' && rows !== undefined) say(['commands', name, 'rows'], 'rows belongs to the format json');
    if ((parseDuration(timeout ?? '0') ?? 0) > 8_000) say(['commands', name, 'timeout'], 'a run takes 8s at most');
  }
}

function checkDevices(declaration: Declaration, devices: DeclaredDevices, at: Path, say: Say): void {
  const { find, id, aliases = [], parent, facts = {}, nodes = [], rows = {} } = devices;
  if (find.sysfs !== undefined) {
    checkGlob(find.sysfs, [...at, 'find', 'sysfs'], say);
    if (isWild(find.sysfs.split('/')[0] ?? '')) say([...at, 'find', 'sysfs'], 'the first part of the place has no wildcard');
  }
  if (find.command !== undefined) checkCommandName(declaration, find.command, [...at, 'find', 'command'], say);
  const captures = wildcardsOf(find.sysfs ?? '');
  const own = [...DEVICE_WORDS, ...Object.keys(facts)];
  const words = new Set([...own, ...captures.map((_, n) => String(n + 1))]);
  const check = (fact: Fact, path: Path, more: readonly string[] = []): void => {
    if (typeof fact === 'string') checkTokens(fact, new Set([...words, ...more]), path, say);
    else checkSource(declaration, fact, path, say);
  };
  for (const [name, fact] of Object.entries(facts)) if (fact !== undefined) check(fact, [...at, 'facts', name]);
  check(id, [...at, 'id']);
  for (const [n, alias] of aliases.entries()) check(alias, [...at, 'aliases', n], ['id']);
  if (parent !== undefined) check(parent, [...at, 'parent'], ['id']);
  nodes.forEach((node, n) => {
    const path = [...at, 'nodes', n];
    if (!/^\/dev\/[\w./@:{}-]+$/.test(node) || node.includes('..')) say(path, 'a device node is a path below /dev/');
    checkTokens(node, new Set([...words, 'id']), path, say);
  });
  for (const [name, template] of Object.entries(rows)) {
    const command = checkCommandName(declaration, name, [...at, 'rows', name], say);
    if (command !== undefined && command.key === undefined)
      say([...at, 'rows', name], `the command "${name}" needs "key", the cell that names the device`);
    checkTokens(template, words, [...at, 'rows', name], say);
  }
}

function checkCommandName({ commands = {} }: Declaration, name: string, at: Path, say: Say) {
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (command === undefined) say(at, `there is no command "${name}"${nearestHint(name, Object.keys(commands))}`);
  return command;
}

function checkTokens(template: string, words: ReadonlySet<string>, at: Path, say: Say): void {
  for (const token of tokensOf(template))
    if (!words.has(token)) say(at, `{${token}} has no value here; known are ${[...words].map((word) => `{${word}}`).join(', ')}`);
  if (/[{}]/.test(template.replace(/\{[A-Za-z0-9]+\}/g, ''))) say(at, 'a brace in a template belongs to a token such as {name}');
}

/** `labels`: the templates that use the wildcards of the file. */
function checkSource(
  declaration: Declaration,
  source: DeclaredSource,
  at: Path,
  say: Say,
  more: { readonly labels?: Readonly<Record<string, string>> } = {},
): void {
  const { file, link, command, pointer, column, each, line, field, without, unit, map } = source;
  const places = [file, link, command].filter((place) => place !== undefined);
  if (places.length !== 1) say(at, 'it needs exactly one of "file", "link" and "command"');
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
  if (unit !== undefined && map !== undefined) say([...at, 'map'], 'a text has either a unit or a map');
  if (file !== undefined) checkFile(file, [...at, 'file'], say);
  if (link !== undefined) checkGlob(link, [...at, 'link'], say);
  const wildcards = wildcardsOf(file ?? '');
  const words = new Set([...wildcards.map((_, n) => String(n + 1)), ...(each === undefined ? [] : ['key'])]);
  for (const [name, template] of Object.entries(more.labels ?? {})) checkTokens(template, words, [...at, 'labels', name], say);
}

function checkFile(file: string, at: Path, say: Say): void {
  if (!file.startsWith('/')) checkGlob(file, at, say);
  else if (file.startsWith('/sys/')) checkGlob(file.slice('/sys/'.length), at, say);
  else if (file.startsWith('/proc/driver/')) checkGlob(file.slice('/proc/'.length), at, say);
  else say(at, 'a file lies below the directory of the device, /sys/ or /proc/driver/');
}

function checkGlob(glob: string, at: Path, say: Say): void {
  const segments = glob.split('/');
  if (segments.some((segment) => segment === '' || segment === '.' || segment === '..'))
    say(at, 'a path has no empty part, no "." and no ".."');
  else if (!isAllowed(glob)) say(at, 'this file must not be read: a read can change something, wake the device, or block');
  if (segments.length > MOST_SEGMENTS) say(at, `a path has ${MOST_SEGMENTS} parts at most`);
  if (segments.some((segment) => wildcardsOf(segment).length > MOST_WILDCARDS))
    say(at, `a part of a path has ${MOST_WILDCARDS} wildcards at most`);
  if (/[*#][*#]/.test(glob)) say(at, 'two wildcards need a text between them');
}

const wildcardsOf = (glob: string): readonly string[] => glob.match(/[*#]/g) ?? [];

function checkConditions(declaration: Declaration, say: Say): void {
  const { conditions = [], readings = [] } = declaration;
  const metrics = readings.map(({ metric }) => metric);
  conditions.forEach((condition, n) => {
    const at = ['conditions', n] as const;
    const { type, reading, growth, latched, progress, bits, ceiling, instance } = condition;
    if (conditions.findIndex((other) => other.type === type) < n) say([...at, 'type'], `the condition "${type}" is declared twice`);
    const judges = JUDGES.filter((judge) => condition[judge] !== undefined);
    if (judges.length !== 1) say(at, `it needs exactly one of ${JUDGES.map((judge) => `"${judge}"`).join(', ')}`);
    if (reading !== undefined && !metrics.includes(reading))
      say([...at, 'reading'], `there is no reading of ${reading}${nearestHint(reading, metrics)}`);
    const own = (condition.file ?? condition.link ?? condition.command) !== undefined;
    if (reading !== undefined && own) say(at, 'it has either "reading" or a source of its own');
    if (reading === undefined) checkSource(declaration, condition, at, say);
    if (growth !== undefined && (latched === true || progress === true))
      say(at, '"growth" judges a rate, which is neither latched nor in progress');
    if (latched === true && progress === true) say(at, 'it is either "latched" or in "progress"');
    if (progress === true && condition.for === undefined) say(at, '"progress" needs "for", the time that is normal');
    if (ceiling !== undefined && growth === undefined) say([...at, 'ceiling'], '"ceiling" belongs to "growth"');
    if (bits !== undefined && condition.scale !== undefined) say([...at, 'scale'], '"bits" judges the raw number');
    if (instance !== undefined) {
      const source = readings.find(({ metric }) => metric === reading) ?? condition;
      const words = [...wildcardsOf(source.file ?? '').map((_, at) => String(at + 1)), ...(source.each === undefined ? [] : ['key'])];
      checkTokens(instance, new Set(words), [...at, 'instance'], say);
    }
  });
}

/** Checks the length of each duration. Their form is in the schema. */
function checkTimes(value: unknown, at: Path, say: Say): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    const path = [...at, key];
    if (typeof inner !== 'string') checkTimes(inner, path, say);
    else if (['for', 'recovery', 'within', 'every'].includes(key) && (parseDuration(inner) ?? 0) > MOST_MS)
      say(path, 'a time has 30d at most');
    else if (key === 'within' && parseDuration(inner) === 0) say(path, 'a time of 0 has no growth');
  }
}
