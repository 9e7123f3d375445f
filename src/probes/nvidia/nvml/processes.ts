import type { ProcessList, ProcessSample } from '../sample.ts';
import { CODE, failureOf, NO_INSTANCE, PROCESS, PROCESS_SAMPLE, PROCESS_SHARE, PROCESS_SHARES } from './header.ts';
import { type Library, type Memory, zeros } from './library.ts';
import type { Device, TrackedDevice } from './question.ts';

/** Processes of one GPU at each read, and at a longer interval their utilization since the previous call. */
export class Processes {
  readonly #gpu: TrackedDevice;
  /** Branch of the driver. */
  readonly #branch: number;
  #list: ProcessList | undefined;
  #shares: Shares | undefined;
  /** Monotonic clock of the last samples of processes that were new. */
  #newMs = -Infinity;

  constructor(gpu: TrackedDevice, branch: number) {
    this.#gpu = gpu;
    this.#branch = branch;
  }

  /** `isDue`: the utilization is read too. `nowMs`: monotonic clock. `isBusy`: the driver says that the GPU works. */
  refresh(isDue: boolean, nowMs: number, isBusy: boolean): void {
    const { list, areSharesHidden, ...count } = this.#gpu.during('nvmlDeviceGetComputeRunningProcesses', () =>
      readProcesses(this.#gpu, this.#branch),
    );
    const sinceUs = this.#shares?.atUs ?? 0;
    if (list.length === 0) this.#shares = undefined;
    else if (isDue) {
      const pids = areSharesHidden ? [] : list.map(({ pid }) => pid);
      const read = this.#gpu.during('nvmlDeviceGetProcessUtilization', () => readShares(this.#gpu, sinceUs, pids, isBusy));
      const isNew = read?.atUs !== sinceUs;
      // The driver may have made no sample yet. After that time, no sample means that no process used the GPU.
      if (isNew || nowMs - this.#newMs >= LONGEST_SAMPLING_MS) this.#shares = read;
      if (isNew) this.#newMs = nowMs;
    }
    // A process that started after the last read of the shares has no share.
    this.#list = { ...count, list: list.map((process) => ({ ...process, utilizationRatio: this.#shares?.byPid.get(process.pid) })) };
  }

  list(): ProcessList | undefined {
    return this.#list;
  }

  forget(): void {
    this.#list = this.#shares = undefined;
  }
}

/** Twice the longest time between two samples of utilization. Source: `nvmlUtilization_t` of nvml.h, one second or less. */
const LONGEST_SAMPLING_MS = 2_000;

/** Result of a call that fills a list. */
interface Filled {
  readonly code: number;
  readonly memory: Memory;
  readonly count: number;
}

const FIRST_CAPACITY = 512;
const MAX_ENTRIES = 100_000;

/** Calls a function that fills a list after a header. It retries with more memory if needed. `count` is the offset of the number of entries. */
function filled(library: Library, header: number, count: number, entry: number, call: (memory: Memory) => number): Filled {
  let capacity = FIRST_CAPACITY;
  for (let attempt = 1; ; attempt += 1) {
    const memory = zeros(library, header + capacity * entry);
    memory.setU32(count, capacity);
    const code = call(memory);
    if (code !== CODE.insufficientSize || attempt === 3) return { code, memory, count: Math.min(memory.u32(count), capacity) };
    // Processes may start between two calls, so there is space for additional entries.
    capacity = Math.min(memory.u32(count), MAX_ENTRIES) + FIRST_CAPACITY;
  }
}

/** Kinds of processes with a context. MPS clients are only in their own list. Versions 2 and 3 of the functions use one struct. */
const MPS = 'MPSCompute';
const KINDS = ['Compute', 'Graphics', MPS];
/** In early builds of this branch, version 3 writes entries of 32 bytes or is absent. Version 2 is the same as in other branches. */
const BRANCH_OF_LONG_ENTRIES = 535;
/** Offset of the entries; the number of entries comes before them. */
const LIST = 8;

/**
 * Reads all processes of a GPU and of its instances. There is no count when all kinds are unsupported, or when one kind fails.
 *
 * `areSharesHidden`: the GPU has clients of an MPS server, or that is not known. The driver counts the time of all clients as the server's, so that
 * a process without a share may work. On an H100 with driver 580, clients had memory and no share, and the server had the share of all.
 */
function readProcesses({ library, handle }: Device, branch: number): ProcessList & { readonly areSharesHidden: boolean } {
  const versions = branch === BRANCH_OF_LONG_ENTRIES ? ['v2'] : ['v3', 'v2'];
  const kinds = KINDS.map((kind) => {
    const isMps = kind === MPS;
    const symbols = versions.map((version) => `nvmlDeviceGet${kind}RunningProcesses_${version}`);
    const symbol = symbols.find((each) => library.bind(each, 'hpp') !== undefined) ?? '';
    const answer = filled(library, LIST, 0, PROCESS.size, ({ address }) => library.call(symbol, 'hpp', handle, address, address + LIST));
    const { code, memory } = answer;
    const list = Array.from({ length: code === CODE.success ? answer.count : 0 }, (_, index): ProcessSample => {
      const process = processAt(memory, LIST + index * PROCESS.size);
      return isMps ? { ...process, isMpsClient: true } : process;
    });
    return { code, count: answer.count, list, isMps };
  });
  const list = kinds.flatMap((kind) => kind.list);
  const areSharesHidden = kinds.some(({ isMps, code, count }) => isMps && (code === CODE.success ? count > 0 : isFailure(code)));
  const isCounted = kinds.some(({ code }) => code === CODE.success) && !kinds.some(({ code }) => isFailure(code));
  return { list, areSharesHidden, ...(isCounted ? { count: new Set(list.map(({ pid }) => pid)).size } : {}) };
}

const isFailure = (code: number): boolean => code === CODE.insufficientSize || failureOf(code) !== undefined;

/** All ones (rounded) mean that the memory is unknown, for example without permission. */
const UNKNOWN_MEMORY = 2 ** 64;

function processAt(memory: Memory, at: number): ProcessSample {
  const memoryBytes = memory.u64(at + PROCESS.memory);
  return {
    pid: memory.u32(at + PROCESS.pid),
    memoryBytes: memoryBytes >= UNKNOWN_MEMORY ? undefined : memoryBytes,
    gpuInstance: instanceText(memory.u32(at + PROCESS.gpuInstance)),
    computeInstance: instanceText(memory.u32(at + PROCESS.computeInstance)),
  };
}

const instanceText = (id: number): string | undefined => (id === NO_INSTANCE ? undefined : String(id));

/** Utilization of a GPU by its processes since the previous call. */
interface Shares {
  /** Share of the time of each engine that a process used, keyed by PID and engine. */
  readonly byPid: ReadonlyMap<number, Readonly<Record<string, number>>>;
  /** Time of the latest sample, in microseconds of the driver's clock. */
  readonly atUs: number;
}

/** Drivers that know the newer function can still refuse it for a board whose shares the older one gives. */
const OLDER_MAY_ANSWER: ReadonlySet<number> = new Set([CODE.functionNotFound, CODE.versionMismatch, CODE.notSupported]);
/** The driver sometimes returns invalid values above this. */
const MAX_PERCENT = 100;

/**
 * Reads the shares with the newest function of the driver; the older function lacks some engines. Undefined when the driver supports
 * neither, as with MIG. `sinceUs` is `atUs` of the previous answer, or 0. The driver omits processes that used no time: such processes
 * of `pids` get zeros. Without any sample on a busy GPU the shares are not known: some process works.
 */
function readShares({ library, handle }: Device, sinceUs: number, pids: readonly number[], isBusy: boolean): Shares | undefined {
  const { size: header, count, since, list, version } = PROCESS_SHARES;
  const newer = filled(library, header, count, PROCESS_SHARE.size, (memory) => {
    memory.setU32(0, version);
    memory.setPointer(since, sinceUs);
    memory.setPointer(list, memory.address + header);
    return library.call('nvmlDeviceGetProcessesUtilizationInfo', 'hp', handle, memory.address);
  });
  const older = (): Filled =>
    filled(library, header, count, PROCESS_SAMPLE.size, ({ address }) =>
      library.call('nvmlDeviceGetProcessUtilization', 'hppq', handle, address + header, address + count, sinceUs),
    );
  // On some boards the newer function finds no sample while the older one does.
  const second = OLDER_MAY_ANSWER.has(newer.code) || newer.code === CODE.notFound ? older() : undefined;
  const isOld = second !== undefined && (newer.code !== CODE.notFound || second.code === CODE.success);
  const [answer, layout] = isOld ? [second, PROCESS_SAMPLE] : [newer, PROCESS_SHARE];
  if (answer.code === CODE.notFound && isBusy) return { byPid: new Map(), atUs: sinceUs };
  if (answer.code !== CODE.success && answer.code !== CODE.notFound) return undefined;
  const length = answer.code === CODE.success ? answer.count : 0;
  const samples = Array.from({ length }, (_, index) => sampleAt(answer.memory, header + index * layout.size, layout)).filter(isPossible);
  const engines = Object.keys(layout.engines);
  const all = [...new Set([...pids, ...samples.map(({ pid }) => pid)])];
  return {
    byPid: new Map(
      all.map((pid) => [
        pid,
        meansOf(
          samples.filter((sample) => sample.pid === pid),
          engines,
        ),
      ]),
    ),
    atUs: Math.max(sinceUs, ...samples.map(({ atUs }) => atUs)),
  };
}

interface Sample {
  readonly pid: number;
  readonly atUs: number;
  readonly percents: Readonly<Record<string, number>>;
}

function sampleAt(memory: Memory, at: number, { pid, timestamp, engines }: typeof PROCESS_SAMPLE | typeof PROCESS_SHARE): Sample {
  const percents = Object.entries(engines).map(([engine, offset]) => [engine, memory.u32(at + offset)] as const);
  return { pid: memory.u32(at + pid), atUs: memory.u64(at + timestamp), percents: Object.fromEntries(percents) };
}

const isPossible = ({ percents }: Sample): boolean => Object.values(percents).every((percent) => percent <= MAX_PERCENT);

/** Returns the mean of the samples of a process for each engine; 0 without samples. */
function meansOf(samples: readonly Sample[], engines: readonly string[]): Readonly<Record<string, number>> {
  const meanOf = (engine: string): number =>
    samples.reduce((sum, { percents }) => sum + (percents[engine] ?? 0), 0) / (samples.length || 1) / 100;
  return Object.fromEntries(engines.map((engine) => [engine, meanOf(engine)]));
}
