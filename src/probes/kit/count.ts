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
