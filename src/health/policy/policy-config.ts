import type { Severity } from '../../model/health.ts';

/** Configuration of one condition. Durations are text: `1m30s`. */
export interface ConditionOverride {
  readonly severity?: Severity;
  readonly for?: string;
  readonly recovery?: string;
  readonly threshold?: { readonly growth?: number; readonly window?: string };
  readonly enabled?: boolean;
}

/** Ignore rule of an operator: the condition does not count on the device until a date. */
export interface IgnoreConfig {
  /** Id, alias or key (`family/id`) of the device; `*` matches any number of characters. */
  readonly device: string;
  /** `Type`, `Type/instance` or `*`. */
  readonly condition: string;
  readonly reason: string;
  /** ISO 8601; a date alone means until the end of that day, UTC. */
  readonly until: string;
}

/** The part `health` of the configuration file. */
export interface HealthConfig {
  readonly unknown?: 'healthy' | 'unhealthy';
  readonly unchecked?: 'healthy' | 'unhealthy';
  readonly 'stale-after'?: string;
  readonly flapping?: { readonly count?: number; readonly window?: string; readonly quiet?: string };
  /** Keys `family.Type` or `family.Type/instance`; family `*` for all. The narrower key wins, field by field. */
  readonly conditions?: Readonly<Record<string, ConditionOverride>>;
  readonly ignore?: readonly IgnoreConfig[];
}

const duration = { type: 'string', pattern: '^(0|([0-9]+(ms|s|m|h|d))+)$', description: 'Duration such as 10s, 1m30s or 250ms.' } as const;
const date = '^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\\.[0-9]+)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?)?$';

/** JSON schema of {@link HealthConfig}. */
export const healthSchema = {
  type: 'object',
  additionalProperties: false,
  properties: {
    unknown: { enum: ['healthy', 'unhealthy'], description: 'Health value that the kubelet gets for a device in state unknown.' },
    unchecked: {
      enum: ['healthy', 'unhealthy'],
      description: 'Health value that the kubelet gets for a device of which a fatal condition could not be checked so far.',
    },
    'stale-after': { ...duration, description: 'Age of the last reading at which the health of a device becomes unknown.' },
    flapping: {
      type: 'object',
      additionalProperties: false,
      description: 'A condition that became active `count` times within `window` is flapping until it is quiet for `quiet`.',
      properties: { count: { type: 'integer', minimum: 2, maximum: 100 }, window: duration, quiet: duration },
    },
    conditions: {
      type: 'object',
      description: 'Policy per condition: `family.Type` or `family.Type/instance`, family `*` for all.',
      propertyNames: { pattern: '^(\\*|[a-z][a-z0-9-]*)\\.[A-Z][A-Za-z0-9]*(/.+)?$' },
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        properties: {
          severity: { enum: ['fatal', 'degraded', 'info'] },
          for: duration,
          recovery: duration,
          threshold: {
            type: 'object',
            additionalProperties: false,
            properties: { growth: { type: 'number', minimum: 0 }, window: duration },
          },
          enabled: { type: 'boolean' },
        },
      },
    },
    ignore: {
      type: 'array',
      description: 'Conditions that do not count on a device until a date.',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['device', 'condition', 'reason', 'until'],
        properties: {
          device: { type: 'string', minLength: 1 },
          condition: { type: 'string', minLength: 1 },
          reason: { type: 'string', minLength: 1 },
          until: { type: 'string', pattern: date, description: 'Date such as 2030-01-31, or date and time in ISO 8601.' },
        },
      },
    },
  },
} as const;
