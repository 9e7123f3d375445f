/**
 * Value of a 64-bit read that the hardware did not answer. No counter reaches it: at 800 Gb/s, a counter of 4-byte words needs 23 years.
 */
export const ALL_ONES = 2n ** 64n - 1n;

/** Returns whether a counter of 64 bits can have the value. */
export const isCount = (value: bigint): boolean => value < ALL_ONES;

/** Reads an unsigned decimal integer; undefined for other text, and for a value that no counter of 64 bits can have. */
export function countOf(digits: string): bigint | undefined {
  if (!/^\d{1,20}$/.test(digits)) return undefined;
  const value = BigInt(digits);
  return isCount(value) ? value : undefined;
}

/** A value that a number holds exactly becomes a number. */
export const plainValue = (value: bigint): number | bigint => (value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value);

/**
 * A value in another unit. It keeps all digits of a large integer when the scale is whole. A fraction of a large integer is rounded, as any
 * number is.
 */
export function scaled<V extends number | bigint>(value: V, scale: number): V;
export function scaled(value: number | bigint, scale: number): number | bigint {
  if (scale === 1) return value;
  if (Number.isInteger(scale)) {
    const product = Number(value) * scale;
    return Number.isSafeInteger(product) ? product : plainValue(BigInt(value) * BigInt(scale));
  }
  // A division keeps 25.01 exact where a product by 0.01 does not.
  const divisor = 1 / scale;
  if (Number.isInteger(divisor)) return Number(value) / divisor;
  return Number(BigInt(value) * BigInt(Math.round(scale * NANO))) / NANO;
}

/** Scales that are no fraction of one are whole billionths. */
const NANO = 1e9;

/** Text of an attribute without padding: drives pad their names with blanks or NUL bytes, and some tools pad a file of a card to a page. */
export function plainText(text: string): string {
  const end = text.indexOf('\0');
  return (end < 0 ? text : text.slice(0, end)).trim();
}

/** Parses a counter of up to 64 bits; undefined for other text, and for all ones. The result is exact. */
export function parseCount(text: string | undefined): number | bigint | undefined {
  const value = countOf(plainText(text ?? ''));
  return value === undefined ? undefined : plainValue(value);
}

/** Parses a percentage without a sign, an integer from `0` to `100`, and returns a ratio. Undefined for other text. */
export function parsePercent(text: string | undefined): number | undefined {
  const value = parseCount(text);
  return typeof value === 'number' && value <= 100 ? value / 100 : undefined;
}

/** Parses a flag, 0 or 1; undefined for other text. */
export function parseFlag(text: string): boolean | undefined {
  const digit = plainText(text);
  return digit === '0' || digit === '1' ? digit === '1' : undefined;
}

/** First line without padding; undefined when it is empty. */
export const firstLine = (text: string): string | undefined => plainText(text).split('\n')[0]?.trim().replace(/\s+/g, ' ') || undefined;
