import { visible } from '../model/one-line.ts';
import { type Configuration, describeOrigin } from './configuration.ts';
import { toFileValue, toText } from './values.ts';
import { yamlText } from './yaml-text.ts';

/** A place in the printed file: a value with its origin, or what is below it. */
type Place = Map<string, Place> | { readonly value: unknown; readonly origin: string };

/** Prints the effective values as a configuration file, each with its origin as a comment. Reading the file gives the same values. */
export async function printYaml(configuration: Configuration): Promise<string> {
  const root: Place = new Map();
  for (const { entry, value, origin } of configuration.settings)
    if (entry.filePath !== undefined) put(root, entry.filePath, toFileValue(entry.spec, value), visible(describeOrigin(origin)));
  for (const { part, value, origin } of configuration.structured) put(root, part.path.split('.'), value, visible(describeOrigin(origin)));
  return (await linesIn(root)).map((line) => `${line}\n`).join('');
}

function put(at: Map<string, Place>, [key = '', ...rest]: readonly string[], value: unknown, origin: string): void {
  if (rest.length === 0) return void at.set(key, { value, origin });
  const below = at.get(key);
  const next = below instanceof Map ? below : new Map<string, Place>();
  at.set(key, next);
  put(next, rest, value, origin);
}

const linesIn = async (places: ReadonlyMap<string, Place>): Promise<readonly string[]> =>
  (await Promise.all([...places].map(([key, place]) => linesOf(key, place)))).flat();

async function linesOf(key: string, place: Place): Promise<readonly string[]> {
  if (place instanceof Map) return [`${key}:`, ...(await linesIn(place)).map((line) => `  ${line}`)];
  const { value, origin } = place;
  const isFlow = Array.isArray(value) && value.every((item) => typeof item === 'string');
  const lines = (await yamlText({ [key]: value }, isFlow ? { flowLevel: 1 } : {})).trimEnd().split('\n');
  // Values with several lines get the comment before the key.
  return lines.length === 1 ? [`${lines[0]} # ${origin}`] : [`# ${origin}`, ...lines];
}

/** Returns rows of option, value and origin. */
export function configurationRows(configuration: Configuration): (readonly [string, string, string])[] {
  return [
    ...configuration.settings.map(({ entry, value, origin }) => [entry.key, toText(entry.spec, value), describeOrigin(origin)] as const),
    ...configuration.structured.map(({ part, value, origin }) => [part.path, JSON.stringify(value), describeOrigin(origin)] as const),
  ];
}

/** Prints JSON keyed by option key; `more` adds values that are derived from the configuration. */
export function printJson(configuration: Configuration, more: Readonly<Record<string, unknown>> = {}): string {
  const options = configuration.settings.map(({ entry, value, origin }) => [
    entry.key,
    { value: toFileValue(entry.spec, value), origin: describeOrigin(origin) },
  ]);
  const structured = configuration.structured.map(({ part, value, origin }) => [part.path, { value, origin: describeOrigin(origin) }]);
  return `${JSON.stringify({ ...Object.fromEntries([...options, ...structured]), ...more }, null, 2)}\n`;
}
