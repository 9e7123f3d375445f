import { ACCESS_STRATEGIES, ID_STRATEGIES, PREFERENCES } from './plugin-resource.ts';

const text = { type: 'string', minLength: 1 } as const;
const texts = { type: 'array', items: text, minItems: 1 } as const;
const textMap = { type: 'object', additionalProperties: { type: 'string' } } as const;
const permissions = { type: 'string', pattern: '^[rwm]{1,3}$' } as const;
const absolute = { type: 'string', pattern: '^/' } as const;

const selector = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: {
    family: text,
    kind: { anyOf: [text, texts] },
    model: text,
    pciVendor: { type: 'string', pattern: '^(0x)?[0-9A-Fa-f]{1,4}$' },
    pciDevice: { type: 'string', pattern: '^(0x)?[0-9A-Fa-f]{1,4}$' },
    driver: text,
    linkLayer: text,
    pfName: text,
    profile: text,
    numaNode: { type: 'integer', minimum: 0 },
    devices: texts,
    hasParts: { type: 'boolean' },
  },
} as const;

const allocation = {
  type: 'object',
  additionalProperties: false,
  properties: {
    strategies: { type: 'array', items: { enum: ACCESS_STRATEGIES }, minItems: 1, uniqueItems: true },
    visibleBy: { enum: ['uuid', 'index'] },
    env: textMap,
    annotations: textMap,
    mounts: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['path', 'hostPath'],
        properties: { path: absolute, hostPath: absolute, readOnly: { type: 'boolean' } },
      },
    },
    deviceNodes: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['path'],
        properties: { path: absolute, hostPath: absolute, permissions },
      },
    },
    cdiDevices: { type: 'array', items: { type: 'string', pattern: '^[^/=]+/[^/=]+=.+$' } },
    permissions,
  },
} as const;

/** JSON schema of the configured resources: a list of `PluginResource`. */
export const pluginSchema = {
  type: 'array',
  items: {
    type: 'object',
    additionalProperties: false,
    required: ['resource'],
    properties: {
      resource: { type: 'string', minLength: 3 },
      select: { anyOf: [selector, { type: 'array', items: selector, minItems: 1 }] },
      paths: { type: 'array', items: { type: 'string', pattern: '^/dev(/(?!\\.\\.?(/|$))[^/]+)+$' }, minItems: 1 },
      replicas: { type: 'integer', minimum: 1, maximum: 1000 },
      pool: { type: 'integer', minimum: 1, maximum: 10000 },
      idStrategy: { enum: ID_STRATEGIES },
      allocation,
      preferred: { enum: PREFERENCES },
      preStart: { type: 'boolean' },
      requireClean: { type: 'boolean' },
      allowOverlap: { type: 'boolean' },
    },
  },
} as const;
