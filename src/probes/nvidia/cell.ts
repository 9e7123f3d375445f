/**
 * What one cell of `nvidia-smi` says. `absent` is normal (this board, this driver, these rights do not tell), `error` means that
 * the GPU or driver failed to answer. Numbers come in base units: bytes, watts, celsius, hertz, ratio, seconds, volts.
 */
export type Cell =
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'text'; readonly value: string }
  | { readonly kind: 'absent' }
  | { readonly kind: 'lost' }
  | { readonly kind: 'error'; readonly text: string };

/** In all spellings seen in XML and CSV, compared without brackets and case. */
const ABSENT = new Set([
  '',
  '-',
  'n/a',
  'not supported',
  'not available',
  'requested functionality has been deprecated',
  'insufficient permissions',
  'function not found',
  'redacted',
]);
const ERRORS = new Set(['unknown error', 'err!']);

const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  mW: 1e-3,
  W: 1,
  C: 1,
  MHz: 1e6,
  '%': 0.01,
  'KB/s': 1e3,
  'MB/s': 1e6,
  us: 1e-6,
  ms: 1e-3,
  s: 1,
  seconds: 1,
  mV: 1e-3,
  x: 1,
  'bank(s)': 1,
  'group(s)': 1,
};

export function parseCell(raw: string | undefined): Cell {
  if (raw === undefined) return { kind: 'absent' };
  const text = raw
    .trim()
    .replace(/^\[(.*)\]$/s, '$1')
    .trim();
  const folded = text.toLowerCase();
  if (ABSENT.has(folded)) return { kind: 'absent' };
  if (folded === 'gpu is lost') return { kind: 'lost' };
  if (ERRORS.has(folded)) return { kind: 'error', text };
  const number = /^([+-]?\d+(?:\.\d+)?)\s*([A-Za-z%/()]*)$/.exec(text);
  const scale = number === null ? undefined : UNITS[number[2] as string];
  if (number !== null && scale !== undefined) return { kind: 'number', value: scaled(Number(number[1]), scale) };
  return { kind: 'text', value: text };
}

/** Hundredths and the like without the noise of binary fractions. */
function scaled(value: number, scale: number): number {
  return scale < 1 ? value / Math.round(1 / scale) : value * scale;
}

const TRUE = new Set(['yes', 'enabled', 'active', 'true']);
const FALSE = new Set(['no', 'disabled', 'not active', 'false']);

/** Undefined when the cell says neither. */
export function asBoolean(cell: Cell): boolean | undefined {
  if (cell.kind === 'number') return cell.value !== 0;
  if (cell.kind !== 'text') return undefined;
  const folded = cell.value.toLowerCase();
  if (TRUE.has(folded)) return true;
  return FALSE.has(folded) ? false : undefined;
}
