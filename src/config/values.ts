import { formatDuration, type Millis, millis, parseDuration } from '../model/duration.ts';
import type { OptionSpec } from '../model/options.ts';
import { nearestHint } from './nearest.ts';

/** A value of any option. Durations are in milliseconds. */
export type OptionValue = string | boolean | number | readonly string[];

/** A valid value, or a text that describes the problem. */
export type Checked =
  | { readonly value: OptionValue; readonly problem?: undefined }
  | { readonly value?: undefined; readonly problem: string };

/** Describes the valid values of an option, as the text after the word "must". */
export function expectation(spec: OptionSpec): string {
  switch (spec.kind) {
    case 'boolean':
      return 'be true or false';
    case 'duration':
      return 'be a duration such as 10s, 1m30s or 250ms';
    case 'integer':
      return 'be an integer';
    case 'list':
      return 'be a list of strings';
    case 'string':
      return spec.choices === undefined ? 'be a string' : `be one of ${spec.choices.join(', ')}`;
  }
}

/** Parses the text of a flag or an environment variable. Commas separate list items. */
export function parseText(spec: OptionSpec, text: string): Checked {
  switch (spec.kind) {
    case 'boolean':
      return parseBoolean(text) ?? wrong(spec, text);
    case 'duration':
      return checkDuration(spec, text);
    case 'integer':
      return /^[+-]?\d{1,15}$/.test(text.trim()) ? checkRange(spec, Number(text)) : wrong(spec, text);
    case 'list':
      return { value: splitList(text) };
    case 'string':
      return checkString(spec, text);
  }
}

/** Checks a parsed value of the configuration file. */
export function checkFileValue(spec: OptionSpec, value: unknown): Checked {
  switch (spec.kind) {
    case 'boolean':
      return typeof value === 'boolean' ? { value } : wrong(spec, value);
    case 'duration':
      return typeof value === 'string' || value === 0 ? checkDuration(spec, String(value)) : wrong(spec, value);
    case 'integer':
      return Number.isSafeInteger(value) ? checkRange(spec, value as number) : wrong(spec, value);
    case 'list':
      return Array.isArray(value) && value.every((item) => typeof item === 'string') ? { value } : wrong(spec, value);
    case 'string':
      return typeof value === 'string' ? checkString(spec, value) : wrong(spec, value);
  }
}

/** Formats the value for the file, with durations as text. */
export function toFileValue(spec: OptionSpec, value: OptionValue): OptionValue {
  return spec.kind === 'duration' ? formatDuration(value as Millis) : value;
}

/** Formats the value as the text of a flag. */
export function toText(spec: OptionSpec, value: OptionValue): string {
  const plain = toFileValue(spec, value);
  return typeof plain === 'object' ? plain.join(',') : String(plain);
}

function parseBoolean(text: string): Checked | undefined {
  if (['true', '1', 'yes', 'on'].includes(text.trim().toLowerCase())) return { value: true };
  if (['false', '0', 'no', 'off'].includes(text.trim().toLowerCase())) return { value: false };
  return undefined;
}

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function checkDuration(spec: OptionSpec, text: string): Checked {
  const duration = parseDuration(text);
  return duration === undefined || !Number.isSafeInteger(duration) ? wrong(spec, text) : checkRange(spec, duration);
}

function checkRange(spec: OptionSpec, value: number): Checked {
  const { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY } = spec;
  const limit = value < min ? `${limitText(spec, min)} or more` : value > max ? `${max} or less` : undefined;
  return limit === undefined ? { value } : { problem: `must be ${limit}, not ${toText(spec, value)}` };
}

const limitText = (spec: OptionSpec, value: number): string => (spec.kind === 'duration' ? formatDuration(millis(value)) : String(value));

function checkString(spec: OptionSpec, text: string): Checked {
  if (spec.choices === undefined || spec.choices.includes(text)) return { value: text };
  return { problem: `must ${expectation(spec)}, not ${show(text)}${nearestHint(text, spec.choices)}` };
}

function wrong(spec: OptionSpec, value: unknown): Checked {
  return { problem: `must ${expectation(spec)}, not ${show(value)}` };
}

/** Formats a foreign value for an error message: quoted and shortened. */
export function show(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value !== null && typeof value === 'object') return 'a mapping';
  if (value === null || value === undefined) return 'nothing';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
