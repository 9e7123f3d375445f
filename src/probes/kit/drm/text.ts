import { countOf, plainValue } from '../count.ts';

/** Text of an attribute without padding: some tools serve the files of a card padded with NUL bytes to a whole page. */
export function plainText(text: string): string {
  const end = text.indexOf('\0');
  return (end < 0 ? text : text.slice(0, end)).trim();
}

/** Parses a counter of up to 64 bits; undefined for other text, and for all ones. The result is exact. */
export function parseCount(text: string | undefined): number | bigint | undefined {
  const value = countOf(plainText(text ?? ''));
  return value === undefined ? undefined : plainValue(value);
}

/** Parses a percentage of an integer, 0 to 100, as a ratio; undefined for other text. */
export function parsePercent(text: string | undefined): number | undefined {
  const value = parseCount(text);
  return typeof value === 'number' && value <= 100 ? value / 100 : undefined;
}
