import { type Bounds, TooComplex } from '../host/documents/kind.ts';
import type { Positions, TextPosition } from './text-positions.ts';
import { show } from './values.ts';

/** An error in a file and its position. */
export interface FileProblem extends TextPosition {
  readonly message: string;
}

/**
 * Bounds of what an administrator writes: the configuration, the web configuration, declarations and policies. Within them parsing takes some
 * tens of milliseconds once for each content, so it needs no thread.
 */
export const BOUNDS: Bounds = { mostBytes: 1_048_576, mostEntries: 16_000, mostDepth: 64 };
/** Number of problems that are printed. */
const MOST_SHOWN = 20;

export type ParsedDocument =
  | { readonly positions: Positions; readonly plain: unknown; readonly problems?: undefined }
  | { readonly problems: readonly FileProblem[] };

/** Parses a YAML document that is a mapping. Returns its plain values, or all problems sorted by position. */
export async function parseDocument(text: string): Promise<ParsedDocument> {
  const { yamlEvents, valuesOf } = await import('../host/documents/yaml.ts');
  const { Positions } = await import('./text-positions.ts');
  try {
    const events = yamlEvents(text, BOUNDS);
    const positions = new Positions(events, text);
    if (positions.faults.length > 0) return { problems: inOrder(positions.faults) };
    const values = valuesOf(events, text);
    const plain = values[0] ?? {};
    if (typeof plain === 'object' && !Array.isArray(plain)) return { positions, plain };
    return { problems: [{ ...START, message: `must be a mapping of sections, not ${show(plain)}` }] };
  } catch (error) {
    return { problems: [problemOf(error)] };
  }
}

const START: TextPosition = { line: 1, column: 1 };

/** What the parser of YAML throws. Its lines and columns begin at 0. */
interface ParserError {
  readonly reason?: string;
  readonly mark?: { readonly line: number; readonly column: number };
}

function problemOf(error: unknown): FileProblem {
  if (error instanceof TooComplex) return { ...START, message: error.message };
  const { reason, mark } = error as ParserError;
  if (reason === undefined || mark === undefined) throw error;
  return { line: mark.line + 1, column: mark.column + 1, message: SYNTAX_TEXTS.find(([start]) => reason.startsWith(start))?.[1] ?? reason };
}

/** Messages that are clearer than the parser's, by the start of its own. */
const SYNTAX_TEXTS: readonly (readonly [string, string])[] = [
  ['nesting exceeded', 'the values are nested too deeply'],
  ['deficient indentation', 'a quote or a bracket before this place is not closed'],
  ['end of the stream', 'this line does not fit the lines before: look at its indentation, which has no tabs, and its first character'],
];

/** Formats the problems of a file, one in each line. */
export function problemLines(file: string, problems: readonly FileProblem[]): string {
  const lines = problems.slice(0, MOST_SHOWN).map(({ line, column, message }) => `  ${file}:${line}:${column}: ${message}`);
  const others = problems.length - lines.length;
  if (others > 0) lines.push(`  and ${others} more problems`);
  return lines.join('\n');
}

export function inOrder(problems: readonly FileProblem[]): FileProblem[] {
  return problems.toSorted((a, b) => a.line - b.line || a.column - b.column);
}
