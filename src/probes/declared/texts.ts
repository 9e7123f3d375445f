import type { Value } from '../../model/metric.ts';
import type { DeclaredSource } from './declaration.ts';

/** Longest text that is looked at. */
const MOST_CHARACTERS = 65_536;
/** One more than values, so that it shows when values are left out. */
const MOST_KEYS = 257;

/** A text that became a value, or why it did not: `absent` is no value, `invalid` is a text that the declaration does not describe. */
type Parsed = { readonly text: string; readonly state?: undefined } | { readonly state: 'absent' | 'invalid'; readonly text?: undefined };

/** One value of a text, with the key of its line. */
interface KeyedText {
  readonly key?: string;
  readonly parsed: Parsed;
}

type Rules = Pick<DeclaredSource, 'line' | 'each' | 'field' | 'separator' | 'unit' | 'map' | 'absent' | 'without'>;

/** Takes the declared part of a text. With `each` there is one entry for each line that ends in a number. */
export function textsOf(text: string, rules: Rules): readonly KeyedText[] {
  const bounded = text.slice(0, MOST_CHARACTERS);
  if (rules.each === undefined) return [{ parsed: partOf(bounded, rules) }];
  const found: KeyedText[] = [];
  for (const line of bounded.split('\n')) {
    if (found.length >= MOST_KEYS) break;
    const trimmed = line.trim();
    const at = Math.max(trimmed.lastIndexOf(' '), trimmed.lastIndexOf('\t'));
    if (at <= 0) continue;
    const key = trimmed.slice(0, at).trim().replace(/:$/, '');
    if (key !== '' && rules.without?.includes(key) !== true) found.push({ key, parsed: cleaned(trimmed.slice(at + 1), rules) });
  }
  return found;
}

function partOf(text: string, rules: Rules): Parsed {
  const { line, field, separator } = rules;
  let rest: string | undefined = text;
  if (line !== undefined) {
    rest = text
      .split('\n')
      .map((each) => each.trim())
      .find((each) => each.startsWith(line))
      ?.slice(line.length);
  }
  if (rest !== undefined && field !== undefined) {
    const fields = separator === undefined ? rest.trim().split(/\s+/) : rest.split(separator);
    rest = fields[field - 1];
  }
  return rest === undefined ? { state: 'absent' } : cleaned(rest, rules);
}

function cleaned(text: string, { unit, map, absent }: Rules): Parsed {
  let value = text.trim();
  if (value === '' || absent?.some((one) => String(one) === value) === true) return { state: 'absent' };
  if (unit !== undefined) {
    if (!value.endsWith(unit)) return { state: 'invalid' };
    value = value.slice(0, value.length - unit.length).trim();
  }
  if (map === undefined) return { text: value };
  return Object.hasOwn(map, value) ? { text: String(map[value]) } : { state: 'invalid' };
}

type Scaling = Pick<DeclaredSource, 'hex' | 'scale' | 'offset'>;

/** Reads a number. Whole numbers beyond 2^53 stay exact. Undefined for a text that is no number. */
export function numberOf(text: string, { hex = false, scale = 1, offset = 0 }: Scaling = {}): Value | undefined {
  const whole = wholeNumber(text, hex);
  if (whole !== undefined && Number.isSafeInteger(scale) && Number.isSafeInteger(offset))
    return shortened(whole * BigInt(scale) + BigInt(offset));
  const value = whole === undefined ? decimal(text) : Number(whole);
  if (value === undefined) return undefined;
  // A thousandth is no binary fraction: 45300 / 1000 is exact where 45300 * 0.001 is not.
  const inverse = 1 / scale;
  const scaled = Math.abs(scale) < 1 && Number.isSafeInteger(Math.round(inverse)) && Math.abs(inverse - Math.round(inverse)) < 1e-6;
  const result = (scaled ? value / Math.round(inverse) : value * scale) + offset;
  return Number.isFinite(result) ? result : undefined;
}

function wholeNumber(text: string, isHex: boolean): bigint | undefined {
  if (/^0x[0-9a-f]{1,32}$/i.test(text)) return BigInt(text);
  if (isHex) return /^[0-9a-f]{1,32}$/i.test(text) ? BigInt(`0x${text}`) : undefined;
  return /^[+-]?\d{1,39}$/.test(text) ? BigInt(text) : undefined;
}

const decimal = (text: string): number | undefined =>
  /^[+-]?\d{1,39}(?:\.\d{0,39})?(?:e[+-]?\d{1,3})?$/i.test(text) ? Number(text) : undefined;

const shortened = (value: bigint): Value =>
  value <= BigInt(Number.MAX_SAFE_INTEGER) && value >= BigInt(Number.MIN_SAFE_INTEGER) ? Number(value) : value;
