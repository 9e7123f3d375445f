import type { Prices } from '../accounting/report.ts';
import { type HealthConfig, healthSchema } from '../health/policy/policy-config.ts';
import type { PoolRule } from '../model/allocation.ts';
import type { IdleThresholds } from '../model/declaration.ts';
import type { PluginResource } from '../model/plugin-resource.ts';
import { pluginSchema } from '../model/plugin-resource.ts';

/** A JSON Schema, draft-07. */
export type JsonSchema = Readonly<Record<string, unknown>>;

/** A part of the file with nested values. It has no flags and no environment variables. */
export interface StructuredPart<T = unknown> {
  /** Dotted path in the file. */
  readonly path: string;
  readonly help: string;
  readonly schema: JsonSchema;
  readonly default: T;
  /** A valid value for the reference page, as YAML below the path. */
  readonly example: T;
}

const name: JsonSchema = { type: 'string', minLength: 1 };

export const poolRules: StructuredPart<readonly PoolRule[]> = {
  path: 'join.rules',
  help: 'Which devices belong to a resource whose ids do not identify hardware ("0", "1", …).',
  schema: {
    type: 'array',
    items: {
      type: 'object',
      additionalProperties: false,
      required: ['resource', 'devices'],
      properties: {
        resource: { ...name, pattern: '^[^/\\s]+/[^/\\s]+$', description: 'Resource as the kubelet names it: vendor.com/kind.' },
        devices: {
          type: 'array',
          minItems: 1,
          items: { ...name, description: 'Device id or alias; * matches any characters.' },
        },
      },
    },
  },
  default: [],
  example: [{ resource: 'rdma/hca_shared', devices: ['mlx5_0', 'mlx5_1'] }],
};

export const healthPart: StructuredPart<HealthConfig> = {
  path: 'health',
  help: 'When a condition counts, how severe it is, when it is withdrawn, and on which devices it is ignored.',
  schema: healthSchema,
  default: {},
  example: {
    unknown: 'unhealthy',
    conditions: { 'infiniband.PortDown': { severity: 'degraded', for: '30s', recovery: '1m' } },
    ignore: [{ device: 'mlx5_3', condition: 'PortDown', reason: 'cable on order', until: '2030-01-31' }],
  },
};

export const pluginResources: StructuredPart<readonly PluginResource[]> = {
  path: 'plugin.resources',
  help: 'Which devices the device plugin offers to the kubelet, and under which resource names. Empty: none; the agent only observes.',
  schema: pluginSchema,
  default: [],
  example: [
    { resource: 'example.com/hca', select: { family: 'infiniband', kind: 'pf', linkLayer: 'InfiniBand' }, idStrategy: 'bdf' },
    { resource: 'example.com/gpu-share', select: { family: 'nvidia', kind: 'gpu', hasParts: false }, replicas: 4 },
    { resource: 'example.com/serial', paths: ['/dev/ttyUSB*'], allocation: { permissions: 'rw' } },
  ],
};

export const expectedDevices: StructuredPart<Readonly<Record<string, number>>> = {
  path: 'expect',
  help: 'Number of devices that each family must have at least on this node, without parts such as instances and virtual functions.',
  schema: { type: 'object', additionalProperties: { type: 'integer', minimum: 0 } },
  default: {},
  example: { nvidia: 8, infiniband: 8 },
};

export const idleThresholds: StructuredPart<IdleThresholds> = {
  path: 'usage.idle',
  help: 'Work up to which a device of a family counts as idle.',
  schema: {
    type: 'object',
    additionalProperties: {
      type: 'object',
      additionalProperties: false,
      properties: {
        utilization: { type: 'number', minimum: 0, maximum: 1, description: 'Share of time that an engine is busy.' },
        'bytes-per-second': { type: 'number', minimum: 0, description: 'Bytes that all ports move in a second.' },
      },
    },
  },
  default: {},
  example: { nvidia: { utilization: 0.1 }, infiniband: { 'bytes-per-second': 100_000 } },
};

export const prices: StructuredPart<Prices> = {
  path: 'usage.prices',
  help: 'What one hour of a device costs, by family or by model, for the columns of cost in `usage`. The price of the model counts first. The unit is yours.',
  schema: { type: 'object', additionalProperties: { type: 'number', minimum: 0 } },
  default: {},
  example: { nvidia: 2.5, 'NVIDIA H100 80GB HBM3': 4 },
};

/** Every structured part of the file. */
export const structuredParts: readonly StructuredPart[] = [poolRules, healthPart, pluginResources, expectedDevices, idleThresholds, prices];
