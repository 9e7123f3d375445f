/** Whether two values are equal as plain data: primitives, arrays and objects of the same. `undefined` members count as absent. */
export function arePlainEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && areEqualLists(a, b);
  return hasMembersOf(a, b) && hasMembersOf(b, a);
}

function areEqualLists(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((item, index) => arePlainEqual(item, b[index]));
}

function hasMembersOf(a: object, b: object): boolean {
  for (const [name, value] of Object.entries(b)) if (!arePlainEqual((a as Record<string, unknown>)[name], value)) return false;
  return true;
}
