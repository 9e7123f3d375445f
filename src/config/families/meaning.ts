import { parseDuration } from '../../model/duration.ts';
import { conditionsOf } from '../../probes/declared/conditions.ts';
import {
  type Declaration,
  type DeclaredCondition,
  type DeclaredDevices,
  type DeclaredSource,
  FACT_NAMES,
  type Fact,
  JUDGES,
} from '../../probes/declared/declaration.ts';
import { hardwareOf } from '../../probes/declared/discover.ts';
import { isWild } from '../../probes/declared/glob.ts';
import { lineForm } from '../../probes/declared/line-form.ts';
import { TIMEOUT_MS } from '../../probes/declared/rows.ts';
import { numberOf } from '../../probes/declared/texts.ts';
import { startFailed } from '../../probes/kit/pcie/bus-conditions.ts';
import { tokensOf } from '../../probes/kit/template.ts';
import { nearestHint } from '../nearest.ts';
import type { SchemaProblem } from '../schema-check.ts';
import type { Path } from '../text-positions.ts';
import { readingProblems } from './reading-meaning.ts';
import {
  checkCommandName,
  checkGlob,
  checkSource,
  checkTokens,
  MOST_WILDCARDS,
  type Say,
  wildcardsOf,
  wordsOfSource,
} from './source-meaning.ts';

/** Longest time that a declaration may give. */
const MOST_MS = 30 * 86_400_000;
const MOST_COMMAND_MS = 8_000;
/** Words that every place gives, and those that only a command or a PCI address gives. */
const DEVICE_WORDS = ['name', 'pci', 'pciAddress'] as const;

/** What is wrong with a declaration that its schema accepts, each with its place. `taken`: names of metrics that the agent itself has. */
export function meaningProblems(declaration: Declaration, taken: ReadonlySet<string>): readonly SchemaProblem[] {
  const problems: SchemaProblem[] = [];
  const say: Say = (path, message) => void problems.push({ path, atKey: false, message });
  checkCommands(declaration, say);
  checkDeadlines(declaration, say);
  declaration.devices.forEach((devices, n) => {
    checkDevices(declaration, devices, ['devices', n], say);
  });
  const kinds = declaration.devices.map(({ kind }) => kind);
  const parts = [
    ['readings', declaration.readings],
    ['conditions', declaration.conditions],
    ['lines', declaration.lines],
    ['resources', declaration.resources],
  ] as const;
  for (const [part, list] of parts)
    list?.forEach((item, n) => {
      for (const [at, kind] of (item.kinds ?? []).entries())
        if (!kinds.includes(kind))
          say([part, n, 'kinds', at], `there is no kind "${kind}", only ${kinds.join(', ')}${nearestHint(kind, kinds)}`);
    });
  problems.push(...readingProblems(declaration, taken));
  const words = wordsOfDevices(declaration);
  for (const [n, source] of (declaration.readings ?? []).entries()) {
    checkSource({ declaration, source, words, labels: source.labels ?? {} }, ['readings', n], say);
    if (source.map !== undefined) checkNumbers(source.map, ['readings', n, 'map'], say);
  }
  checkShadows(declaration, say);
  if (declaration.inherit === true && declaration.devices.every(({ parent }) => parent === undefined))
    say(['inherit'], 'no kind of device has a "parent"');
  checkConditions(declaration, words, say);
  checkLines(declaration, say);
  checkResources(declaration, say);
  checkTimes(declaration, [], say);
  return problems;
}

/** An item that an earlier one always stands in for is never used. */
function checkShadows({ devices, readings = [], lines = [] }: Declaration, say: Say): void {
  const check = <T>(part: string, list: readonly T[], isUsedUp: (item: T, earlier: T) => boolean): void =>
    list.forEach((item, n) => {
      const first = list.slice(0, n).findIndex((earlier) => isUsedUp(item, earlier));
      if (first >= 0) say([part, n], `${part}[${first}] takes all that this one would take`);
    });
  check('devices', devices, (one, other) => areSame([one.find, one.id], [other.find, other.id]));
  check(
    'readings',
    readings,
    (one, other) =>
      one.metric === other.metric &&
      areSame([one.labels, placeOf(one)], [other.labels, placeOf(other)]) &&
      (other.kinds === undefined || (one.kinds ?? other.kinds).every((kind) => other.kinds?.includes(kind))),
  );
  check(
    'lines',
    lines,
    (one, other) =>
      areSame([one.device, one.kinds], [other.device, other.kinds]) &&
      one.drivers.every((driver) => other.drivers.includes(driver)) &&
      lineForm(other.text).exec(one.text) !== null,
  );
}

const areSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

const placeOf = ({ file, entry, link, command, pointer, column, line, field }: DeclaredSource): unknown => [
  ...[file, entry, link, command, pointer, column, line, field],
];

function checkCommands({ commands = {} }: Declaration, say: Say): void {
  for (const [name, { format, rows, columns, separator, path }] of Object.entries(commands)) {
    if (path.split('/').includes('..')) say(['commands', name, 'path'], 'the path of a program has no ".."');
    if (format === 'json' && (columns ?? separator) !== undefined)
      say(['commands', name], 'columns and separator belong to the format csv');
    if (format === 'csv' && rows !== undefined) say(['commands', name, 'rows'], 'rows belongs to the format json');
  }
}

/** The programs of a family run one after the other, within the deadline of a refresh. */
function checkDeadlines({ commands = {} }: Declaration, say: Say): void {
  let total = 0;
  for (const [name, { timeout }] of Object.entries(commands)) {
    total += timeout === undefined ? TIMEOUT_MS : (parseDuration(timeout) ?? 0);
    const at = timeout === undefined ? ['commands', name] : ['commands', name, 'timeout'];
    if (total > MOST_COMMAND_MS) say(at, `the deadlines of all programs add up to 8s at most; without "timeout" a program has 3s`);
  }
}

function checkDevices(declaration: Declaration, devices: DeclaredDevices, at: Path, say: Say): void {
  const { find, id, identity, aliases = [], parent, facts = {}, nodes = [], rows = {} } = devices;
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
    else checkSource({ declaration, source: fact, words: new Set([...words, ...more]) }, path, say);
  };
  for (const [name, fact] of Object.entries(facts)) if (fact !== undefined) check(fact, [...at, 'facts', name]);
  check(id, [...at, 'id']);
  for (const [n, alias] of aliases.entries()) check(alias, [...at, 'aliases', n], ['id']);
  if (identity !== undefined) check(identity, [...at, 'identity'], ['id']);
  if (parent !== undefined) check(parent, [...at, 'parent'], ['id']);
  if (parent === '{id}' || (parent !== undefined && areSame(parent, id))) say([...at, 'parent'], 'a device is no part of itself');
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

function checkConditions(declaration: Declaration, known: ReadonlySet<string>, say: Say): void {
  const { conditions = [], readings = [] } = declaration;
  const metrics = readings.map(({ metric }) => metric);
  const ofTraits = new Set(conditionsOf({ ...declaration, conditions: [] }).map(({ type }) => type));
  conditions.forEach((condition, n) => {
    const at = ['conditions', n] as const;
    const { type, reading, growth, level, latched, progress, bits, ceiling, instance, message, above, below } = condition;
    if (conditions.findIndex((other) => other.type === type) < n) say([...at, 'type'], `the condition "${type}" is declared twice`);
    if (ofTraits.has(type)) say([...at, 'type'], `a trait of the family already has the condition "${type}"`);
    const judges = JUDGES.filter((judge) => condition[judge] !== undefined);
    if (judges.length !== 1) say(at, `it needs exactly one of ${JUDGES.map((judge) => `"${judge}"`).join(', ')}`);
    if (reading !== undefined && !metrics.includes(reading))
      say([...at, 'reading'], `there is no reading of ${reading}${nearestHint(reading, metrics)}`);
    const own = (condition.file ?? condition.entry ?? condition.link ?? condition.command) !== undefined;
    if (reading !== undefined && own) say(at, 'it has either "reading" or a source of its own');
    if (condition.log !== undefined) checkLogged(condition, at, say);
    else if (reading === undefined) checkSource({ declaration, source: condition, words: known }, at, say);
    if ((growth ?? level) !== undefined && (latched === true || progress === true))
      say(at, `"${growth === undefined ? 'level' : 'growth'}" is neither latched nor in progress`);
    for (const [judge, limit] of Object.entries({ above, below }))
      if (typeof limit === 'object') checkSource({ declaration, source: limit, words: known }, [...at, judge], say);
    if (latched === true && progress === true) say(at, 'it is either "latched" or in "progress"');
    if (progress === true && condition.for === undefined) say(at, '"progress" needs "for", the time that is normal');
    if (ceiling !== undefined && growth === undefined) say([...at, 'ceiling'], '"ceiling" belongs to "growth"');
    if (bits !== undefined && condition.scale !== undefined) say([...at, 'scale'], '"bits" judges the raw number');
    const source = readings.find(({ metric }) => metric === reading) ?? condition;
    checkMap(condition, source, at, say);
    const words = wordsOfSource(source);
    if (instance !== undefined) checkTokens(instance, words, [...at, 'instance'], say);
    const judged = [...words, 'value', ...((above ?? below) === undefined ? [] : ['limit'])];
    if (message !== undefined) checkTokens(message, new Set(judged), [...at, 'message'], say);
  });
}

/** A text that no map gives never raises the condition. */
function checkMap({ equals, still, log }: DeclaredCondition, { map }: DeclaredSource, at: Path, say: Say): void {
  if (map === undefined || (still ?? log) !== undefined) return;
  const values = Object.values(map).map(String);
  if (equals === undefined) checkNumbers(map, [...at, 'map'], say);
  for (const [n, one] of (equals ?? []).entries())
    if (!values.includes(String(one))) say([...at, 'equals', n], `"map" never gives ${one}${nearestHint(String(one), values)}`);
}

/** A source that is read as a number needs a map that gives numbers. */
export function checkNumbers(map: NonNullable<DeclaredSource['map']>, at: Path, say: Say): void {
  for (const [text, value] of Object.entries(map))
    if (numberOf(String(value)) === undefined) say([...at, text], `the value is a number here, and ${value} is none`);
}

function checkLogged({ log, reading, latched, progress, ...own }: DeclaredCondition, at: Path, say: Say): void {
  if ((log?.above === undefined) !== (log?.within === undefined)) say([...at, 'log'], 'it has either both "above" and "within", or none');
  if ((reading ?? own.file ?? own.entry ?? own.link ?? own.command ?? own.for ?? own.recovery ?? latched ?? progress) !== undefined)
    say(at, 'a condition with "log" has no other source and no times: its lines are in "lines"');
  if (own.message !== undefined) say([...at, 'message'], 'the message of a condition with "log" is "means" of its lines');
}

/** Fixed characters that the line of a driver without a device begins with: more than the name of a process has. */
const FIXED_CHARACTERS = 16;

function checkLines(declaration: Declaration, say: Say): void {
  const { lines = [], conditions = [] } = declaration;
  const logged = conditions.filter(({ log }) => log !== undefined);
  const hasStarts = hardwareOf(declaration).some(({ drivers = [] }) => drivers.length > 0);
  const types = [...logged.map(({ type }) => type), ...(hasStarts ? [startFailed.type] : [])];
  lines.forEach(({ event, text, device, means, condition, instance, ends = [] }, n) => {
    const at = ['lines', n] as const;
    if (lines.findIndex((other) => other.event === event) < n) say([...at, 'event'], `the event "${event}" is declared twice`);
    const words = tokensOf(text);
    if (new Set(words).size < words.length) say([...at, 'text'], 'each word of a line has a name of its own');
    if (wildcardsOf(text).length + words.length > MOST_WORDS) say([...at, 'text'], `a line has ${MOST_WORDS} words and wildcards at most`);
    if (/[*#][*#{]|\}[{#]/.test(text)) say([...at, 'text'], 'two wildcards need a text between them');
    if (device !== undefined && text.search(/[*#{]/) < FIXED_CHARACTERS && /[*#{]/.test(text))
      say([...at, 'text'], `without a device in the record, a line begins with ${FIXED_CHARACTERS} fixed characters at least`);
    for (const [name, template] of Object.entries({ means, instance, device: device?.name }))
      if (template !== undefined) checkTokens(template, new Set(words), [...at, name], say);
    for (const type of [...(condition === undefined ? [] : [condition]), ...ends])
      if (!types.includes(type)) say(at, `there is no condition "${type}" with "log"${nearestHint(type, types)}`);
    for (const type of ends)
      if (logged.some((one) => one.type === type && one.log?.within !== undefined))
        say(at, `time ends the condition "${type}", not a line`);
  });
}

const MOST_WORDS = 8;

function checkResources({ resources = [] }: Declaration, say: Say): void {
  resources.forEach(({ resource, ids, alias }, n) => {
    const at = ['resources', n] as const;
    if (ids === undefined && alias === undefined) say(at, 'it needs "ids", "alias" or both');
    if (alias !== undefined) checkTokens(alias, new Set(['id']), [...at, 'alias'], say);
    if ((resource.match(/\*/g) ?? []).length > MOST_WILDCARDS || /\*\*|#/.test(resource))
      say([...at, 'resource'], 'a resource allows few "*" wildcards and no "#"');
    const words = new Set(['id', 'kind', 'parent', 'pciVendor', 'pciDevice', 'dashedAddress', ...FACT_NAMES]);
    for (const [m, template] of (ids ?? []).entries()) checkTokens(template, words, [...at, 'ids', m], say);
  });
}

/** The words that a template of a reading may use: those of any kind of device. */
function wordsOfDevices({ devices }: Declaration): ReadonlySet<string> {
  const captures = devices.flatMap(({ find }) => wildcardsOf(find.sysfs ?? '').map((_, n) => String(n + 1)));
  return new Set([...DEVICE_WORDS, 'id', ...devices.flatMap(({ facts = {} }) => Object.keys(facts)), ...captures]);
}

/** Checks the length of each duration. Their form is in the schema. */
function checkTimes(value: unknown, at: Path, say: Say): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    const path = [...at, key];
    if (typeof inner !== 'string') checkTimes(inner, path, say);
    else if (['for', 'recovery', 'within', 'every', 'still'].includes(key) && (parseDuration(inner) ?? 0) > MOST_MS)
      say(path, 'a duration must not exceed 30d');
    else if (['within', 'still'].includes(key) && parseDuration(inner) === 0) say(path, 'in a time of 0 nothing grows');
  }
}
