type Text = (text: string) => string;

/** Parts of the configuration file that a replay reads. */
const PARTS: readonly string[] = ['join.rules', 'health', 'plugin.resources', 'expect', 'usage.idle'];
const PROGRAM_PATH = /^probe\.[^.]+\.[a-z-]*-path$/;

/** Options whose values name devices. */
const NAMES_DEVICES = /^(?:probe|device)\./;
const PLAIN = /^(?:[a-z-]{0,32}|\d{1,12}(?:\.\d{1,6})?(?:[a-z%]{1,3}|[KMG]i?B)?)$/;

/** Redacts the value of one option: numbers, durations and words stay. `id` is for ids of devices, `other` for all other texts. */
export function redactOption(key: string, value: string, id: Text, other: Text): string {
  return value
    .split(',')
    .map((item) => {
      if (item.startsWith('/')) return PROGRAM_PATH.test(key) ? redactProgram(item, id) : '/replaced';
      return PLAIN.test(item) ? item : (NAMES_DEVICES.test(key) ? id : other)(item);
    })
    .join(',');
}

/** A replay has a program of the same name in the place of each program. */
export const redactProgram = (path: string, id: Text): string => {
  const name = id(path.split('/').at(-1) as string);
  return path.startsWith('/') ? `/replaced/${name}` : name;
};

/** Redacts the parts that a replay reads, and leaves out the others. */
export function redactParts(parts: Readonly<Record<string, unknown>>, text: Text): Readonly<Record<string, unknown>> {
  const other = (value: unknown): unknown => {
    if (typeof value === 'string') return text(value);
    if (Array.isArray(value)) return value.map(other);
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [text(key), other(inner)]));
  };
  return Object.fromEntries(Object.entries(parts).flatMap(([path, value]) => (PARTS.includes(path) ? [[path, other(value)]] : [])));
}
