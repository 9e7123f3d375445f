import type { ErrorObject, ValidateFunction } from 'ajv';
import { nearestHint } from './nearest.ts';
import type { JsonSchema } from './structured.ts';
import type { Path } from './text-positions.ts';
import { show } from './values.ts';

/** A violation of the schema, and the key or value that causes it. */
export interface SchemaProblem {
  readonly path: Path;
  /** True when the key is wrong, false when its value is. */
  readonly atKey: boolean;
  readonly message: string;
}

/** Checks the parsed value of a file against its schema. */
export async function checkSchema(schema: JsonSchema, plain: unknown): Promise<SchemaProblem[]> {
  const { Ajv } = await import('ajv');
  const validate = compiled.get(schema) ?? new Ajv({ allErrors: true, allowUnionTypes: true, verbose: true }).compile(schema);
  compiled.set(schema, validate);
  validate(plain);
  // Ajv reports an invalid key twice: once in detail, and once as the `propertyNames` error, which is enough.
  return (validate.errors ?? []).filter((error) => error.propertyName === undefined).map(describeSchemaError);
}

/** To compile a schema takes longer than to check a hundred files. */
const compiled = new WeakMap<JsonSchema, ValidateFunction>();

function describeSchemaError(error: ErrorObject): SchemaProblem {
  const path = pointerSteps(error.instancePath);
  const where = showPath(path);
  if (error.keyword === 'additionalProperties') {
    const key = String(error.params.additionalProperty);
    const known = Object.keys((error.parentSchema?.properties as object | undefined) ?? {});
    const place = where === '' ? '' : ` in ${where}`;
    return {
      path: [...path, key],
      atKey: true,
      message: `unknown key ${JSON.stringify(key)}${place}${dottedHint(key, known) ?? keyHint(key, known)}`,
    };
  }
  if (error.keyword === 'required') {
    return { path: [...path, ''], atKey: true, message: `${where} needs the key ${JSON.stringify(error.params.missingProperty)}` };
  }
  if (error.keyword === 'propertyNames') {
    const key = String(error.params.propertyName);
    const pattern: unknown = (error.schema as { pattern?: unknown }).pattern;
    const form = typeof pattern === 'string' ? `; keys match ${pattern}` : '';
    return { path: [...path, key], atKey: true, message: `unknown key ${JSON.stringify(key)} in ${where}${form}` };
  }
  return { path, atKey: false, message: `${where} ${requirement(error)}, not ${show(error.data)}` };
}

/** Returns a hint for a key that is written like a flag (`refresh.interval`): the file needs nested keys. */
function dottedHint(key: string, known: readonly string[]): string | undefined {
  const [first = '', ...rest] = key.split('.');
  return rest.length > 0 && known.includes(first) ? `; write ${JSON.stringify(rest.join('.'))} below ${JSON.stringify(first)}` : undefined;
}

function keyHint(key: string, known: readonly string[]): string {
  return nearestHint(key, known) || `; known are ${known.join(', ')}`;
}

function requirement(error: ErrorObject): string {
  if (error.keyword === 'enum') return `must be one of ${(error.params.allowedValues as readonly unknown[]).join(', ')}`;
  const { description, pattern } = error.parentSchema ?? {};
  const meaning = typeof description === 'string' ? ` (${description.replace(/\.$/, '')})` : '';
  if (error.keyword === 'type') return `must be ${typeName(error.params.type)}${pattern === undefined ? '' : meaning}`;
  return `${error.message ?? `fails ${error.keyword}`}${meaning}`;
}

/** Translates JSON Schema type names to YAML terms. */
function typeName(type: unknown): string {
  const names: Readonly<Record<string, string>> = {
    object: 'a mapping',
    array: 'a list',
    string: 'a string',
    integer: 'an integer',
    number: 'a number',
    boolean: 'true or false',
  };
  return [type]
    .flat()
    .filter((one) => one !== 'null')
    .map((one) => names[String(one)] ?? String(one))
    .join(' or ');
}

function pointerSteps(pointer: string): string[] {
  return pointer
    .split('/')
    .slice(1)
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
}

function showPath(path: Path): string {
  return path.reduce<string>(
    (text, step) => (/^\d+$/.test(String(step)) ? `${text}[${step}]` : text === '' ? String(step) : `${text}.${step}`),
    '',
  );
}
