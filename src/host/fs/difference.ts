/**
 * A change from one JSON value to another. `[]` removes the value, and `[value]` replaces it. An object changes members of the value, by name
 * or by index. An array of another length is replaced.
 */
export type Difference = readonly [] | readonly [unknown] | { readonly [name: string]: Difference };

type Members = Readonly<Record<string, unknown>>;

/** Undefined when JSON shows no difference. `undefined` is absent. */
export function difference(before: unknown, after: unknown): Difference | undefined {
  if (before === after) return undefined;
  if (after === undefined) return [];
  if (!isObject(before) || !isObject(after) || Array.isArray(before) !== Array.isArray(after)) return [after];
  if (Array.isArray(before) && before.length !== (after as unknown as readonly unknown[]).length) return [after];
  let found: Record<string, Difference> | undefined;
  const compare = (name: string): void => {
    const changed = difference(before[name], after[name]);
    if (changed === undefined) return;
    found ??= {};
    found[name] = changed;
  };
  for (const name in after) compare(name);
  for (const name in before) if (!(name in after)) compare(name);
  return found;
}

/** The value after a difference. Changes `before` where it can. */
export function applied(before: unknown, change: Difference): unknown {
  if (isWhole(change)) return change[0];
  const value = (isObject(before) ? before : {}) as Record<string, unknown>;
  for (const [name, one] of Object.entries(change)) {
    if (isWhole(one) && one.length === 0) delete value[name];
    else value[name] = applied(Object.hasOwn(value, name) ? value[name] : undefined, one);
  }
  return value;
}

/** Whether a parsed value is a change. Another program can write one that is none. */
export function isDifference(value: unknown): value is Difference {
  if (!isObject(value)) return false;
  return isWhole(value as Difference) ? (value as unknown as readonly unknown[]).length <= 1 : Object.values(value).every(isDifference);
}

const isObject = (value: unknown): value is Members => typeof value === 'object' && value !== null;
const isWhole = (change: Difference): change is readonly [] | readonly [unknown] => Array.isArray(change);
