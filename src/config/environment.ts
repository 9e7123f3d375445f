import { UserError } from '../errors.ts';
import { DEVICES_VARIABLE_PREFIX } from '../model/access.ts';
import { nearest } from './nearest.ts';
import { ENVIRONMENT_PREFIX, type OptionEntry, type Registry } from './registry.ts';
import { type OptionValue, parseText } from './values.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Kubernetes sets these variables in every pod for each service of the namespace. For a service named `device-agent` they start with
 * the agent's prefix.
 */
const SERVICE_LINK = /_(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT(?:_\d+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)?)$/;

/** A variable with the agent's prefix that is no known option. */
export interface UnknownVariable {
  readonly variable: string;
  /** The known variable with the most similar name. */
  readonly nearest?: string;
}

/** Returns the values from the environment, keyed by option key. An empty variable counts as not set. */
export function readEnvironment(registry: Registry, environment: Environment): Map<string, { entry: OptionEntry; value: OptionValue }> {
  const values = new Map<string, { entry: OptionEntry; value: OptionValue }>();
  for (const entry of registry.entries) {
    const text = environment[entry.environment];
    if (text === undefined || text === '') continue;
    const { value, problem } = parseText(entry.spec, text);
    if (problem !== undefined) throw new UserError('environment-invalid', { variable: entry.environment, problem });
    values.set(entry.key, { entry, value });
  }
  return values;
}

export function unknownVariables(registry: Registry, environment: Environment): UnknownVariable[] {
  const known = registry.entries.map((entry) => entry.environment);
  return Object.keys(environment)
    .filter((variable) => variable.startsWith(ENVIRONMENT_PREFIX) && registry.byEnvironment(variable) === undefined)
    .filter((variable) => !isServiceLink(variable) && !variable.startsWith(DEVICES_VARIABLE_PREFIX))
    .sort()
    .map((variable) => {
      const found = nearest(variable, known);
      return found === undefined ? { variable } : { variable, nearest: found };
    });
}

export function isServiceLink(variable: string): boolean {
  return SERVICE_LINK.test(variable);
}
