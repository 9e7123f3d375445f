import { parse } from 'yaml';

export interface CdiNode {
  /** Absolute path on the host. */
  readonly path: string;
  /** `b`, `c`, `u`, `p`; absent when the spec leaves it to the runtime. */
  readonly type?: string;
  readonly major?: number;
  readonly minor?: number;
}

/** Device nodes of each device of one CDI spec, keyed by the fully qualified name `vendor.com/class=device`. */
export type CdiSpec = ReadonlyMap<string, readonly CdiNode[]>;

/**
 * Reads a CDI spec in JSON or YAML. Undefined for other text, and for text that is not complete. The edits of the whole spec are left
 * out, because each device of the spec shares them.
 */
export function parseCdiSpec(text: string): CdiSpec | undefined {
  const spec = parsed(text);
  const kind = field(spec, 'kind');
  const devices = field(spec, 'devices');
  if (typeof kind !== 'string' || !kind.includes('/') || typeof field(spec, 'cdiVersion') !== 'string' || !Array.isArray(devices))
    return undefined;
  return new Map(
    devices.flatMap((device): [string, CdiNode[]][] => {
      const name = field(device, 'name');
      const nodes = field(field(device, 'containerEdits'), 'deviceNodes');
      if (typeof name !== 'string' || name === '') return [];
      return [[`${kind}=${name}`, Array.isArray(nodes) ? nodes.flatMap(nodeFrom) : []]];
    }),
  );
}

function parsed(text: string): unknown {
  try {
    if (text.trimStart().startsWith('{')) return JSON.parse(text);
    // The begin of a YAML file is YAML too. A file that is being written mostly lacks the end of its last line.
    return text.endsWith('\n') ? parse(text, { logLevel: 'silent' }) : undefined;
  } catch {
    return undefined;
  }
}

function nodeFrom(value: unknown): CdiNode[] {
  const [inContainer, onHost, type, major, minor] = ['path', 'hostPath', 'type', 'major', 'minor'].map((name) => field(value, name));
  const path = typeof onHost === 'string' && onHost !== '' ? onHost : inContainer;
  if (typeof path !== 'string' || !path.startsWith('/')) return [];
  return [
    {
      // A driver in a container has its own /dev below its root directory; the nodes are the same.
      path: path.replace(/^\/.*(?=\/dev\/)/, ''),
      ...(typeof type === 'string' ? { type } : {}),
      ...(typeof major === 'number' ? { major } : {}),
      ...(typeof minor === 'number' ? { minor } : {}),
    },
  ];
}

function field(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : undefined;
}
