import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import type { DeviceProcess } from '../../model/collection.ts';
import { drmBytes, drmIdentity, drmValues } from '../kit/drm/clients.ts';
import { type DrmClient, DrmUsers, type EngineWork } from '../kit/drm/users.ts';
import type { Pace } from '../kit/pace.ts';
import { parseCount } from '../kit/text.ts';

/** Most engines of one client. The driver has about ten. */
const MOST_ENGINES = 32;

/**
 * Parses a client of the driver `amdgpu`; undefined for another driver or file. Keys and values are separated by a colon, blanks and tabs.
 * Unknown keys are skipped.
 */
export function parseDrmClient(text: string): DrmClient | undefined {
  const values = drmValues(text);
  if (values.get('drm-driver') !== 'amdgpu') return undefined;
  const engines = new Map<string, EngineWork>();
  for (const [key, value] of values) {
    const engine = /^drm-engine-([a-z0-9_]{1,32})$/.exec(key)?.[1];
    const ns = /^(\d{1,19}) ns$/.exec(value)?.[1];
    if (engine !== undefined && ns !== undefined && engines.size < MOST_ENGINES) engines.set(engine, { busy: BigInt(ns), capacity: 1 });
  }
  // Older kernels have only drm-memory-vram. On newer ones it is the same value as drm-resident-vram.
  const memoryBytes = drmBytes(values.get('drm-resident-vram')) ?? drmBytes(values.get('drm-memory-vram'));
  return { ...drmIdentity(values), ...(memoryBytes !== undefined && { memoryBytes }), engines };
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

/** Reads which processes use GPUs: compute processes from KFD, and all clients of render nodes from their fdinfo. */
export class ProcessReader {
  readonly #kfd: KfdProcesses;
  readonly #users: DrmUsers;

  constructor(host: Host, most: number) {
    this.#kfd = new KfdProcesses(host.sys);
    this.#users = new DrmUsers(host, { parse: parseDrmClient, engineOf, pace: { most, everyMs: SEARCH_MS } });
  }

  /** Why processes may be missing; undefined when none are searched, or the open files of all are known. */
  get hidden(): string | undefined {
    return this.#users.hidden;
  }

  /** Returns the use of each GPU in the order of `gpus`; undefined where nothing shows the processes. */
  read(gpus: readonly UsedGpu[], pace: Pace): readonly (GpuUse | undefined)[] {
    const compute = this.#kfd.read();
    const cards = gpus.map(({ renderMinor }) => ({ card: `renderD${renderMinor}`, nodes: [`renderD${renderMinor}`] }));
    const uses = this.#users.read(cards, pace, [...new Set((compute ?? []).map(({ pid }) => pid))]);
    return gpus.map(({ renderMinor, gpuId }, n): GpuUse | undefined => {
      if (compute !== undefined && gpuId !== undefined) return this.#withCompute(uses[n]?.processes ?? [], compute, gpuId);
      return renderMinor === undefined || !this.#users.isSearched || uses[n]?.hung !== undefined ? undefined : uses[n];
    });
  }

  #withCompute(processes: readonly DeviceProcess[], compute: readonly KfdUse[], of: string): GpuUse {
    const byPid = new Map(processes.map((process) => [process.pid, process]));
    const own = compute.filter(({ gpuId }) => gpuId === of);
    for (const { pid, vramBytes } of own) {
      const process = byPid.get(pid) ?? { pid, ...this.#users.factsOf(pid) };
      // The memory of a compute process may also be in its fdinfo, so the larger value counts and not the sum.
      const memory = vramBytes === undefined ? {} : { memoryUsedBytes: Math.max(process.memoryUsedBytes ?? 0, vramBytes) };
      byPid.set(pid, { ...process, ...memory });
    }
    const units = own.flatMap(({ computeUnits }) => computeUnits ?? []);
    return {
      processes: [...byPid.values()].sort((a, b) => a.pid - b.pid),
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
