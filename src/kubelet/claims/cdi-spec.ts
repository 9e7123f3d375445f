import { parseJson } from '../../host/documents/json.ts';
import type { DocumentKind } from '../../host/documents/kind.ts';
import { type Bounds, TooComplex } from '../../host/documents/kind.ts';

export interface CdiNode {
  /** Absolute path on the host. */
  readonly path: string;
  /** `b`, `c`, `u`, `p`; absent when the spec leaves it to the runtime. */
  readonly type?: string;
  readonly major?: number;
  readonly minor?: number;
}

/** The wanted devices of one CDI spec. */
export interface CdiSpec {
  /** Fully qualified names of all its devices; absent when they are longer than {@link MOST_NAME_CHARS}. */
  readonly names?: ReadonlySet<string>;
  /** Keyed by the fully qualified name `vendor.com/class=device`. */
  readonly devices: ReadonlyMap<string, readonly CdiNode[]>;
}

/** The spec of a node with 16 GPUs of 7 parts each has 5,000 lines and 150 KB. */
const BOUNDS: Bounds = { mostBytes: 2 * 1_048_576, mostEntries: 50_000, mostDepth: 32 };

/** Names are kept so that another wanted device does not lead to another read of every spec. Specs of one claim have few devices. */
const MOST_NAME_CHARS = 16_384;

/** CDI specs in JSON or YAML. Wanted are fully qualified names. */
export const cdiKind: DocumentKind<CdiSpec | undefined> = {
  bounds: BOUNDS,
  async parse(text, wanted) {
    const spec = await parseCdiSpec(text, wanted);
    return { value: spec, isComplete: spec !== undefined };
  },
};

/**
 * Reads a CDI spec. Undefined for other text, and for text that is not complete. The edits at the top level of the spec are left out, because each device
 * of the spec shares them. Rejects with `TooComplex`.
 */
async function parseCdiSpec(text: string, wanted: ReadonlySet<string>): Promise<CdiSpec | undefined> {
  const spec = await parsed(text);
  const kind = field(spec, 'kind');
  const devices = field(spec, 'devices');
  if (typeof kind !== 'string' || !kind.includes('/') || typeof field(spec, 'cdiVersion') !== 'string' || !Array.isArray(devices))
    return undefined;
  const found = new Map<string, readonly CdiNode[]>();
  const names = new Set<string>();
  for (const device of devices) {
    const name = `${kind}=${field(device, 'name')}`;
    names.add(name);
    const nodes = field(field(device, 'containerEdits'), 'deviceNodes');
    if (wanted.has(name)) found.set(name, Array.isArray(nodes) ? nodes.flatMap(nodeFrom) : []);
  }
  return { devices: found, ...([...names].join('').length > MOST_NAME_CHARS ? {} : { names }) };
}

async function parsed(text: string): Promise<unknown> {
  try {
    if (text.trimStart().startsWith('{')) return parseJson(text, BOUNDS);
    // The begin of a YAML file is YAML too. A file that is being written mostly lacks the end of its last line.
    if (!text.endsWith('\n')) return undefined;
    // The program itself never parses YAML here, so only the thread of documents loads the parser.
    const { parseYaml } = await import('../../host/documents/yaml.ts');
    return parseYaml(text, BOUNDS);
  } catch (error) {
    if (error instanceof TooComplex) throw error;
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
