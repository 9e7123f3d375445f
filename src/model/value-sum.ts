import type { Value } from './metric.ts';

const isExact = (value: Value): boolean => typeof value === 'bigint' || Number.isInteger(value);

/** Sum of two values. Integers stay exact. */
export function addValues(a: Value, b: Value): Value {
  if (typeof a === 'number' && typeof b === 'number') return a + b;
  return isExact(a) && isExact(b) ? narrow(BigInt(a) + BigInt(b)) : Number(a) + Number(b);
}

/** `a` without `b`. Integers stay exact. */
export function subtractValues(a: Value, b: Value): Value {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return isExact(a) && isExact(b) ? narrow(BigInt(a) - BigInt(b)) : Number(a) - Number(b);
}

function narrow(value: bigint): Value {
  return value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value;
}

/** A value as JSON can hold it. A `bigint` is its decimal digits. */
export type SavedValue = number | string;

export const savedValue = (value: Value): SavedValue => (typeof value === 'bigint' ? String(value) : value);

/** Undefined for anything that {@link savedValue} does not give. JSON turns a number that is not finite into null. */
export function restoredValue(saved: unknown): Value | undefined {
  if (typeof saved === 'number') return saved;
  return typeof saved === 'string' && /^-?\d{1,40}$/.test(saved) ? BigInt(saved) : undefined;
}
