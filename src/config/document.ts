import type * as Yaml from 'yaml';
import type { Document, LineCounter } from 'yaml';
import { keyText, positionOfNode, type TextPosition } from './text-positions.ts';
import { show } from './values.ts';

/** An error in a file and its position. */
export interface FileProblem extends TextPosition {
  readonly message: string;
}

const MOST_ALIASES = 100;
/** Number of problems that are printed. */
const MOST_SHOWN = 20;

export type ParsedDocument =
  | { readonly document: Document; readonly lines: LineCounter; readonly plain: unknown; readonly problems?: undefined }
  | { readonly problems: readonly FileProblem[] };

/** Parses a YAML document that is a mapping. Returns its plain values, or all problems sorted by position. */
export async function parseDocument(text: string): Promise<ParsedDocument> {
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
  return { document, lines, plain: value.plain };
}

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
