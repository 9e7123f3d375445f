/**
 * A change from one JSON value to another. `[]` removes the value, and `[value]` replaces it. An object changes members of the value, by name
 * or by index. An array of another length is replaced.
 */
export type Difference = readonly [] | readonly [unknown] | { readonly [name: string]: Difference };

/** What a line changes: first numbered values, a new value with the numbers of all that have it, and then members by their names. */
export interface Change {
  readonly set: readonly (readonly unknown[])[];
  readonly named: Difference;
}

type Members = Readonly<Record<string, unknown>>;
/** The numbers below one object, by the names of its members. */
type Places = Map<string, Places | number>;

/**
 * Numbers of the values in a file. A text or number that a line sets by its name has a number from the next line on, counted from 0 in the
 * order in which the names stand in the file. So a name stands in a file once, however often its value changes.
 */
export class Cells {
  readonly #places: Places = new Map();
  #count = 0;
  /** Kept by a reader only. */
  readonly #paths: (readonly string[])[] | undefined;

  constructor(use: 'read' | 'write') {
    this.#paths = use === 'read' ? [] : undefined;
  }

  /** The numbers of one entry of a section. */
  of(section: string, name: string): Places | number | undefined {
    const places = this.#places.get(section);
    return typeof places === 'object' ? places.get(name) : undefined;
  }

  /** Numbers what a line sets by its name. Call it with each line, in their order. */
  add(named: Difference): void {
    if (!isWhole(named)) this.#add(named, this.#places, []);
  }

  #add(named: { readonly [name: string]: Difference }, places: Places, above: readonly string[]): void {
    for (const [name, one] of Object.entries(named)) {
      const [known, path] = [places.get(name), [...above, name]];
      if (isWhole(one)) {
        if (known !== undefined || !isSimple(one[0])) continue;
        places.set(name, this.#count);
        this.#count += 1;
        this.#paths?.push(path);
      } else if (typeof known !== 'number') {
        const below = known ?? new Map();
        places.set(name, below);
        this.#add(one, below, path);
      }
    }
  }

  /** Changes a state as a line says. Returns false for a line that is of another state. */
  apply(state: unknown, { set, named }: Change): boolean {
    for (const [value, ...numbers] of set) {
      for (const number of numbers) if (!replaced(state, this.#paths?.[number as number] ?? [], value)) return false;
    }
    applied(state, named);
    this.add(named);
    return true;
  }
}

/** Replaces the value at a path. Returns false when nothing is there. */
function replaced(state: unknown, path: readonly string[], value: unknown): boolean {
  let owner = state;
  for (const name of path.slice(0, -1)) owner = isObject(owner) && Object.hasOwn(owner, name) ? owner[name] : undefined;
  const last = path.at(-1);
  if (last === undefined || !isObject(owner)) return false;
  (owner as Record<string, unknown>)[last] = value;
  return true;
}

/**
 * The change of a value by names; undefined when JSON shows no further difference. `undefined` is absent. Values that have a number are added
 * to `set`, by their new value.
 */
export function difference(
  before: unknown,
  after: unknown,
  set: Map<unknown, number[]> = new Map(),
  places?: Places | number,
): Difference | undefined {
  if (before === after) return undefined;
  if (after === undefined) return [];
  const value = typeof after === 'bigint' ? String(after) : after;
  if (typeof places === 'number' && isSimple(value)) {
    const numbers = set.get(value);
    if (numbers === undefined) set.set(value, [places]);
    else numbers.push(places);
    return undefined;
  }
  if (!isObject(before) || !isObject(after) || Array.isArray(before) !== Array.isArray(after)) return [value];
  if (Array.isArray(before) && before.length !== (after as unknown as readonly unknown[]).length) return [value];
  let found: Record<string, Difference> | undefined;
  const compare = (name: string): void => {
    const changed = difference(before[name], after[name], set, typeof places === 'object' ? places.get(name) : undefined);
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
export function isChange(value: unknown): value is Change {
  if (!isObject(value) || !Array.isArray(value.set)) return false;
  return value.set.every((one) => Array.isArray(one) && isSimple(one[0])) && isDifference(value.named) && !isWhole(value.named);
}

function isDifference(value: unknown): value is Difference {
  if (!isObject(value)) return false;
  return isWhole(value as Difference) ? (value as unknown as readonly unknown[]).length <= 1 : Object.values(value).every(isDifference);
}

const isSimple = (value: unknown): boolean => typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);
const isObject = (value: unknown): value is Members => typeof value === 'object' && value !== null;
const isWhole = (change: Difference): change is readonly [] | readonly [unknown] => Array.isArray(change);
