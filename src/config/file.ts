import { createHash } from 'node:crypto';
import type * as Yaml from 'yaml';
import type { Document, LineCounter } from 'yaml';
import { UserError } from '../errors.ts';
import { type OutsideRead, readOutsideFileSync } from '../host/fs/outside-file.ts';
import type { Registry } from './registry.ts';
import { checkSchema } from './schema-check.ts';
import { keyText, type Path, positionOf, positionOfKey, positionOfNode, type TextPosition } from './text-positions.ts';
import { checkFileValue, type OptionValue, show } from './values.ts';

/** Content of a configuration file, with the line of each value. */
export interface FileContent {
  readonly file: string;
  /** SHA-256 of the text, in hexadecimal. */
  readonly digest: string;
  /** Keyed by option key. */
  readonly options: ReadonlyMap<string, { readonly value: OptionValue; readonly line: number }>;
  /** Keyed by path of the structured part. */
  readonly structured: ReadonlyMap<string, { readonly value: unknown; readonly line: number }>;
}

/** An error in a configuration file and its position. */
export interface FileProblem extends TextPosition {
  readonly message: string;
}

export const CONFIG_LIMITS = { mostBytes: 1_048_576, timeoutMs: 10_000 } as const;
const MOST_ALIASES = 100;
/** Number of problems that are printed. */
const MOST_SHOWN = 20;

/** Throws {@link UserError}. `origin` describes where the file name came from. `read`: the file, when it was read before. */
export async function readConfigFile(file: string, origin: string, registry: Registry, read?: OutsideRead): Promise<FileContent> {
  const text = textOf(read ?? readOutsideFileSync(file, CONFIG_LIMITS.mostBytes), file, origin);
  const checked = await checkConfigText(file, text, registry);
  if (checked.content !== undefined) return checked.content;
  const lines = checked.problems.slice(0, MOST_SHOWN).map(({ line, column, message }) => `  ${file}:${line}:${column}: ${message}`);
  const others = checked.problems.length - lines.length;
  if (others > 0) lines.push(`  and ${others} more problems`);
  throw new UserError('config-file-invalid', { file, problems: lines.join('\n') });
}

export const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');

function textOf(read: OutsideRead, file: string, origin: string): string {
  if (read.problem !== undefined) throw new UserError('config-file-unreadable', { file, origin, problem: read.reason });
  return read.text;
}

type CheckedText =
  | { readonly content: FileContent; readonly problems: readonly [] }
  | { readonly content?: undefined; readonly problems: readonly FileProblem[] };

/** Parses and checks the text of a configuration file. Returns its content, or all problems sorted by position. */
export async function checkConfigText(file: string, text: string, registry: Registry): Promise<CheckedText> {
  const yaml = await import('yaml');
  const lines = new yaml.LineCounter();
  // The library compares each key with all others of its mapping, so duplicates are found here.
  const document = yaml.parseDocument(text, { lineCounter: lines, prettyErrors: false, uniqueKeys: false });
  const syntax = [...document.errors, ...document.warnings].map((error) => {
    const { line, col } = lines.linePos(error.pos[0]);
    const message = SYNTAX_TEXTS[error.code] ?? error.message;
    return { line: Math.max(1, line), column: Math.max(1, col), message };
  });
  if (syntax.length > 0) return { problems: inOrder(syntax) };
  const wrong = wrongNodes(yaml, document, lines);
  if (wrong.length > 0) return { problems: wrong };
  const value = plainValue(document);
  if ('message' in value) return { problems: [{ line: 1, column: 1, message: value.message }] };
  const problems = await findProblems(document, lines, value.plain, registry);
  if (problems.length > 0) return { problems: inOrder(problems) };
  return { content: { ...extract(file, document, lines, value.plain, registry), digest: digestOf(text) }, problems: [] };
}

/** Messages that are clearer than the library's, by its error code. */
const SYNTAX_TEXTS: Readonly<Partial<Record<Yaml.ErrorCode, string>>> = {
  MULTIPLE_DOCS: 'a second YAML document starts here; only one is allowed',
  RESOURCE_EXHAUSTION: 'the values are nested too deeply',
};

/** Finds duplicate keys, aliases without an anchor, and too many aliases, because `toJS` handles them badly or slowly. */
function wrongNodes({ visit }: Pick<typeof Yaml, 'visit'>, document: Document, lines: LineCounter): FileProblem[] {
  const problems: FileProblem[] = [];
  const anchors = new Set<string>();
  let aliases = 0;
  const add = (node: Yaml.Node, message: string): void => void problems.push({ ...positionOfNode(node, lines), message });
  visit(document, {
    Alias(_, alias) {
      aliases += 1;
      if (aliases === MOST_ALIASES + 1) add(alias, `more than ${MOST_ALIASES} aliases`);
      if (!anchors.has(alias.source)) add(alias, `the anchor &${alias.source} is not defined before this alias`);
    },
    Value(_, { anchor }) {
      if (anchor !== undefined) anchors.add(anchor);
    },
    Map(_, map) {
      if (map.anchor !== undefined) anchors.add(map.anchor);
      const keys = new Set<string>();
      for (const pair of map.items) {
        const key = keyText(pair);
        if (keys.has(key)) add(pair.key as Yaml.Node, `the key ${JSON.stringify(key)} occurs twice in this mapping`);
        keys.add(key);
      }
    },
  });
  return inOrder(problems);
}

/** Converts the document to plain values. `toJS` throws when aliases expand too much. */
function plainValue(document: Document): { plain: unknown } | { message: string } {
  try {
    const plain: unknown = document.toJS({ maxAliasCount: MOST_ALIASES });
    if (plain === null || plain === undefined) return { plain: {} };
    return typeof plain === 'object' && !Array.isArray(plain)
      ? { plain }
      : { message: `must be a mapping of sections, not ${show(plain)}` };
  } catch (error) {
    return { message: error instanceof Error ? error.message : String(error) };
  }
}

async function findProblems(document: Document, lines: LineCounter, plain: unknown, registry: Registry): Promise<FileProblem[]> {
  const problems = new Map<string, FileProblem>();
  const add = (path: Path, place: TextPosition, message: string): void => {
    const id = path.join('\u0000');
    if (!problems.has(id)) problems.set(id, { ...place, message });
  };
  // Options come first, because their messages are better than a schema's. Each place gets only one message.
  for (const { spec, filePath } of registry.entries) {
    const value = filePath === undefined ? undefined : valueAt(plain, filePath);
    if (filePath === undefined || value === undefined) continue;
    const { problem } = checkFileValue(spec, value);
    if (problem !== undefined) add(filePath, positionOf(document, lines, filePath), `${filePath.join('.')} ${problem}`);
  }
  for (const { path, atKey, message } of await checkSchema(registry, plain)) {
    add(path, atKey ? positionOfKey(document, lines, path) : positionOf(document, lines, path), message);
  }
  return [...problems.values()];
}

function extract(file: string, document: Document, lines: LineCounter, plain: unknown, registry: Registry): Omit<FileContent, 'digest'> {
  const options = new Map<string, { value: OptionValue; line: number }>();
  for (const { key, spec, filePath } of registry.entries) {
    const given = filePath === undefined ? undefined : valueAt(plain, filePath);
    if (filePath === undefined || given === undefined) continue;
    const { value } = checkFileValue(spec, given);
    if (value !== undefined) options.set(key, { value, line: positionOfKey(document, lines, filePath).line });
  }
  const structured = new Map<string, { value: unknown; line: number }>();
  for (const { path } of registry.structured) {
    const keys = path.split('.');
    const value = valueAt(plain, keys);
    if (value !== undefined && value !== null) structured.set(path, { value, line: positionOfKey(document, lines, keys).line });
  }
  return { file, options, structured };
}

function valueAt(plain: unknown, path: readonly string[]): unknown {
  let at = plain;
  for (const key of path) {
    if (at === null || typeof at !== 'object' || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string, unknown>)[key];
  }
  return at;
}

function inOrder(problems: readonly FileProblem[]): FileProblem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
}
