import { UserError } from '../errors.ts';
import type { UntrustedRead } from '../host/fs/untrusted-file.ts';
import type { Millis } from '../model/duration.ts';
import { excludedOf } from '../model/excluded.ts';
import type { OptionSpec, OptionSpecs, OptionValues } from '../model/options.ts';
import { pacedMs } from '../probes/kit/pace.ts';
import { type Environment, readEnvironment, type UnknownVariable, unknownVariables } from './environment.ts';
import type { FileContent } from './file.ts';
import type { OptionEntry, Registry } from './registry.ts';
import type { StructuredPart } from './structured.ts';
import { type OptionValue, parseText } from './values.ts';

/** Source of a value. */
export type Origin =
  | { readonly from: 'default' }
  | { readonly from: 'file'; readonly file: string; readonly line: number }
  | { readonly from: 'environment'; readonly variable: string }
  | { readonly from: 'flag'; readonly flag: string };

export function describeOrigin(origin: Origin): string {
  switch (origin.from) {
    case 'default':
      return 'default';
    case 'file':
      return `file ${origin.file}:${origin.line}`;
    case 'environment':
      return `environment ${origin.variable}`;
    case 'flag':
      return `flag ${origin.flag}`;
  }
}

/** The effective value of one option, and its source. */
export interface Setting {
  readonly entry: OptionEntry;
  readonly value: OptionValue;
  readonly origin: Origin;
}

export interface StructuredSetting {
  readonly part: StructuredPart;
  readonly value: unknown;
  readonly origin: Origin;
}

/** Flags of the command line, keyed by option key: the text of each flag, or true or false for boolean flags. */
export type Flags = ReadonlyMap<string, string | boolean>;

/** The configuration file that the values are from. */
export interface ConfigFile {
  readonly path: string;
  /** SHA-256 of its text, in hexadecimal. */
  readonly digest: string;
}

/** The effective values. Precedence from low to high: defaults, file, environment, flags. */
export class Configuration {
  readonly settings: readonly Setting[];
  readonly structured: readonly StructuredSetting[];
  /** Absent when no file is configured. */
  readonly file: ConfigFile | undefined;
  readonly #byKey: ReadonlyMap<string, Setting>;

  constructor(settings: readonly Setting[], structured: readonly StructuredSetting[], file?: ConfigFile) {
    this.settings = settings;
    this.structured = structured;
    this.file = file;
    this.#byKey = new Map(settings.map((setting) => [setting.entry.key, setting]));
  }

  setting(key: string): Setting {
    const setting = this.#byKey.get(key);
    if (setting === undefined) throw new Error(`no option ${key}`);
    return setting;
  }

  /** Returns the values of the section at `path`; `specs` are the section's options. */
  section<S extends OptionSpecs>(path: string, specs: S): OptionValues<S> {
    const values = Object.entries(specs).map(([name, spec]) => [name, this.#valueOf(path, name, spec)]);
    return Object.fromEntries(values) as OptionValues<S>;
  }

  #valueOf(path: string, name: string, spec: OptionSpec): OptionValue {
    const { follows } = spec;
    if (follows === undefined) return this.setting(`${path}.${name}`).value;
    if (follows === 'constant') return spec.default;
    const shared = this.setting(follows).value;
    return follows === 'device.exclude'
      ? excludedOf(path.replace(/^probe\./, ''), shared as string[])
      : pacedMs(shared as Millis, spec.default as Millis);
  }

  /** Returns the value of a section's on/off option. */
  isOn(path: string): boolean {
    return this.setting(path).value === true;
  }

  /** Paths of the sections and parts with a value that is not the default, without the file's own name. */
  givenSections(): string[] {
    const options = this.settings.filter(({ origin, entry }) => origin.from !== 'default' && entry.section.path !== 'config');
    const parts = this.structured.filter(({ origin }) => origin.from !== 'default');
    return [...new Set([...options.map(({ entry }) => entry.section.path), ...parts.map(({ part }) => part.path)])];
  }

  part<T>(part: StructuredPart<T>): T {
    const found = this.structured.find((setting) => setting.part.path === part.path);
    return (found === undefined ? part.default : found.value) as T;
  }
}

export interface LoadedConfiguration {
  readonly configuration: Configuration;
  /** Unknown variables with the agent's prefix. They cause a warning, not an error. */
  readonly unknownVariables: readonly UnknownVariable[];
}

/** Throws {@link UserError} for an invalid value from any source. `read`: the configuration file, when it was read before. */
export async function loadConfiguration(
  registry: Registry,
  environment: Environment,
  flags: Flags,
  read?: UntrustedRead,
): Promise<LoadedConfiguration> {
  const explicit = new Map<string, Setting>();
  for (const { entry, value } of readEnvironment(registry, environment).values()) {
    explicit.set(entry.key, { entry, value, origin: { from: 'environment', variable: entry.environment } });
  }
  for (const [key, given] of flags) explicit.set(key, fromFlag(registry.byKey(key), given));
  const file = await loadFile(registry, explicit.get('config.file'), read);
  const settings = registry.entries.map((entry) => explicit.get(entry.key) ?? fromFile(entry, file) ?? fromDefault(entry));
  const structured = registry.structured.map((part) => structuredSetting(part, file));
  const source = file && { path: file.file, digest: file.digest };
  return { configuration: new Configuration(settings, structured, source), unknownVariables: unknownVariables(registry, environment) };
}

function fromFlag(entry: OptionEntry, given: string | boolean): Setting {
  const flag = given === false ? (entry.negation ?? entry.flag) : entry.flag;
  if (typeof given === 'boolean') return { entry, value: given, origin: { from: 'flag', flag } };
  const { value, problem } = parseText(entry.spec, given);
  if (problem !== undefined) throw new UserError('flag-invalid', { flag, problem });
  return { entry, value, origin: { from: 'flag', flag } };
}

async function loadFile(
  registry: Registry,
  setting: Setting | undefined,
  read: UntrustedRead | undefined,
): Promise<FileContent | undefined> {
  if (setting === undefined || setting.value === '') return undefined;
  const { readConfigFile } = await import('./file.ts');
  return await readConfigFile(String(setting.value), describeOrigin(setting.origin), registry, read);
}

function fromFile(entry: OptionEntry, content: FileContent | undefined): Setting | undefined {
  const found = content?.options.get(entry.key);
  if (content === undefined || found === undefined) return undefined;
  return { entry, value: found.value, origin: { from: 'file', file: content.file, line: found.line } };
}

function fromDefault(entry: OptionEntry): Setting {
  return { entry, value: entry.spec.default, origin: { from: 'default' } };
}

function structuredSetting(part: StructuredPart, content: FileContent | undefined): StructuredSetting {
  const found = content?.structured.get(part.path);
  if (content === undefined || found === undefined) return { part, value: part.default, origin: { from: 'default' } };
  return { part, value: found.value, origin: { from: 'file', file: content.file, line: found.line } };
}
