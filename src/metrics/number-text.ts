import type { Value } from '../model/metric.ts';

/** The longest text of a number that is no `bigint`: `-0.0000012345678901234567`. */
const LONGEST = 25;
const ZERO = 48;
const DIGITS = 7;
const PART = 10 ** DIGITS;

/** Room in bytes that is enough for the text of a value. */
export function roomFor(value: Value): number {
  return typeof value === 'number' ? LONGEST : String(value).length;
}

/** Writes a value as `String` does, at a place where there is room for it; gives the place after it. No text is made for integers. */
export function writeValue(target: Uint8Array, at: number, value: Value): number {
  if (typeof value === 'number' && value >= 0 && Number.isSafeInteger(value)) return writeInteger(target, at, value);
  const text = String(value);
  for (let n = 0; n < text.length; n += 1) target[at + n] = text.charCodeAt(n);
  return at + text.length;
}

/** In parts that fit into 32 bits, with which a processor counts several times as fast. */
function writeInteger(target: Uint8Array, at: number, value: number): number {
  if (value < PART) return writeDigits(target, at, value | 0, digitsOf(value | 0));
  let high = Math.floor(value / PART);
  let low = value - high * PART;
  // Beyond 2^49 the quotient may have been rounded up to the next integer.
  if (low < 0) {
    high -= 1;
    low += PART;
  }
  return writeDigits(target, writeInteger(target, at, high), low | 0, DIGITS);
}

function writeDigits(target: Uint8Array, at: number, value: number, count: number): number {
  let rest = value;
  for (let place = at + count - 1; place >= at; place -= 1) {
    const next = (rest / 10) | 0;
    target[place] = ZERO + rest - next * 10;
    rest = next;
  }
  return at + count;
}

function digitsOf(value: number): number {
  let count = 1;
  for (let limit = 10; value >= limit; limit *= 10) count += 1;
  return count;
}
