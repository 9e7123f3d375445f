import { defined } from '../model/defined.ts';
import type { OptionSpec } from '../model/options.ts';
import type { Registry } from './registry.ts';
import type { JsonSchema } from './structured.ts';
import { toFileValue } from './values.ts';

interface Mapping {
  type: readonly string[];
  description?: string;
  additionalProperties: false;
  properties: Record<string, JsonSchema | Mapping>;
}

/** Returns the JSON Schema (draft-07) of the configuration file. A section can be empty, because all its keys can be commented out. */
export function fileSchema(registry: Registry): JsonSchema {
  const known = schemas.get(registry) ?? madeSchema(registry);
  schemas.set(registry, known);
  return known;
}

/** One schema for each registry: to compile another one takes a tenth of a second at each reload. */
const schemas = new WeakMap<Registry, JsonSchema>();

function madeSchema(registry: Registry): JsonSchema {
  const root = mapping();
  for (const { spec, filePath } of registry.entries) {
    if (filePath !== undefined) place(root, filePath, optionSchema(spec));
  }
  for (const part of registry.structured) {
    place(root, part.path.split('.'), { description: part.help, default: part.default, ...nullable(part.schema) });
  }
  for (const section of registry.sections) {
    const found = mappingAt(root, section.path.split('.'));
    if (found !== undefined) found.description = section.title;
  }
  return { $schema: 'http://json-schema.org/draft-07/schema#', title: 'Configuration of device-agent', ...root };
}

function optionSchema(spec: OptionSpec): JsonSchema {
  return { description: spec.help, default: toFileValue(spec, spec.default), ...kindSchema(spec) };
}

function kindSchema(spec: OptionSpec): JsonSchema {
  switch (spec.kind) {
    case 'boolean':
      return { type: 'boolean' };
    case 'duration':
      // A text such as 10s. The number 0 is also allowed, because it needs no unit.
      return { type: ['string', 'integer'], pattern: '^(0|([0-9]+(ms|s|m|h|d))+)$', minimum: 0, maximum: 0 };
    case 'integer':
      return defined({ type: 'integer', minimum: spec.min, maximum: spec.max });
    case 'list':
      return { type: 'array', items: { type: 'string' } };
    case 'string':
      return spec.choices === undefined ? { type: 'string' } : { type: 'string', enum: spec.choices };
  }
}

/** Like a section, a structured part can be empty. */
function nullable(schema: JsonSchema): JsonSchema {
  return typeof schema.type === 'string' ? { ...schema, type: [schema.type, 'null'] } : schema;
}

function mapping(): Mapping {
  return { type: ['object', 'null'], additionalProperties: false, properties: {} };
}

function place(root: Mapping, path: readonly string[], schema: JsonSchema): void {
  const parents = path.slice(0, -1);
  let at = root;
  for (const key of parents) {
    at.properties[key] ??= mapping();
    at = at.properties[key] as Mapping;
  }
  at.properties[path.at(-1) as string] = schema;
}

function mappingAt(root: Mapping, path: readonly string[]): Mapping | undefined {
  let at: Mapping | undefined = root;
  for (const key of path) at = at?.properties[key] as Mapping | undefined;
  return at;
}
