import type { Tree } from '../../host/fs/tree.ts';
import { parseCount } from '../kit/text.ts';

const PROCESSES = 'class/kfd/kfd/proc';

/** Use of one GPU by one process of the compute driver (KFD). */
export interface KfdUse {
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
