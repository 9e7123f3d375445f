/** The list of before while both have the same elements. What depends on the list then keeps its output, too. */
export function sameListWhenEqual<T>(before: readonly T[] | undefined, now: readonly T[]): readonly T[] {
  if (before === undefined || before.length !== now.length) return now;
  for (let at = 0; at < now.length; at += 1) if (before[at] !== now[at]) return now;
  return before;
}

/**
 * The last outputs of a pure step, one for each key. A step whose inputs are the same objects as in the round before gives its last output.
 * All that the output depends on must be among the inputs.
 */
export class StepCache<V> {
  #before: ReadonlyMap<string, { readonly inputs: readonly unknown[]; readonly output: V }> = new Map();
  #now = new Map<string, { readonly inputs: readonly unknown[]; readonly output: V }>();

  of(key: string, inputs: readonly unknown[], step: () => V): V {
    const before = this.#before.get(key);
    const one = before !== undefined && sameListWhenEqual(before.inputs, inputs) === before.inputs ? before : { inputs, output: step() };
    this.#now.set(key, one);
    return one.output;
  }

  /** Ends a round: keys that were not asked for in it are forgotten. */
  end(): void {
    this.#before = this.#now;
    this.#now = new Map();
  }
}
