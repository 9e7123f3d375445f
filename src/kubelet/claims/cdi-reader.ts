import type { Dirent } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { type CdiNode, type CdiSpec, cdiSpecOf } from '../../host/cdi/spec.ts';
import { DocumentCache, inDirectory, isProblem } from '../../host/documents/document-cache.ts';
import type { DocumentThread } from '../../host/documents/document-thread.ts';
import { type Bounds, type DocumentKind, type DocumentProblem, TooComplex } from '../../host/documents/kind.ts';
import { descriptorPath, type OpenedPath, openPath } from '../../host/fs/open-path.ts';
import type { Tree } from '../../host/fs/tree.ts';
import { isPciAddress, pciAddressOf } from '../../host/pci/pci.ts';
import type { Claim } from '../../model/allocation.ts';
import { type ClaimForms, type ClaimHardware, claimDeviceKey } from '../../model/claim-hardware.ts';
import type { Observe } from '../../model/observation.ts';
import type { ClaimFileReason } from '../../model/pod-resources.ts';

/** Drivers write one spec for each claim, and may leave specs of ended claims behind. */
const MOST_FILES = 4_096;
const MOST_ROUND_BYTES = 16 * 1_048_576;
/** A driver may write a file in place. A second read after this time finds the file complete. The process must not end meanwhile. */
const HALF_WRITTEN_MS = 20;

/** The class of sysfs for each directory below `/dev` that drivers of several vendors share. Families declare the others. */
const SHARED_CLASSES: Readonly<Record<string, string>> = { dri: 'drm', accel: 'accel' };

/** Finds the device nodes of claims in the CDI specs of the node. */
export class CdiReader {
  readonly #directories: readonly string[];
  readonly #sys: Tree;
  readonly #classes: Readonly<Record<string, string>>;
  readonly #partNodes: readonly RegExp[];
  readonly #observe: Observe | undefined;
  readonly #specs: DocumentCache<WantedCdi>;

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
        spec.fault !== undefined || [...wanted].every((name) => madeFor.has(name) || spec.names?.has(name) === false),
      observe,
    });
  }

  /** Returns the hardware of the devices of these claims, keyed by {@link claimDeviceKey}. Never rejects. */
  async read(claims: readonly Claim[]): Promise<ClaimFiles> {
    const found = new Map<string, ClaimHardware>();
    const problems: ClaimFileProblem[] = [];
    const wanted = new Set(claims.flatMap(({ cdiDevices = [] }) => cdiDevices));
    if (wanted.size === 0) return { hardware: found, problems };
    const nodesOf = new Map<string, readonly CdiNode[]>();
    const conflicts = new Set<string>();
    for (const path of this.#directories) {
      const specs = await inDirectory(path, openPath(path), (directory) => this.#directory(directory, wanted, problems));
      if (specs === undefined) continue;
      if ('code' in specs) {
        problems.push(specs);
        continue;
      }
      const here = new Set<string>();
      for (const [file, devices] of specs) {
        for (const [name, nodes] of devices) {
          if (here.has(name)) conflicts.add(name);
          if (here.has(name)) problems.push(invalid(`${path}/${file}`, `another spec beside it has ${name} too`));
          here.add(name);
          if (!nodesOf.has(name)) nodesOf.set(name, nodes);
        }
      }
    }
    // Container runtimes refuse such a name, even where a directory before has it once.
    for (const name of conflicts) nodesOf.delete(name);
    this.#specs.endRound();
    for (const claim of claims) {
      const hardware = this.#hardware((claim.cdiDevices ?? []).flatMap((name) => nodesOf.get(name) ?? []));
      if (hardware !== undefined) found.set(claimDeviceKey(claim), hardware);
    }
    return { hardware: found, problems };
  }

  /** The wanted devices of the specs of a directory, in the order of their names. */
  async #directory(
    directory: OpenedPath,
    wanted: ReadonlySet<string>,
    problems: ClaimFileProblem[],
  ): Promise<readonly (readonly [file: string, devices: ReadonlyMap<string, readonly CdiNode[]>])[]> {
    const entries = await readdir(descriptorPath(directory), { withFileTypes: true }).catch((): Dirent[] => []);
    const files = entries.filter((entry) => !entry.isDirectory() && /\.(?:json|yaml)$/.test(entry.name)).map(({ name }) => name);
    this.#observe?.({ kind: 'directory', path: directory.path, entries: files.map((name) => [name, 'file'] as const) });
    if (files.length > MOST_FILES)
      problems.push({ code: 'too-large', message: `${directory.path}: it has ${files.length} specs; the first ${MOST_FILES} are read` });
    const reads = await this.#specs.read(directory, files.sort().slice(0, MOST_FILES), wanted);
    const halfWritten = [...reads].filter(([, read]) => !isProblem(read) && !read.isComplete).map(([file]) => file);
    if (halfWritten.length > 0) {
      await setTimeout(HALF_WRITTEN_MS);
      for (const [file, read] of await this.#specs.read(directory, halfWritten, wanted)) reads.set(file, read);
    }
    const specs: (readonly [string, ReadonlyMap<string, readonly CdiNode[]>])[] = [];
    for (const [file, read] of [...reads].sort(([a], [b]) => (a < b ? -1 : 1))) {
      if (isProblem(read)) problems.push(read);
      else if (!read.isComplete) continue;
      else if (read.value.fault !== undefined) problems.push(invalid(`${directory.path}/${file}`, read.value.fault));
      else specs.push([file, read.value.devices]);
    }
    return specs;
  }

  #hardware(all: readonly CdiNode[]): ClaimHardware | undefined {
    if (all.length === 0) return undefined;
    // Two nodes can have one path in the container. The container gets the last one.
    const nodes = [...new Map(all.map((node) => [node.path, node])).values()];
    const addresses = new Set(nodes.flatMap((node) => this.#addressesOf(node)).filter((address) => address !== undefined));
    const [pciAddress] = addresses;
    const deviceNodes = [...new Set(nodes.map(onHost))].sort();
    return {
      by: 'cdi',
      deviceNodes,
      ...(pciAddress === undefined || addresses.size > 1 ? {} : { pciAddress }),
      ...(deviceNodes.some((path) => this.#partNodes.some((form) => form.test(path))) ? { isPartition: true as const } : {}),
    };
  }

  /**
   * PCI addresses of a node, from its numbers or its path. Nothing opens the node. A runtime takes the numbers from the host when there is no major
   * number, and only then: a minor number that is left out is 0. Without a type, the node is what the host has there.
   */
  #addressesOf(node: CdiNode): readonly (string | undefined)[] {
    const { type, major = 0, minor = 0 } = node;
    if (type === 'p') return [];
    if (major > 0) {
      const kinds = type === '' ? ['char', 'block'] : [type === 'b' ? 'block' : 'char'];
      return kinds.map((kind) => pciAddressOf(this.#sys, `dev/${kind}/${major}:${minor}`));
    }
    const [, directory = '', name = ''] = /^\/dev\/([^/]+)\/([^/]+)$/.exec(onHost(node)) ?? [];
    if (directory === 'vfio') return [this.#addressOfGroup(name)];
    const inClass = this.#classes[directory];
    return inClass === undefined ? [] : [pciAddressOf(this.#sys, `class/${inClass}/${name}`)];
  }

  /** A VFIO group names hardware only when it has one function. */
  #addressOfGroup(group: string): string | undefined {
    if (!/^\d+$/.test(group)) return undefined;
    const functions = this.#sys.list(`kernel/iommu_groups/${group}/devices`).filter(isPciAddress);
    return functions.length === 1 ? functions[0] : undefined;
  }
}

/** The path on the host. A driver in a container has its own /dev below its root directory; the nodes are the same. */
const onHost = ({ path, hostPath }: CdiNode): string => (hostPath || path).replace(/^\/.*(?=\/dev\/)/, '');

const invalid = (path: string, reason: string): ClaimFileProblem => ({ code: 'invalid', message: `${path}: ${reason}` });

/** A file of a driver that was not used. */
export type ClaimFileProblem = DocumentProblem<ClaimFileReason>;

/** Facts about claims from the files of drivers. */
export interface ClaimFiles {
  /** Keyed by `claimDeviceKey`. */
  readonly hardware: ReadonlyMap<string, ClaimHardware>;
  /** Files that were not used. */
  readonly problems: readonly ClaimFileProblem[];
}

/** The wanted devices of one CDI spec, or why it is none. */
export type WantedCdi =
  | { readonly fault: string }
  | {
      readonly fault?: undefined;
      /** Fully qualified names of all its devices; absent when they are longer than {@link MOST_NAME_CHARS}. */
      readonly names?: ReadonlySet<string>;
      /** Keyed by the fully qualified name `vendor.com/class=device`. */
      readonly devices: ReadonlyMap<string, readonly CdiNode[]>;
    };

/** The spec of a node with 16 GPUs of 7 parts each has 5,000 lines and 150 KB. */
const BOUNDS: Bounds = { mostBytes: 2 * 1_048_576, mostEntries: 50_000, mostDepth: 32 };

/** Names are kept so that another wanted device does not lead to another read of every spec. Specs of one claim have few devices. */
const MOST_NAME_CHARS = 16_384;

/** CDI specs. Runtimes read JSON as YAML, too. Wanted are fully qualified names. */
export const cdiKind: DocumentKind<WantedCdi> = {
  bounds: BOUNDS,
  // One or two milliseconds.
  smallBytes: 8_192,
  async parse(text, wanted) {
    try {
      const { firstDocument } = await import('../../host/documents/yaml-nodes.ts');
      // The begin of a YAML file is YAML too. A file that is being written mostly lacks the end of its last line.
      return { value: wantedOf(cdiSpecOf(firstDocument(text, BOUNDS)), wanted), isComplete: /[\n}]$/.test(text) };
    } catch (error) {
      if (error instanceof TooComplex) throw error;
      return { value: { fault: (error as Error).message.split('\n', 1)[0] as string }, isComplete: false };
    }
  },
};

/** The edits at the top level of the spec are left out, because each device of the spec shares them. */
function wantedOf({ kind, devices }: CdiSpec, wanted: ReadonlySet<string>): WantedCdi {
  const all = devices.map(({ name, containerEdits }) => [`${kind}=${name}`, containerEdits.deviceNodes] as const);
  const names = new Set(all.map(([name]) => name));
  return {
    devices: new Map(all.filter(([name]) => wanted.has(name))),
    ...([...names].join('').length > MOST_NAME_CHARS ? {} : { names }),
  };
}
