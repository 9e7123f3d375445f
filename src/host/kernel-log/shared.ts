/** More texts of one turn are not kept: the first poll after the start reads the whole log. */
const MOST_KEPT = 20_000;

/**
 * A function that works once for equal texts within one turn of the event loop. The families follow the log each by itself and are due at the
 * same moment: what one of them has read, the others read too. Its results must not be changed.
 */
export function onceInTurn<Result>(make: (text: string) => Result): (text: string) => Result {
  const known = new Map<string, Result>();
  return (text) => {
    const kept = known.get(text);
    if (kept !== undefined) return kept;
    const result = make(text);
    if (known.size === 0) setImmediate(() => known.clear());
    if (known.size < MOST_KEPT) known.set(text, result);
    return result;
  };
}
