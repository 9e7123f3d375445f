import { UserError } from '../errors.ts';
import { readUntrustedFile, type UntrustedRead } from '../host/fs/untrusted-file.ts';
import { type FileProblem, inOrder, parseDocument, problemLines } from './document.ts';
import { CONFIG_LIMITS, digestOf } from './file-text.ts';
import type { Registry } from './registry.ts';
import { fileSchema } from './schema.ts';
import { checkSchema } from './schema-check.ts';
import type { Path, Positions, TextPosition } from './text-positions.ts';
import { checkFileValue, type OptionValue } from './values.ts';

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

/** Throws {@link UserError}. `origin` describes where the file name came from. `read`: the file, when it was read before. */
export async function readConfigFile(file: string, origin: string, registry: Registry, read?: UntrustedRead): Promise<FileContent> {
  const text = textOf(read ?? (await readUntrustedFile(file, CONFIG_LIMITS.mostBytes)), file, origin);
  const checked = await checkConfigText(file, text, registry);
  if (checked.content !== undefined) return checked.content;
  throw new UserError('config-file-invalid', { file, problems: problemLines(file, checked.problems) });
}

function textOf(read: UntrustedRead, file: string, origin: string): string {
  if (read.problem !== undefined) throw new UserError('config-file-unreadable', { file, origin, problem: read.reason });
  return read.text;
}

type CheckedText =
  | { readonly content: FileContent; readonly problems: readonly [] }
  | { readonly content?: undefined; readonly problems: readonly FileProblem[] };

/** Parses and checks the text of a configuration file. Returns its content, or all problems sorted by position. */
export async function checkConfigText(file: string, text: string, registry: Registry): Promise<CheckedText> {
  const parsed = await parseDocument(text);
  if (parsed.problems !== undefined) return { problems: parsed.problems };
  const { positions, plain } = parsed;
  const problems = await findProblems(positions, plain, registry);
  if (problems.length > 0) return { problems: inOrder(problems) };
  return { content: { ...extract(file, positions, plain, registry), digest: digestOf(text) }, problems: [] };
}

async function findProblems(positions: Positions, plain: unknown, registry: Registry): Promise<FileProblem[]> {
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
    if (problem !== undefined) add(filePath, positions.of(filePath), `${filePath.join('.')} ${problem}`);
  }
  for (const { path, atKey, message } of await checkSchema(fileSchema(registry), plain)) {
    add(path, atKey ? positions.ofKey(path) : positions.of(path), message);
  }
  return [...problems.values()];
}

function extract(file: string, positions: Positions, plain: unknown, registry: Registry): Omit<FileContent, 'digest'> {
  const options = new Map<string, { value: OptionValue; line: number }>();
  for (const { key, spec, filePath } of registry.entries) {
    const given = filePath === undefined ? undefined : valueAt(plain, filePath);
    if (filePath === undefined || given === undefined) continue;
    const { value } = checkFileValue(spec, given);
    if (value !== undefined) options.set(key, { value, line: positions.ofKey(filePath).line });
  }
  const structured = new Map<string, { value: unknown; line: number }>();
  for (const { path } of registry.structured) {
    const keys = path.split('.');
    const value = valueAt(plain, keys);
    if (value !== undefined && value !== null) structured.set(path, { value, line: positions.ofKey(keys).line });
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
