import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import type { DeviceProcess } from '../../model/collection.ts';
import {
  ClientSearch,
  type DrmIdentity,
  DrmProcessFactsReader,
  drmBytes,
  drmIdentity,
  drmValues,
  readClients,
} from '../kit/drm/clients.ts';
import type { Pace } from '../kit/pace.ts';
import { parseCount } from '../kit/text.ts';

/** One client of the graphics driver: an open file of a render node, as `/proc/<pid>/fdinfo/<fd>` shows it. */
interface DrmClient extends DrmIdentity {
  readonly vramBytes?: number;
  /** Nanoseconds that each engine worked for the client, keyed by the name of the driver. An engine that never worked is absent. */
  readonly engineNs: ReadonlyMap<string, bigint>;
}

/** Most engines of one client. The driver has about ten. */
const MOST_ENGINES = 32;

/**
 * Parses a client of the driver `amdgpu`; undefined for another driver or file. Keys and values are separated by a colon, blanks and tabs.
 * Unknown keys are skipped.
 */
export function parseDrmClient(text: string): DrmClient | undefined {
  const values = drmValues(text);
  if (values.get('drm-driver') !== 'amdgpu') return undefined;
  const engineNs = new Map<string, bigint>();
  for (const [key, value] of values) {
    const engine = /^drm-engine-([a-z0-9_]{1,32})$/.exec(key)?.[1];
    const ns = /^(\d{1,19}) ns$/.exec(value)?.[1];
    if (engine !== undefined && ns !== undefined && engineNs.size < MOST_ENGINES) engineNs.set(engine, BigInt(ns));
  }
  // Older kernels have only drm-memory-vram. On newer ones it is the same value as drm-resident-vram.
  const vramBytes = drmBytes(values.get('drm-resident-vram')) ?? drmBytes(values.get('drm-memory-vram'));
  return {
    ...drmIdentity(values),
    ...(vramBytes !== undefined && { vramBytes }),
    engineNs,
  };
}

/** Name of an engine as in `device_utilization_ratio`. The instances of a kind are one engine there. */
function engineOf(name: string): string {
  if (name === 'gfx' || name === 'compute') return 'gpu';
  if (/^enc/.test(name)) return 'encoder';
  if (/^dec/.test(name)) return 'decoder';
  return name.replace(/_\d+$/, '');
}

/** Time between two searches. Compute processes are known at once, from KFD. */
const SEARCH_MS = 30_000;

/** Use of one GPU or partition by processes. */
export interface GpuUse {
  readonly processes: readonly DeviceProcess[];
  /** Compute units in use now by all processes; absent when no process tells. */
  readonly computeUnits?: number;
}

/** A GPU or partition as processes see it. */
interface UsedGpu {
  readonly renderMinor?: number;
  readonly gpuId?: string;
}

/** Time on the engines of one client at one read. */
interface Meter {
  readonly engineNs: ReadonlyMap<string, bigint>;
  readonly atMs: number;
}

interface ProcessUse {
  readonly pid: number;
  memoryBytes?: number;
  computeUnits?: number;
  /** Absent until an engine was read twice. */
  utilization?: Map<string, number>;
}

/** Reads which processes use GPUs: compute processes from KFD, and all clients of render nodes from their fdinfo. */
export class ProcessReader {
  readonly #proc: Tree;
  readonly #kfd: KfdProcesses;
  readonly #search: ClientSearch;
  readonly #facts: DrmProcessFactsReader;
  readonly #mostListed: number;
  #meters = new Map<string, Meter>();

  constructor(host: Host, mostListed: number) {
    this.#proc = host.proc;
    this.#kfd = new KfdProcesses(host.sys);
    this.#search = new ClientSearch(host.proc, { most: mostListed, everyMs: SEARCH_MS });
    this.#facts = new DrmProcessFactsReader(host.proc);
    this.#mostListed = mostListed;
  }

  /** Why processes may be missing; undefined when none are searched, or the open files of all are known. */
  get hidden(): string | undefined {
    return this.#mostListed > 0 ? this.#search.hidden : undefined;
  }

  /** Returns the use of each GPU in the order of `gpus`; undefined where nothing shows the processes. */
  read(gpus: readonly UsedGpu[], pace: Pace): readonly (GpuUse | undefined)[] {
    const { nowMs } = pace;
    const compute = this.#kfd.read();
    this.#facts.renew();
    const open = this.#search.find(pace, [...new Set((compute ?? []).map(({ pid }) => pid))]);
    const isSearched = this.#mostListed > 0 && !this.#search.isRefused;
    const meters = new Map<string, Meter>();
    const uses = gpus.map((gpu): GpuUse | undefined => {
      const isCompute = compute !== undefined && gpu.gpuId !== undefined;
      if (!isCompute && !(isSearched && gpu.renderMinor !== undefined)) return undefined;
      const byPid = new Map<number, ProcessUse>();
      const useOf = (pid: number): ProcessUse => {
        const use = byPid.get(pid) ?? { pid };
        byPid.set(pid, use);
        return use;
      };
      const card = `renderD${gpu.renderMinor}`;
      const { clients } = readClients(this.#proc, this.#search, open, { card, nodes: [card] }, parseDrmClient);
      for (const { pid, client, key } of clients) this.#addClient(useOf(pid), client, key, nowMs, meters);
      for (const { pid, gpuId, vramBytes, computeUnits } of compute ?? []) {
        if (gpuId !== gpu.gpuId) continue;
        const use = useOf(pid);
        // The memory of a compute process may also be in its fdinfo, so the larger value counts and not the sum.
        if (vramBytes !== undefined) use.memoryBytes = Math.max(use.memoryBytes ?? 0, vramBytes);
        if (computeUnits !== undefined) use.computeUnits = computeUnits;
      }
      // A hidden process may be the one that uses it.
      if (!isCompute && byPid.size === 0 && this.#search.hidden !== undefined) return undefined;
      return this.#useOf([...byPid.values()]);
    });
    this.#meters = meters;
    return uses;
  }

  #addClient(use: ProcessUse, { vramBytes, engineNs }: DrmClient, key: string, nowMs: number, meters: Map<string, Meter>): void {
    if (vramBytes !== undefined) use.memoryBytes = (use.memoryBytes ?? 0) + vramBytes;
    const before = this.#meters.get(key);
    meters.set(key, { engineNs, atMs: nowMs });
    if (before === undefined || nowMs <= before.atMs) return;
    use.utilization ??= new Map();
    for (const [name, ns] of engineNs) {
      // An engine that never worked is left out, so it stood at 0.
      const grownNs = Number(ns - (before.engineNs.get(name) ?? 0n));
      if (grownNs < 0) continue;
      const engine = engineOf(name);
      use.utilization.set(engine, (use.utilization.get(engine) ?? 0) + grownNs / 1e6 / (nowMs - before.atMs));
    }
  }

  #useOf(uses: readonly ProcessUse[]): GpuUse {
    const units = uses.flatMap(({ computeUnits }) => computeUnits ?? []);
    return {
      processes: [...uses]
        .sort((a, b) => a.pid - b.pid)
        .map(({ pid, memoryBytes, utilization }) => ({
          pid,
          ...(memoryBytes !== undefined && { memoryUsedBytes: memoryBytes }),
          // Several clients and engines of a kind may add up to more than the whole.
          ...(utilization !== undefined && {
            utilization: Object.fromEntries([...utilization].map(([engine, share]) => [engine, Math.min(share, 1)])),
          }),
          ...this.#facts.of(pid),
        })),
      ...(units.length > 0 && { computeUnits: units.reduce((a, b) => a + b, 0) }),
    };
  }
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
