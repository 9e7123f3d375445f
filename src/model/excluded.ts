/** Whether a name matches one of the patterns, in which `*` stands for any characters. */
export const matchesAny = (patterns: readonly string[], name: string): boolean => patterns.some((pattern) => matches(pattern, name));

/** Takes the parts between the stars one after the other, each at its first place, so its time has a bound. */
function matches(pattern: string, name: string): boolean {
  const parts = pattern.split('*');
  const [first = ''] = parts;
  if (parts.length === 1) return first === name;
  const last = parts.at(-1) as string;
  if (!name.startsWith(first) || !name.endsWith(last) || name.length < first.length + last.length) return false;
  const end = name.length - last.length;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = name.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/** The patterns of `device.exclude`, each `family/id` or id, that can hit a device of the family, as patterns of ids. */
export const excludedOf = (family: string, patterns: readonly string[]): string[] =>
  patterns.flatMap((pattern) => {
    const slash = pattern.indexOf('/');
    if (slash < 0) return [pattern];
    return matches(pattern.slice(0, slash), family) ? [pattern.slice(slash + 1)] : [];
  });
