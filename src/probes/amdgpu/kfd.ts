import type { Tree } from '../../host/fs/tree.ts';
import { normalizePciAddress } from '../../host/pci/pci.ts';
import { parseCount, plainText } from '../kit/text.ts';

const TOPOLOGY = 'class/kfd/kfd/topology';

export type RasBlocks = readonly string[] | 'none';

/** A GPU, or a partition of one, in the topology of the compute driver (KFD). */
export interface KfdNode {
  /** Name of its directory. */
  readonly node: string;
  /** The `gpuid` in the names of per-process files; absent in copied trees. */
  readonly gpuId?: string;
  /** Number of the render node: 128 for `/dev/dri/renderD128`. */
  readonly renderMinor: number;
  /** PCI address of the card: the low bits of `location_id` are the number of the partition and no function. */
  readonly pciAddress: string;
  /** Number of the partition; 0 for a whole card. */
  readonly partition: number;
  /** 16 hexadecimal digits, the same for all partitions of a card; absent for cards without one. */
  readonly uniqueId?: string;
  /** `90402`: major, minor and stepping of the instruction set. */
  readonly gfxTarget?: string;
  /** Compute dies. */
  readonly dies?: number;
  /** Blocks of which the driver counts errors for certain, `'none'` when it handles no errors; absent when the topology does not tell. */
  readonly rasBlocks?: RasBlocks;
  /** Bytes of its memory; absent when the topology does not tell. */
  readonly memoryBytes?: number | bigint;
  /** Directory of its memory bank, which tells the memory in use; absent without one. */
  readonly memoryBank?: string;
  /** Nodes that a direct link (xGMI) leads to. */
  readonly xgmi: readonly string[];
}

export type Topology =
  | { readonly nodes: readonly KfdNode[]; readonly error?: undefined }
  /** `ENOENT`: the machine has no KFD. */
  | { readonly nodes?: undefined; readonly error: string };

/** Changes with each change of the topology. */
export function topologyGeneration(sys: Tree): string | undefined {
  return sys.reread(`${TOPOLOGY}/generation_id`).text;
}

/** Largest number of nodes that are read. The largest known machine has 66. */
const MOST_NODES = 1_024;

export function readTopology(sys: Tree): Topology {
  const { names, error } = sys.listing(`${TOPOLOGY}/nodes`);
  if (names === undefined) return { error };
  const nodes = names
    .filter((name) => /^\d{1,4}$/.test(name))
    .slice(0, MOST_NODES)
    .sort((a, b) => Number(a) - Number(b));
  return { nodes: nodes.flatMap((node) => readNode(sys, node)) };
}

function readNode(sys: Tree, node: string): readonly KfdNode[] {
  const directory = `${TOPOLOGY}/nodes/${node}`;
  const properties = parseProperties(sys.read(`${directory}/properties`).text ?? '');
  const identity = identityOf(properties);
  if (identity === undefined) return [];
  const gpuId = plainText(sys.read(`${directory}/gpu_id`).text ?? '');
  const bank = `${directory}/mem_banks/0`;
  const size = parseProperties(sys.read(`${bank}/properties`).text ?? '').get('size_in_bytes');
  const memoryBytes = parseCount(size);
  return [
    {
      node,
      ...identity,
      ...(/^[1-9]\d{0,9}$/.test(gpuId) && { gpuId }),
      ...(memoryBytes !== undefined && memoryBytes !== 0 && { memoryBytes, memoryBank: bank }),
      xgmi: linksOf(sys, directory),
    },
  ];
}

type Identity = Omit<KfdNode, 'node' | 'gpuId' | 'memoryBytes' | 'memoryBank' | 'xgmi'>;

/** Undefined for a CPU, and for a GPU that has no render node. */
export function identityOf(properties: ReadonlyMap<string, string>): Identity | undefined {
  const number = (name: string): number | undefined => {
    const value = parseCount(properties.get(name));
    return typeof value === 'number' ? value : undefined;
  };
  const [simds, renderMinor, location] = [number('simd_count'), number('drm_render_minor'), number('location_id')];
  if (simds === undefined || simds === 0 || renderMinor === undefined || renderMinor === 0 || location === undefined) return undefined;
  const pciAddress = addressOf(number('domain') ?? 0, location);
  if (pciAddress === undefined) return undefined;
  const unique = properties.get('unique_id');
  const dies = number('num_xcc');
  const gfxTarget = number('gfx_target_version');
  const capability = number('capability');
  return {
    renderMinor,
    pciAddress,
    partition: location & 7,
    ...(isUnique(unique) && { uniqueId: BigInt(unique).toString(16).padStart(16, '0') }),
    ...(gfxTarget !== undefined && gfxTarget > 0 && { gfxTarget: String(gfxTarget) }),
    ...(dies !== undefined && dies > 0 && { dies }),
    ...(capability !== undefined && { rasBlocks: rasBlocksOf(capability) }),
  };
}

/**
 * Bits by which KFD tells that error handling (RAS) is on: of any block, of the memory, of the engines. Source: HSA_CAP_RASEVENTNOTIFY,
 * HSA_CAP_MEM_EDCSUPPORTED and HSA_CAP_SRAM_EDCSUPPORTED in kfd_sysfs.h, set in kfd_topology.c.
 */
const [ANY_RAS, MEMORY_RAS, ENGINE_RAS] = [0x0020_0000, 0x0010_0000, 0x0400_0000];

function rasBlocksOf(capability: number): RasBlocks {
  const blocks = [...((capability & MEMORY_RAS) !== 0 ? ['umc'] : []), ...((capability & ENGINE_RAS) !== 0 ? ['gfx'] : [])];
  return blocks.length > 0 || (capability & ANY_RAS) !== 0 ? blocks : 'none';
}

/** KFD prints the number in decimal and sysfs in hexadecimal. Both have 64 bits. */
const isUnique = (text: string | undefined): text is string =>
  text !== undefined && /^\d{1,20}$/.test(text) && BigInt(text) !== 0n && BigInt(text) < 2n ** 64n;

/** Bus in bits 8 to 15, device in bits 3 to 7. Bits 0 to 2 are the number of the partition. */
function addressOf(domain: number, location: number): string | undefined {
  if (location > 0xffff || domain > 0xffff_ffff) return undefined;
  const hex = (value: number): string => value.toString(16);
  return normalizePciAddress(`${hex(domain)}:${hex(location >> 8)}:${hex((location >> 3) & 0x1f)}.0`);
}

/** Parses lines of a name and a decimal number. */
export function parseProperties(text: string): ReadonlyMap<string, string> {
  const properties = new Map<string, string>();
  for (const line of plainText(text).split('\n')) {
    const match = /^([a-z0-9_]{1,64}) +(\d{1,20})$/.exec(line.trim());
    if (match !== null && properties.size < 256) properties.set(match[1] as string, match[2] as string);
  }
  return properties;
}

/** Type of an xGMI link. Source: HSA_IOLINKTYPE_XGMI in kfd_topology.h and CRAT. */
const XGMI = '11';

function linksOf(sys: Tree, directory: string): readonly string[] {
  return sys.list(`${directory}/io_links`).flatMap((link) => {
    const properties = parseProperties(sys.read(`${directory}/io_links/${link}/properties`).text ?? '');
    const to = properties.get('node_to');
    return properties.get('type') === XGMI && to !== undefined ? [to] : [];
  });
}

const PROCESSES = 'class/kfd/kfd/proc';

/** Use of one GPU by one process of the compute driver (KFD). */
interface KfdUse {
  readonly pid: number;
  readonly gpuId: string;
  readonly vramBytes?: number;
  /** Compute units in use now; absent on chips that do not tell. */
  readonly computeUnits?: number;
}

/** Most processes and queues that are read. */
const MOST = 1_024;
const MOST_QUEUES = 64;

/** Reads the processes that opened `/dev/kfd`. The PIDs are those of the PID namespace of the host. */
export class KfdProcesses {
  readonly #sys: Tree;
  #gpus = new Map<number, readonly string[]>();

  constructor(sys: Tree) {
    this.#sys = sys;
  }

  /** Undefined when the machine has no KFD, or when the directory cannot be listed. */
  read(): readonly KfdUse[] | undefined {
    const { names } = this.#sys.listing(PROCESSES);
    if (names === undefined) return undefined;
    const pids = names.filter((name) => /^[1-9]\d{0,9}$/.test(name)).slice(0, MOST);
    const before = this.#gpus;
    this.#gpus = new Map();
    const uses = pids.flatMap((name) => this.#usesOf(Number(name), before.get(Number(name))));
    for (const pid of before.keys()) if (!this.#gpus.has(pid)) this.#sys.forget(`${PROCESSES}/${pid}`);
    return uses;
  }

  /** A process has a file for each GPU that it may use. Memory or a queue shows that it does. */
  #usesOf(pid: number, known: readonly string[] | undefined): readonly KfdUse[] {
    const directory = `${PROCESSES}/${pid}`;
    const gpus = known ?? this.#sys.list(directory).flatMap((name) => /^vram_(\d{1,10})$/.exec(name)?.[1] ?? []);
    this.#gpus.set(pid, gpus);
    const memory = new Map(gpus.map((gpuId) => [gpuId, parseCount(this.#sys.reread(`${directory}/vram_${gpuId}`).text)]));
    const queued = [...memory.values()].every((bytes) => bytes === 0 || bytes === undefined) ? this.#queued(directory) : new Set<string>();
    return gpus.flatMap((gpuId): KfdUse[] => {
      const bytes = memory.get(gpuId);
      if ((bytes === undefined || bytes === 0) && !queued.has(gpuId)) return [];
      const units = parseCount(this.#sys.reread(`${directory}/stats_${gpuId}/cu_occupancy`).text);
      return [
        {
          pid,
          gpuId,
          ...(typeof bytes === 'number' && { vramBytes: bytes }),
          ...(typeof units === 'number' && { computeUnits: units }),
        },
      ];
    });
  }

  #queued(directory: string): ReadonlySet<string> {
    const queues = this.#sys.list(`${directory}/queues`).slice(0, MOST_QUEUES);
    return new Set(queues.map((queue) => this.#sys.text(`${directory}/queues/${queue}/gpuid`) ?? ''));
  }
}
