/** Form of the device id for the kubelet. `name` is `Device.id`, which is also used when a device lacks the requested form. */
export const ID_STRATEGIES = ['name', 'uuid', 'bdf', 'index'] as const;
export type IdStrategy = (typeof ID_STRATEGIES)[number];

/**
 * How a container gets a device: `envvar` by variables, `device-specs` by device nodes and mounts, `volume-mounts` by mounts that a
 * vendor's runtime reads as a list, `cdi-annotations` and `cdi-cri` by CDI names in an annotation or in the CRI field.
 */
export const ACCESS_STRATEGIES = ['envvar', 'device-specs', 'volume-mounts', 'cdi-annotations', 'cdi-cri'] as const;
export type AccessStrategy = (typeof ACCESS_STRATEGIES)[number];

/**
 * Which devices to prefer: `aligned` prefers devices that are close to each other, `spread` the least used physical devices, `packed` the
 * most used physical devices. `none` leaves the choice to the kubelet.
 */
export const PREFERENCES = ['aligned', 'spread', 'packed', 'none'] as const;
export type Preference = (typeof PREFERENCES)[number];

/** All given members must match; for a list, one entry. Patterns are regular expressions, anchored at both ends, that ignore case. */
export interface DeviceSelector {
  readonly family?: string;
  readonly kind?: string | readonly string[];
  readonly model?: string;
  /** Hexadecimal, with or without `0x`. */
  readonly pciVendor?: string;
  readonly pciDevice?: string;
  readonly driver?: string;
  /** Link layer of one of its ports, as the kernel writes it: `Ethernet`. */
  readonly linkLayer?: string;
  /** Name or PCI address of the physical function of a virtual function, or the name of the device itself. */
  readonly pfName?: string;
  /** Profile by which a device was split: `1g\.10gb`. */
  readonly profile?: string;
  readonly numaNode?: number;
  /** Device ids or aliases. */
  readonly devices?: readonly string[];
  /** Whether the device contains other devices: a GPU with instances, a physical function with virtual ones. */
  readonly hasParts?: boolean;
}

/**
 * What a container gets. Texts may contain `{id}`, `{path}`, `{resource}`, `{RESOURCE}` (valid in a variable's name, also in keys) and
 * facts of the device, such as `{uuid}`, `{bdf}`, `{index}`, `{numa}` or `{netdev}`. `PLACEHOLDERS` lists all.
 */
export interface AllocationSpec {
  /** Default `envvar` and `device-specs`. */
  readonly strategies?: readonly AccessStrategy[];
  /** Form of the id that a vendor's runtime gets. Default `uuid`. */
  readonly visibleBy?: 'uuid' | 'index';
  /** One value per device, joined by commas. A name that the agent itself would set gets this value instead. */
  readonly env?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly mounts?: readonly { readonly path: string; readonly hostPath: string; readonly readOnly?: boolean }[];
  readonly deviceNodes?: readonly { readonly path: string; readonly hostPath?: string; readonly permissions?: string }[];
  /** Replaces the CDI names of the family. */
  readonly cdiDevices?: readonly string[];
  /** Only for resources with `paths`. Default `rw`. */
  readonly permissions?: string;
}

/** One resource of the device plugin. */
export interface PluginResource {
  /** `vendor.com/kind`. */
  readonly resource: string;
  readonly select?: DeviceSelector | readonly DeviceSelector[];
  /** Device nodes that no family knows, as globs below `/dev/`: `*`, `?` and `[…]` within one path segment. */
  readonly paths?: readonly string[];
  /** Number of ids per device, as `<id>::<n>`. Default 1, without suffix. */
  readonly replicas?: number;
  /** Number of places, with the ids `0`, `1`, …. Each place gives access to all selected devices together. */
  readonly pool?: number;
  readonly idStrategy?: IdStrategy;
  readonly allocation?: AllocationSpec;
  /** Default `spread` with replicas, `none` for a pool, else `aligned`. */
  readonly preferred?: Preference;
  /** Whether to check the verdict again before each start of a container. Default false. */
  readonly preStart?: boolean;
  /**
   * Whether to refuse the start of a container while a process or memory that belongs to no holder is on one of its devices, or while that
   * cannot be read. Only for families whose processes are known. Default false.
   */
  readonly requireClean?: boolean;
  /**
   * Whether the resource may offer a device that another resource offers too, such as a GPU and its replicas. Kubernetes then hands the
   * device out twice. Default false.
   */
  readonly allowOverlap?: boolean;
}

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const NAME_PART = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

/** Why the kubelet rejects a resource name; undefined for a valid name. Source: IsExtendedResourceName of Kubernetes 1.36. */
export function resourceNameProblem(name: string): string | undefined {
  const slash = name.indexOf('/');
  if (slash < 0) return 'it has no "/"';
  if (name.includes('kubernetes.io/')) return '"kubernetes.io/" is reserved';
  if (name.startsWith('requests.')) return '"requests." is reserved';
  const prefix = `requests.${name.slice(0, slash)}`;
  const part = name.slice(slash + 1);
  if (prefix.length > 253 || !prefix.split('.').every((label) => label.length <= 63 && LABEL.test(label))) {
    return 'what precedes "/" is not a DNS name';
  }
  if (part.length > 63 || !NAME_PART.test(part)) return 'what follows "/" is not a name of at most 63 letters, digits, "-", "_" and "."';
  return undefined;
}

/** Problems of configured resources that {@link pluginSchema} cannot express, one sentence each. */
export function pluginResourceProblems(resources: readonly PluginResource[]): string[] {
  const problems: string[] = [];
  const seen = new Set<string>();
  for (const { resource, select, paths, pool, replicas, requireClean } of resources) {
    const nameProblem = resourceNameProblem(resource);
    if (nameProblem !== undefined) problems.push(`resource "${resource}": ${nameProblem}`);
    if (seen.has(resource)) problems.push(`resource "${resource}" is configured twice`);
    seen.add(resource);
    if ((select === undefined) === (paths === undefined)) problems.push(`resource "${resource}" needs either "select" or "paths"`);
    if (pool !== undefined && replicas !== undefined) problems.push(`resource "${resource}" cannot have both "pool" and "replicas"`);
    if (paths !== undefined && requireClean === true)
      problems.push(`resource "${resource}" cannot have both "paths" and "requireClean": the processes of a device node are not known`);
    for (const pattern of selectorsOf(select).flatMap(patternsOf)) {
      if (!isExpression(pattern)) problems.push(`resource "${resource}": "${pattern}" is not a regular expression`);
    }
  }
  return problems;
}

export function selectorsOf(select: PluginResource['select']): readonly DeviceSelector[] {
  if (select === undefined) return [];
  return Array.isArray(select) ? (select as readonly DeviceSelector[]) : [select as DeviceSelector];
}

function patternsOf({ model, driver, pfName, profile }: DeviceSelector): string[] {
  return [model, driver, pfName, profile].filter((pattern) => pattern !== undefined);
}

/** Whether the text is a valid regular expression. */
export function isExpression(text: string): boolean {
  try {
    return new RegExp(text) !== undefined;
  } catch {
    return false;
  }
}

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
