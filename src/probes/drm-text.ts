/** Text of an attribute without padding: some tools serve the files of a card padded with NUL bytes to a whole page. */
export function plainText(text: string): string {
  const end = text.indexOf('\0');
  return (end < 0 ? text : text.slice(0, end)).trim();
}

/** What a read of 64 bits gives that the hardware did not answer. */
const ALL_ONES = 2n ** 64n - 1n;

/** Parses an unsigned decimal integer of up to 64 bits; undefined for other text, and for all ones. The result is exact. */
export function parseCount(text: string | undefined): number | bigint | undefined {
  const digits = plainText(text ?? '');
  if (!/^\d{1,20}$/.test(digits)) return undefined;
  const value = BigInt(digits);
  return value < ALL_ONES ? plainValue(value) : undefined;
}

/** A value that a number holds exactly becomes a number. */
export const plainValue = (value: bigint): number | bigint => (value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value);

/** Parses a percentage of an integer, 0 to 100, as a ratio; undefined for other text. */
export function parsePercent(text: string | undefined): number | undefined {
  const value = parseCount(text);
  return typeof value === 'number' && value <= 100 ? value / 100 : undefined;
}
