import { XMLParser, XMLValidator } from 'fast-xml-parser';
import { type Cell, parseCell } from './cell.ts';

/** XML element: texts and child elements, keyed by name. `@id` is the attribute `id`. Elements that can repeat are always lists. */
export interface Element {
  readonly [name: string]: string | Element | readonly (string | Element)[] | undefined;
}

export type DocumentResult =
  | { readonly log: Element; readonly surplus: string; readonly error?: undefined }
  | { readonly log?: undefined; readonly surplus: string; readonly error: 'no-document' | 'truncated' | 'malformed' };

const REPEATED = new Set(['gpu', 'mig_device', 'process_info']);

/**
 * Finds and parses the document in the output of `nvidia-smi -q -x`. Lines before and after it are kept as `surplus`, because drivers
 * print warnings and lost GPUs there. The list of supported clocks (up to three quarters of the text) and the names of processes
 * (chosen by their owners, and printed without escaping) are removed before parsing. The last end tag on its line ends a name, whatever the
 * name contains. The parser accepts broken XML and silently loses elements, so the text is validated first. A document that is not
 * believed gives no lines behind it, because a name could have written them.
 */
export function parseDocument(printed: string): DocumentResult {
  // The names go first: a name can contain the tags of any other element.
  const output = printed.split('\n').map(withoutName).join('\n');
  const start = output.search(/<\?xml|<nvidia_smi_log/);
  if (start < 0) return { surplus: output.trim(), error: 'no-document' };
  const close = output.indexOf('</nvidia_smi_log>', start);
  const before = output.slice(0, start).trim();
  if (close < 0) return { surplus: before, error: 'truncated' };
  const end = close + '</nvidia_smi_log>'.length;
  const malformed = { surplus: before, error: 'malformed' } as const;
  const text = without(output.slice(start, end), 'supported_clocks');
  try {
    if (HAS_NAME.test(output) || XMLValidator.validate(text) !== true) return malformed;
    const parser = new XMLParser({
      ignoreAttributes: false,
      attributeNamePrefix: '@',
      parseTagValue: false,
      parseAttributeValue: false,
      processEntities: false,
      isArray: (name) => REPEATED.has(name),
    });
    const log = (parser.parse(text) as Element).nvidia_smi_log;
    if (!isElement(log) || !isPlausible(log, output)) return malformed;
    return { log, surplus: `${output.slice(0, start)}${output.slice(end)}`.trim() };
  } catch {
    return malformed;
  }
}

/** Removes the name of a process from a line. The time is linear: an expression would try each of many begin tags in a name. */
function withoutName(line: string): string {
  const start = line.indexOf('<process_name>');
  const end = line.lastIndexOf('</process_name>');
  return start < 0 || end < start ? line : line.slice(0, start) + line.slice(end + '</process_name>'.length);
}

/** `nvidia-smi` prints each name on a line of its own. A tag that is left belongs to a name with a line break, which can forge elements. */
const HAS_NAME = /<\/?process_name>/;

/**
 * A name with several line breaks can still forge whole elements, and hide those of the driver: in a comment, in a list of clocks, behind
 * an end of the document. So each GPU, list of processes and process that the output has must be in the parsed document, each GPU directly
 * in it, and one document only. No driver prints more GPUs than it announces, or one element twice in the same place. A document that does
 * is not believed at all. A forged process of the same GPU cannot be told from a real one.
 */
function isPlausible(log: Element, output: string): boolean {
  const gpus = childrenOf(log, 'gpu');
  const announced = Number(textAt(log, 'attached_gpus') ?? Number.NaN);
  const printed = (tag: RegExp): number => output.match(tag)?.length ?? 0;
  return (
    !(gpus.length > announced) &&
    !hasRepetition(log) &&
    printed(/<gpu\s/g) === gpus.filter((gpu) => Object.hasOwn(gpu, '@id')).length &&
    printed(/<gpu\s/g) === gpus.length &&
    printed(/<processes[\s/>]/g) === countOf(log, 'processes') &&
    printed(/<process_info[\s/>]/g) === countOf(log, 'process_info') &&
    printed(/<\/nvidia_smi_log>/g) === 1
  );
}

/** Number of the elements with a name, wherever they are. */
function countOf(element: Element, name: string): number {
  return Object.entries(element).reduce((sum, [key, value]) => {
    const all = Array.isArray(value) ? value : [value];
    return sum + (key === name ? all.length : 0) + all.filter(isElement).reduce((inner, one) => inner + countOf(one, name), 0);
  }, 0);
}

function hasRepetition(element: Element): boolean {
  return Object.entries(element).some(([name, value]) => {
    if (Array.isArray(value)) return !REPEATED.has(name) || value.filter(isElement).some(hasRepetition);
    return isElement(value) && hasRepetition(value);
  });
}

/** Removes all elements with a name. The time is linear in the length of the text. */
function without(text: string, name: string): string {
  const [open, close] = [`<${name}>`, `</${name}>`];
  let kept = '';
  let from = 0;
  for (;;) {
    const start = text.indexOf(open, from);
    const end = start < 0 ? -1 : text.indexOf(close, start);
    if (end < 0) return kept + text.slice(from);
    kept += text.slice(from, start);
    from = end + close.length;
  }
}

function isElement(value: Element[string]): value is Element {
  return typeof value === 'object' && !Array.isArray(value);
}

/** Returns child elements that can repeat. A text in their place (`None`, `N/A`) gives an empty list. */
export function childrenOf(element: Element, path: string): readonly Element[] {
  const names = path.split('/');
  const last = names.pop() as string;
  const parent = names.length === 0 ? element : at(element, names);
  const found = isElement(parent) ? parent[last] : undefined;
  return Array.isArray(found) ? found.filter(isElement) : [];
}

/**
 * Returns the text at a path of element names; undefined when there is none, or an element with children. When the driver prints a text
 * in place of a group, that text counts for each path below the group: `<remapped_rows>GPU is lost</remapped_rows>`.
 */
export function textAt(element: Element, path: string): string | undefined {
  const found = at(element, path.split('/'));
  return typeof found === 'string' ? found.trim() : undefined;
}

export const cellAt = (element: Element, path: string): Cell => parseCell(textAt(element, path));

/** Returns the text of the first path that has a value. Numbers stay texts (part numbers, serials). */
export function wordAt(element: Element, ...paths: readonly string[]): string | undefined {
  const path = paths.find((each) => ['text', 'number'].includes(cellAt(element, each).kind));
  return path === undefined ? undefined : textAt(element, path);
}

const SENTENCES: ReadonlySet<Cell['kind']> = new Set(['absent', 'lost', 'reset-required', 'error']);

function at(element: Element, names: readonly string[]): Element[string] {
  let found: Element[string] = element;
  for (const name of names) {
    if (!isElement(found)) return typeof found === 'string' && SENTENCES.has(parseCell(found).kind) ? found : undefined;
    found = Object.hasOwn(found, name) ? found[name] : undefined;
  }
  return found;
}
