import type { ValidateFunction } from 'ajv';

/** JSON Schema of a state. Members that it does not name are allowed: an agent of the same version may write more. */
export type SavedSchema = Readonly<Record<string, unknown>>;

/** No state of an agent is deeper. The code that compares states calls itself once for each level. */
const MOST_LEVELS = 64;

/** Wall clock in milliseconds, in the range of a date. It is below 0 after a clock was set back to 1970. */
export const TIME = { type: 'number', minimum: -8.64e15, maximum: 8.64e15 };
/** Duration in milliseconds. A sum of fractions may be a little below 0. */
export const SPAN = { type: 'number', minimum: -1, maximum: 8.64e15 };
export const TEXT = { type: 'string' };

/** `required`: members that must be there, by name; `optional`: members that are checked where they are. */
export const shape = (required: SavedSchema, optional: SavedSchema = {}): SavedSchema => ({
  type: 'object',
  required: Object.keys(required),
  properties: { ...required, ...optional },
});

/** Entries by any name. */
export const entries = (of: SavedSchema, most: number): SavedSchema => ({
  type: 'object',
  additionalProperties: of,
  maxProperties: most,
});

export const list = (of: SavedSchema, most: number): SavedSchema => ({ type: 'array', items: of, maxItems: most });

/** What of a value differs from the schema: `/devices/a/verdict must be object`; undefined when nothing does. */
export const schemaProblem = async (schema: SavedSchema, value: unknown): Promise<string | undefined> => (await schemaCheck(schema))(value);

/** {@link schemaProblem} for many values. The library is loaded here, because an agent that finds no state on the disk never needs it. */
export async function schemaCheck(schema: SavedSchema): Promise<(value: unknown) => string | undefined> {
  const { Ajv } = await import('ajv');
  const validate = compiled.get(schema) ?? new Ajv({ strict: false }).compile(schema);
  compiled.set(schema, validate);
  return (value) => {
    if (!isShallow(value)) return `it has more than ${MOST_LEVELS} levels`;
    if (validate(value)) return undefined;
    const [error] = validate.errors ?? [];
    return `${error?.instancePath.slice(0, 200)} ${error?.message}`.trim();
  };
}

/** Whether nothing in a parsed value is deeper than {@link MOST_LEVELS}. */
export function isShallow(value: unknown, levels = MOST_LEVELS): boolean {
  if (typeof value !== 'object' || value === null) return true;
  return levels > 0 && Object.values(value).every((one) => isShallow(one, levels - 1));
}

const compiled = new WeakMap<SavedSchema, ValidateFunction>();
