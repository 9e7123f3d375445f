import { defined } from '../model/defined.ts';
import type { OptionSpec, OptionSpecs } from '../model/options.ts';
import type { StructuredPart } from './structured.ts';

export const ENVIRONMENT_PREFIX = 'DEVICE_AGENT_';

/** The environment variable of an option. */
export const variableOf = (key: string): string => ENVIRONMENT_PREFIX + key.toUpperCase().replaceAll(/[.-]/g, '_');

/** Options of one part of the agent, and their names. */
export interface OptionSection {
  /** Dotted path, such as `path` or `probe.<family>`. */
  readonly path: string;
  /** Heading in help and reference. */
  readonly title: string;
  readonly options: OptionSpecs;
  /** Adds a boolean option with the section's own path: the flag `--probe.<family>`, or the key `enabled` of the section in the file. */
  readonly toggle?: OptionSpec<'boolean'>;
  /** False when its options cannot be set in the file. Default true. */
  readonly inFile?: boolean;
  /** A running agent takes other values of its options. Default false: they take effect at the next start. */
  readonly isLive?: boolean;
}

/** One option with all its names. */
export interface OptionEntry {
  /** Dotted name, as in the flag: `probe.<family>.timeout`, or `probe.<family>` for the section's on/off option. */
  readonly key: string;
  readonly section: OptionSection;
  readonly spec: OptionSpec;
  readonly flag: string;
  /** The flag `--no-…`; only set for booleans. */
  readonly negation?: string;
  readonly environment: string;
  /** Keys from the top of the file; absent when the option cannot be set in the file. */
  readonly filePath?: readonly string[];
  /** A running agent takes another value. */
  readonly isLive: boolean;
}

/** All options of the agent. Flags, environment, file, schema, help and reference are derived from it. */
export interface Registry {
  readonly sections: readonly OptionSection[];
  readonly entries: readonly OptionEntry[];
  readonly structured: readonly StructuredPart[];
  byKey(key: string): OptionEntry;
  byEnvironment(variable: string): OptionEntry | undefined;
}

/** Throws when two options share a flag, a variable or a file key, which is a bug in a declaration. */
export function createRegistry(sections: readonly OptionSection[], structured: readonly StructuredPart[] = []): Registry {
  const entries = sections.flatMap(sectionEntries);
  const keys = indexBy(entries, (entry) => entry.key);
  const variables = indexBy(entries, (entry) => entry.environment);
  indexBy(
    entries.filter((entry) => entry.filePath !== undefined),
    (entry) => (entry.filePath ?? []).join('.'),
  );
  return {
    sections,
    entries,
    structured,
    byKey(key) {
      const entry = keys.get(key);
      if (entry === undefined) throw new Error(`no option ${key}`);
      return entry;
    },
    byEnvironment: (variable) => variables.get(variable),
  };
}

function sectionEntries(section: OptionSection): OptionEntry[] {
  const inFile = section.inFile ?? true;
  const base = section.path.split('.');
  const own = Object.entries(section.options).filter(([, { follows }]) => follows === undefined);
  const entries = own.map(([name, spec]) => entryOf(section, `${section.path}.${name}`, spec, inFile ? [...base, name] : undefined));
  if (section.toggle !== undefined) entries.unshift(entryOf(section, section.path, section.toggle, [...base, 'enabled'], false));
  return entries;
}

function entryOf(
  section: OptionSection,
  key: string,
  spec: OptionSpec,
  filePath: readonly string[] | undefined,
  isLive = section.isLive ?? false,
): OptionEntry {
  return {
    key,
    section,
    spec,
    flag: `--${key}`,
    environment: variableOf(key),
    ...(spec.kind === 'boolean' ? { negation: `--no-${key}` } : {}),
    ...defined({ filePath }),
    isLive,
  };
}

function indexBy(entries: readonly OptionEntry[], nameOf: (entry: OptionEntry) => string): Map<string, OptionEntry> {
  const index = new Map<string, OptionEntry>();
  for (const entry of entries) {
    const name = nameOf(entry);
    if (index.has(name)) throw new Error(`two options have the name ${name}`);
    index.set(name, entry);
  }
  return index;
}
