import { countOf } from '../kit/count.ts';

/** Text of an attribute without padding: drives pad their names with blanks, and some with NUL bytes. */
export function plainText(text: string): string {
  const end = text.indexOf('\0');
  return (end < 0 ? text : text.slice(0, end)).trim();
}

/** Parses a count of up to 64 bits; undefined for other text. */
export const parseCount = (text: string): bigint | undefined => countOf(plainText(text));

/** Parses a flag, 0 or 1; undefined for other text. */
export function parseFlag(text: string): boolean | undefined {
  const digit = plainText(text);
  return digit === '0' || digit === '1' ? digit === '1' : undefined;
}
