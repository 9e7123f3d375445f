/** Control characters, and invisible characters that can change the order of a line on a screen. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;

/** Makes foreign text safe for a terminal and a line: kernel lines, names of processes and pods, messages of drivers. */
export const cleanText = (text: string): string => text.replace(HIDDEN, ' ');

/** Cleans every text in plain data, and leaves out undefined values. */
export function cleaned<T>(value: T): T {
  if (typeof value === 'string') return cleanText(value) as T;
  if (Array.isArray(value)) return value.map(cleaned) as T;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return Object.fromEntries(entries.map(([name, part]) => [cleanText(name), cleaned(part)])) as T;
}
