import { readdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { DocumentCache, inDirectory, isProblem } from '../../host/documents/document-cache.ts';
import type { DocumentThread } from '../../host/documents/document-thread.ts';
import { parseJson } from '../../host/documents/json.ts';
import { type Bounds, type DocumentKind, type DocumentProblem, TooComplex } from '../../host/documents/kind.ts';
import { descriptorPath, type OpenedPath, openPath } from '../../host/fs/open-path.ts';
import type { Tree } from '../../host/fs/tree.ts';
import { isPciAddress, pciAddressOf } from '../../host/pci/pci.ts';
import type { Claim } from '../../model/allocation.ts';
import { type ClaimForms, type ClaimHardware, claimDeviceKey } from '../../model/claim-hardware.ts';
import type { Observe } from '../../model/observation.ts';

/** Drivers write one spec for each claim, and may leave specs of ended claims behind. */
const MOST_FILES = 4_096;
const MOST_ROUND_BYTES = 16 * 1_048_576;

/** The class of sysfs for each directory below `/dev` that drivers of several vendors share. Families declare the others. */
const SHARED_CLASSES: Readonly<Record<string, string>> = { dri: 'drm', accel: 'accel' };

/** Finds the device nodes of claims in the CDI specs of the node. */
export class CdiReader {
  readonly #directories: readonly string[];
  readonly #sys: Tree;
  readonly #classes: Readonly<Record<string, string>>;
  readonly #partNodes: readonly RegExp[];
  readonly #observe: Observe | undefined;
  readonly #specs: DocumentCache<CdiSpec | undefined>;

  constructor(directories: readonly string[], sys: Tree, thread: DocumentThread, forms: readonly ClaimForms[], observe?: Observe) {
    this.#classes = Object.assign({}, SHARED_CLASSES, ...forms.map(({ nodeClasses }) => nodeClasses));
    this.#partNodes = forms.flatMap(({ partNodes }) => partNodes ?? []);
    this.#observe = observe;
    this.#directories = directories.map((path) => resolve(path));
    this.#sys = sys;
    this.#specs = new DocumentCache({
      kind: 'cdi',
      mostBytes: cdiKind.bounds.mostBytes,
      mostRoundBytes: MOST_ROUND_BYTES,
      thread,
      serves: (spec, madeFor, wanted) =>
        spec === undefined || [...wanted].every((name) => madeFor.has(name) || spec.names?.has(name) === false),
      observe,
    });
  }

  /** Returns the hardware of the devices of these claims, keyed by {@link claimDeviceKey}. Never rejects. */
  async read(claims: readonly Claim[]): Promise<ClaimFiles> {
    const found = new Map<string, ClaimHardware>();
    const problems: DocumentProblem[] = [];
    const wanted = new Set(claims.flatMap(({ cdiDevices = [] }) => cdiDevices));
    if (wanted.size === 0) return { hardware: found, problems };
    const nodesOf = new Map<string, readonly CdiNode[]>();
    for (const path of this.#directories) {
      const nodes = await inDirectory(path, openPath(path), (directory) => this.#directory(directory, wanted, problems));
      if (nodes === undefined) continue;
      if ('code' in nodes) problems.push(nodes);
      else for (const [name, list] of nodes) if (!nodesOf.has(name)) nodesOf.set(name, list);
    }
    this.#specs.endRound();
    for (const claim of claims) {
      const hardware = this.#hardware((claim.cdiDevices ?? []).flatMap((name) => nodesOf.get(name) ?? []));
      if (hardware !== undefined) found.set(claimDeviceKey(claim), hardware);
    }
    return { hardware: found, problems };
  }

  /** A name that two specs of one directory define has no meaning, as for container runtimes. */
  async #directory(
    directory: OpenedPath,
    wanted: ReadonlySet<string>,
    problems: DocumentProblem[],
  ): Promise<ReadonlyMap<string, readonly CdiNode[]>> {
    const files = (await readdir(descriptorPath(directory)).catch((): string[] => [])).filter((name) => /\.(?:json|ya?ml)$/.test(name));
    this.#observe?.({ kind: 'directory', path: directory.path, entries: files.map((name) => [name, 'file'] as const) });
    if (files.length > MOST_FILES)
      problems.push({ code: 'too-large', message: `${directory.path}: it has ${files.length} specs; the first ${MOST_FILES} are read` });
    const found = new Map<string, readonly CdiNode[]>();
    for (const read of (await this.#specs.read(directory, files.sort().slice(0, MOST_FILES), wanted)).values()) {
      if (isProblem(read)) problems.push(read);
      else for (const [name, nodes] of read.value?.devices ?? []) found.set(name, found.has(name) ? [] : nodes);
    }
    return found;
  }

  #hardware(nodes: readonly CdiNode[]): ClaimHardware | undefined {
    if (nodes.length === 0) return undefined;
    const addresses = new Set(nodes.map((node) => this.#addressOf(node)).filter((address) => address !== undefined));
    const [pciAddress] = addresses;
    const deviceNodes = [...new Set(nodes.map(({ path }) => path))].sort();
    return {
      by: 'cdi',
      deviceNodes,
      ...(pciAddress === undefined || addresses.size > 1 ? {} : { pciAddress }),
      ...(deviceNodes.some((path) => this.#partNodes.some((form) => form.test(path))) ? { isPartition: true as const } : {}),
    };
  }

  /** PCI address of a node, from its numbers or its path. Nothing opens the node. */
  #addressOf({ path, type = 'c', major, minor }: CdiNode): string | undefined {
    if (major !== undefined && minor !== undefined && major > 0)
      return pciAddressOf(this.#sys, `dev/${type === 'b' ? 'block' : 'char'}/${major}:${minor}`);
    const [, directory = '', name = ''] = /^\/dev\/([^/]+)\/([^/]+)$/.exec(path) ?? [];
    if (directory === 'vfio') return this.#addressOfGroup(name);
    const inClass = this.#classes[directory];
    return inClass === undefined ? undefined : pciAddressOf(this.#sys, `class/${inClass}/${name}`);
  }

  /** A VFIO group names hardware only when it has one function. */
  #addressOfGroup(group: string): string | undefined {
    if (!/^\d+$/.test(group)) return undefined;
    const functions = this.#sys.list(`kernel/iommu_groups/${group}/devices`).filter(isPciAddress);
    return functions.length === 1 ? functions[0] : undefined;
  }
}

/** Facts about claims from the files of drivers. */
export interface ClaimFiles {
  /** Keyed by `claimDeviceKey`. */
  readonly hardware: ReadonlyMap<string, ClaimHardware>;
  /** Files that were not used. */
  readonly problems: readonly DocumentProblem[];
}

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
