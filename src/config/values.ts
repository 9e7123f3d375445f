import { formatDuration, type Millis, millis, parseDuration } from '../model/duration.ts';
import { isExpression } from '../model/expression.ts';
import type { OptionSpec } from '../model/options.ts';
import { nearestHint } from './nearest.ts';

/** A value of any option: durations are milliseconds. */
export type OptionValue = string | boolean | number | readonly string[];

/** A value, or in words what is wrong with what was given. */
export type Checked =
  | { readonly value: OptionValue; readonly problem?: undefined }
  | { readonly value?: undefined; readonly problem: string };

/** What a value must be, to follow the word "must". */
export function expectation(spec: OptionSpec): string {
  switch (spec.kind) {
    case 'boolean':
      return 'be true or false';
    case 'duration':
      return 'be a duration such as 10s, 1m30s or 250ms';
    case 'integer':
      return 'be a whole number';
    case 'list':
      return 'be a list of texts';
    case 'string':
      if (spec.isExpression) return 'be a regular expression';
      return spec.choices === undefined ? 'be a text' : `be one of ${spec.choices.join(', ')}`;
  }
}

/** Reads the text of a flag or an environment variable. Lists are separated by commas. */
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

/** Checks a value of the configuration file, after YAML gave it a type. */
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

/** The value as it is written in the file: durations as text. */
export function toFileValue(spec: OptionSpec, value: OptionValue): OptionValue {
  return spec.kind === 'duration' ? formatDuration(value as Millis) : value;
}

/** The value as it is written after a flag. */
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
  const limit = value < min ? `${inWords(spec, min)} or more` : value > max ? `${max} or less` : undefined;
  return limit === undefined ? { value } : { problem: `must be ${limit}, not ${toText(spec, value)}` };
}

const inWords = (spec: OptionSpec, value: number): string => (spec.kind === 'duration' ? formatDuration(millis(value)) : String(value));

function checkString(spec: OptionSpec, text: string): Checked {
  if (spec.isExpression && !isExpression(text)) return wrong(spec, text);
  if (spec.choices === undefined || spec.choices.includes(text)) return { value: text };
  return { problem: `must ${expectation(spec)}, not ${show(text)}${nearestHint(text, spec.choices)}` };
}

function wrong(spec: OptionSpec, value: unknown): Checked {
  return { problem: `must ${expectation(spec)}, not ${show(value)}` };
}

/** A foreign value in an error message: quoted, and short. */
export function show(value: unknown): string {
  if (Array.isArray(value)) return 'a list';
  if (value !== null && typeof value === 'object') return 'a mapping';
  if (value === null || value === undefined) return 'nothing';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}
