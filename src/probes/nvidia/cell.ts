export type Quantity =
  | 'bytes'
  | 'bytes_per_second'
  | 'watts'
  | 'joules'
  | 'celsius'
  | 'hertz'
  | 'ratio'
  | 'seconds'
  | 'volts'
  | 'lanes'
  | 'count';

/** Why a value has no answer: the GPU is lost, it answers only after a reset, or the driver failed for another reason. */
export type Failure = 'lost' | 'reset-required' | 'error';

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
const FAILURES: ReadonlyMap<string, Failure> = new Map([
  ['gpu is lost', 'lost'],
  ['gpu requires reset', 'reset-required'],
  ['unknown error', 'error'],
  ['err!', 'error'],
]);

const UNITS: ReadonlyMap<string, readonly [quantity: Quantity, scale: number]> = new Map([
  ['', ['count', 1]],
  ['bank(s)', ['count', 1]],
  ['group(s)', ['count', 1]],
  ['x', ['lanes', 1]],
  ['B', ['bytes', 1]],
  ['KiB', ['bytes', 2 ** 10]],
  ['MiB', ['bytes', 2 ** 20]],
  ['GiB', ['bytes', 2 ** 30]],
  ['KB/s', ['bytes_per_second', 1e3]],
  ['MB/s', ['bytes_per_second', 1e6]],
  ['mW', ['watts', 1e-3]],
  ['W', ['watts', 1]],
  ['C', ['celsius', 1]],
  ['MHz', ['hertz', 1e6]],
  ['%', ['ratio', 0.01]],
  ['us', ['seconds', 1e-6]],
  ['ms', ['seconds', 1e-3]],
  ['s', ['seconds', 1]],
  ['seconds', ['seconds', 1]],
  ['mV', ['volts', 1e-3]],
]);

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
