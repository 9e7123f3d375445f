import { readdir } from 'node:fs/promises';
import { resolve } from 'node:path';
import { DocumentCache, inDirectory, isProblem } from '../../host/documents/document-cache.ts';
import type { DocumentThread } from '../../host/documents/document-thread.ts';
import type { DocumentProblem } from '../../host/documents/kind.ts';
import { descriptorPath, type OpenedPath, openPath } from '../../host/fs/open-path.ts';
import type { Tree } from '../../host/fs/tree.ts';
import { isPciAddress, pciAddressOf } from '../../host/pci/pci.ts';
import type { Claim } from '../../model/allocation.ts';
import { type ClaimForms, type ClaimHardware, claimDeviceKey } from '../../model/claim-hardware.ts';
import type { Observe } from '../../model/observation.ts';
import { type CdiNode, type CdiSpec, cdiKind } from './cdi-spec.ts';
import type { ClaimFiles } from './claim-files.ts';

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
