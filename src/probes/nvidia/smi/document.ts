import { XMLParser, XMLValidator } from 'fast-xml-parser';
import type { Failure } from '../sample.ts';
import type { Quantity } from '../values.ts';

/**
 * Content of one cell of `nvidia-smi`. `absent` is normal: the board, the driver or the permissions do not provide the value. Numbers are
 * in the base unit of their quantity. `exact` is present for whole numbers that `value` cannot hold exactly.
 */
export type Cell =
  | { readonly kind: 'number'; readonly value: number; readonly exact?: bigint; readonly quantity: Quantity }
  | { readonly kind: 'text'; readonly value: string }
  | { readonly kind: 'absent' }
  | { readonly kind: Failure };

/** All known spellings in XML and CSV, compared without brackets and case. */
const ABSENT = new Set(
  '|-|n/a|not supported|not available|requested functionality has been deprecated|insufficient permissions|function not found|redacted'.split(
    '|',
  ),
);
const FAILURES: ReadonlyMap<string, Failure> = new Map([
  ['gpu is lost', 'lost'],
  ['gpu requires reset', 'reset-required'],
  ['unknown error', 'error'],
  ['err!', 'error'],
]);

/** Units of each quantity, and what one of them is in the base unit. */
const SCALES: Partial<Readonly<Record<Quantity, Readonly<Record<string, number>>>>> = {
  count: { '': 1, 'bank(s)': 1, 'group(s)': 1 },
  lanes: { x: 1 },
  bytes: { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30 },
  bytes_per_second: { 'KB/s': 1e3, 'MB/s': 1e6 },
  watts: { mW: 1e-3, W: 1 },
  celsius: { C: 1 },
  hertz: { MHz: 1e6 },
  ratio: { '%': 0.01 },
  seconds: { us: 1e-6, ms: 1e-3, s: 1, seconds: 1 },
  volts: { mV: 1e-3 },
};
const UNITS = new Map(
  Object.entries(SCALES).flatMap(([quantity, units]) =>
    Object.entries(units).map(([unit, scale]) => [unit, [quantity as Quantity, scale]] as const),
  ),
);

export function parseCell(raw: string | undefined): Cell {
  if (raw === undefined) return { kind: 'absent' };
  const text = raw
    .trim()
    .replace(/^\[(.*)\]$/s, '$1')
    .trim();
  const folded = text.toLowerCase();
  if (ABSENT.has(folded)) return { kind: 'absent' };
  const failure = FAILURES.get(folded);
  return failure === undefined ? (parseNumber(text) ?? { kind: 'text', value: text }) : { kind: failure };
}

function parseNumber(text: string): Cell | undefined {
  const [, digits, unit] = /^([+-]?\d{1,30}(?:\.\d{1,30})?)\s*([A-Za-z%/()]*)$/.exec(text) ?? [];
  const known = unit === undefined ? undefined : UNITS.get(unit);
  if (digits === undefined || known === undefined) return undefined;
  const [quantity, scale] = known;
  const value = Number(digits);
  if (quantity === 'count' && !Number.isSafeInteger(value) && !digits.includes('.')) {
    return { kind: 'number', value, exact: BigInt(digits), quantity };
  }
  return { kind: 'number', value: scaled(value, scale), quantity };
}

/** Scales a value. For scales below 1 it divides, which avoids rounding errors of binary fractions. */
function scaled(value: number, scale: number): number {
  return scale < 1 ? value / Math.round(1 / scale) : value * scale;
}

const TRUE = new Set(['yes', 'enabled', 'active', 'true']);
const FALSE = new Set(['no', 'disabled', 'not active', 'false']);

/** Returns undefined when the cell is neither true nor false. */
export function asBoolean(cell: Cell): boolean | undefined {
  if (cell.kind === 'number') return cell.value === 1 || (cell.value === 0 ? false : undefined);
  if (cell.kind !== 'text') return undefined;
  const folded = cell.value.toLowerCase();
  if (TRUE.has(folded)) return true;
  return FALSE.has(folded) ? false : undefined;
}

/** Returns undefined for another quantity, and for an impossible number (negative, or a fraction of a count): a wrong number is worse than none. */
export function numberValue(cell: Cell, quantity: Quantity): number | bigint | undefined {
  if (cell.kind !== 'number' || cell.quantity !== quantity) return undefined;
  if (cell.value < 0 && quantity !== 'celsius') return undefined;
  if (quantity === 'count' && cell.exact === undefined && !Number.isInteger(cell.value)) return undefined;
  return cell.exact ?? cell.value;
}

/** XML element: texts and child elements, keyed by name. `@id` is the attribute `id`. Elements that can repeat are always lists. */
export interface Element {
  readonly [name: string]: string | Element | readonly (string | Element)[] | undefined;
}

type DocumentResult =
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
