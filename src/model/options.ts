import { defined } from './defined.ts';
import { type Millis, millis } from './duration.ts';

/** Value types of flags, environment variables and configuration file. */
export type OptionKind = 'string' | 'boolean' | 'duration' | 'integer' | 'list';

type ValueOf = { string: string; boolean: boolean; duration: Millis; integer: number; list: readonly string[] };

/** Declares one option: a flag, an environment variable, a key of the configuration file and a row of the reference. */
export interface OptionSpec<K extends OptionKind = OptionKind> {
  readonly kind: K;
  readonly default: ValueOf[K];
  /** One sentence, without the default. */
  readonly help: string;
  /** Allowed values, for kind `string`. */
  readonly choices?: readonly string[];
  /** Smallest allowed value, for kinds `integer` and `duration` (milliseconds). */
  readonly min?: number;
  /** Largest allowed value, for kind `integer`. */
  readonly max?: number;
  /**
   * Where the value of an option comes from that has no flag, variable or key of its own: it is constant, so only tests give another, or it
   * follows an option of all families.
   */
  readonly follows?: 'constant' | SharedOption;
}

/** Options of which each family takes its part; see {@link pacedOption} and {@link excludeOption}. */
export type SharedOption = 'refresh.slow' | 'refresh.facts' | 'device.exclude';

/** Options of one part, keyed by name in kebab-case. Each part declares its own options; the configuration only sets the values. */
export type OptionSpecs = Readonly<Record<string, OptionSpec>>;

/** Values of a set of option specs. */
export type OptionValues<S extends OptionSpecs> = { readonly [K in keyof S]: ValueOf[S[K]['kind']] };

export const stringOption = (value: string, help: string, choices?: readonly string[]): OptionSpec<'string'> =>
  choices === undefined ? { kind: 'string', default: value, help } : { kind: 'string', default: value, help, choices };
export const booleanOption = (value: boolean, help: string): OptionSpec<'boolean'> => ({ kind: 'boolean', default: value, help });
export const durationOption = (value: Millis, help: string, min = 0): OptionSpec<'duration'> => ({
  kind: 'duration',
  default: value,
  help,
  min,
});
export const integerOption = (value: number, help: string, min = 0, max?: number): OptionSpec<'integer'> => ({
  kind: 'integer',
  default: value,
  help,
  min,
  ...defined({ max }),
});
/** The spec of a value that users do not set. */
export const constant = <K extends OptionKind>(spec: OptionSpec<K>): OptionSpec<K> => ({ ...spec, follows: 'constant' });
/** The time between two reads of a value. `bound`: the shortest one that its hardware bears, whatever the option says. */
export const pacedOption = (follows: 'refresh.slow' | 'refresh.facts', bound: Millis = millis(0)): OptionSpec<'duration'> => ({
  kind: 'duration',
  default: bound,
  help: 'Time between two reads',
  follows,
});
/** The patterns of `device.exclude` for the ids of one family, for a family that opens no file of such a device. */
export const excludeOption: OptionSpec<'list'> = { kind: 'list', default: [], help: 'Devices to leave out', follows: 'device.exclude' };
export const listOption = (value: readonly string[], help: string): OptionSpec<'list'> => ({ kind: 'list', default: value, help });

/** The default values of all options. */
export function defaultValues<S extends OptionSpecs>(specs: S): OptionValues<S> {
  return Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, spec.default])) as OptionValues<S>;
}
