import { visible } from '../model/one-line.ts';

/** Formats one log record as `time level message key=value …` and a newline. Values with special characters are quoted. */
export function formatTextLine(record: Readonly<Record<string, unknown>>): string {
  const { time, level, message, ...fields } = record;
  const parts = [String(time), String(level).toUpperCase().padEnd(5), visible(String(message ?? ''))];
  for (const [name, value] of Object.entries(fields)) {
    if (value !== undefined && !isEmptyList(value)) parts.push(`${name}=${formatValue(value)}`);
  }
  return `${parts.join(' ')}\n`;
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

function formatValue(value: unknown): string {
  if (isLoggedError(value)) return quote(value.message);
  return quote(plainText(value));
}

/** Writes a list as `a,b`, and a mapping as `key=value` with spaces between; inner mappings are in parentheses. */
function plainText(value: unknown): string {
  if (Array.isArray(value)) return value.map((item) => inner(item)).join(',');
  if (typeof value !== 'object' || value === null) return String(value);
  const known = Object.entries(value).filter(([, item]) => item !== undefined);
  return known.map(([key, item]) => `${key}=${inner(item)}`).join(' ');
}

const inner = (value: unknown): string =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? `(${plainText(value)})` : plainText(value);

/** The text format shows only the message of an error; the JSON format also has the stack. */
function isLoggedError(value: unknown): value is { message: string } {
  return typeof value === 'object' && value !== null && 'stack' in value && typeof (value as { message?: unknown }).message === 'string';
}

function quote(text: string): string {
  return /^[^\s"=]+$/.test(text) && visible(text) === text ? text : visible(JSON.stringify(text));
}
