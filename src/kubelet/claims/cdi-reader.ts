import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Tree } from '../../host/fs/tree.ts';
import { isPciAddress, pciAddressOf } from '../../host/pci/pci.ts';
import type { Claim } from '../../model/allocation.ts';
import { type ClaimHardware, claimDeviceKey } from '../../model/claim-hardware.ts';
import type { Observe } from '../../model/observation.ts';
import type { CdiNode, CdiSpec } from './cdi-spec.ts';
import { FileCache, forEachOf, type Parsed } from './file-cache.ts';

/** Drivers write one spec for each claim, and may leave specs of ended claims behind. */
const MOST_FILES = 16_384;
const MOST_BYTES = 4 * 1_048_576;
const AT_ONCE = 8;

/** The class of sysfs for each directory below `/dev`. */
const CLASSES: Readonly<Record<string, string>> = { dri: 'drm', accel: 'accel', infiniband: 'infiniband_verbs' };
/** The node of a part of an NVIDIA GPU. The part also needs the node of the whole GPU. */
const CAPABILITY_NODE = /^\/dev\/nvidia-caps\/nvidia-cap\d+$/;

/** Loads the parser of YAML with the first claim that names CDI devices: most agents never need it. */
async function openSpecs(observe?: Observe): Promise<FileCache<CdiSpec | undefined>> {
  const { parseCdiSpec } = await import('./cdi-spec.ts');
  return new FileCache(
    MOST_BYTES,
    (text): Parsed<CdiSpec | undefined> => {
      const spec = parseCdiSpec(text);
      return { value: spec, isComplete: spec !== undefined };
    },
    observe,
  );
}

/** Finds the device nodes of claims in the CDI specs of the node. */
export class CdiReader {
  readonly #directories: readonly string[];
  readonly #sys: Tree;
  #files: FileCache<CdiSpec | undefined> | undefined;

  readonly #observe: Observe | undefined;

  constructor(directories: readonly string[], sys: Tree, observe?: Observe) {
    this.#observe = observe;
    this.#directories = directories;
    this.#sys = sys;
  }

  /** Returns the hardware of the devices of these claims, keyed by {@link claimDeviceKey}. Never rejects. */
  async read(claims: readonly Claim[]): Promise<ReadonlyMap<string, ClaimHardware>> {
    const found = new Map<string, ClaimHardware>();
    const wanted = new Set(claims.flatMap(({ cdiDevices = [] }) => cdiDevices));
    if (wanted.size === 0) return found;
    const files = this.#files ?? (await openSpecs(this.#observe));
    this.#files = files;
    const nodesOf = new Map<string, readonly CdiNode[]>();
    for (const directory of this.#directories) {
      for (const [name, nodes] of await this.#directory(files, directory, wanted)) if (!nodesOf.has(name)) nodesOf.set(name, nodes);
    }
    files.endRound();
    for (const claim of claims) {
      const hardware = this.#hardware((claim.cdiDevices ?? []).flatMap((name) => nodesOf.get(name) ?? []));
      if (hardware !== undefined) found.set(claimDeviceKey(claim), hardware);
    }
    return found;
  }

  /** A name that two specs of one directory define has no meaning, as for container runtimes. */
  async #directory(
    specs: FileCache<CdiSpec | undefined>,
    directory: string,
    wanted: ReadonlySet<string>,
  ): Promise<ReadonlyMap<string, readonly CdiNode[]>> {
    const files = (await readdir(directory).catch((): string[] => [])).filter((name) => /\.(?:json|ya?ml)$/.test(name));
    this.#observe?.({ kind: 'directory', path: directory, entries: files.map((name) => [name, 'file'] as const) });
    const found = new Map<string, readonly CdiNode[]>();
    await forEachOf(files.slice(0, MOST_FILES), AT_ONCE, async (file) => {
      const read = await specs.read(join(directory, file));
      for (const [name, nodes] of read?.value ?? []) {
        if (wanted.has(name)) found.set(name, found.has(name) ? [] : nodes);
      }
    });
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
      ...(deviceNodes.some((path) => CAPABILITY_NODE.test(path)) ? { isPartition: true as const } : {}),
    };
  }

  /** PCI address of a node, from its numbers or its path. Nothing opens the node. */
  #addressOf({ path, type = 'c', major, minor }: CdiNode): string | undefined {
    if (major !== undefined && minor !== undefined && major > 0)
      return pciAddressOf(this.#sys, `dev/${type === 'b' ? 'block' : 'char'}/${major}:${minor}`);
    const [, directory = '', name = ''] = /^\/dev\/([^/]+)\/([^/]+)$/.exec(path) ?? [];
    if (directory === 'vfio') return this.#addressOfGroup(name);
    const inClass = CLASSES[directory];
    return inClass === undefined ? undefined : pciAddressOf(this.#sys, `class/${inClass}/${name}`);
  }

  /** A VFIO group names hardware only when it has one function. */
  #addressOfGroup(group: string): string | undefined {
    if (!/^\d+$/.test(group)) return undefined;
    const functions = this.#sys.list(`kernel/iommu_groups/${group}/devices`).filter(isPciAddress);
    return functions.length === 1 ? functions[0] : undefined;
  }
}
