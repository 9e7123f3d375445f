import { oneLine } from '../model/one-line.ts';

/** Cleans every text in plain data, and leaves out undefined values. */
export function cleaned<T>(value: T): T {
  if (typeof value === 'string') return oneLine(value) as T;
  if (Array.isArray(value)) return value.map(cleaned) as T;
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, part]) => part !== undefined);
  return Object.fromEntries(entries.map(([name, part]) => [oneLine(name), cleaned(part)])) as T;
}
