/** Text of an attribute without padding: drives pad their names with blanks, and some with NUL bytes. */
export function plainText(text: string): string {
  const end = text.indexOf('\0');
  return (end < 0 ? text : text.slice(0, end)).trim();
}

/** A value that a number holds exactly becomes a number. */
export const plainValue = (value: bigint): number | bigint => (value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value);

/** Largest value of an unsigned 64-bit attribute. */
const MOST = 2n ** 64n - 1n;

/** Parses an unsigned decimal integer of up to 64 bits; undefined for other text. */
export function parseCount(text: string): bigint | undefined {
  const digits = plainText(text);
  if (!/^\d{1,20}$/.test(digits)) return undefined;
  const value = BigInt(digits);
  return value > MOST ? undefined : value;
}

/** Parses a flag, 0 or 1; undefined for other text. */
export function parseFlag(text: string): boolean | undefined {
  const digit = plainText(text);
  return digit === '0' || digit === '1' ? digit === '1' : undefined;
}
