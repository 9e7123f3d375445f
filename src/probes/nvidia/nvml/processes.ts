import type { ProcessList, ProcessSample } from '../sample.ts';
import type { CallNotes } from './call-notes.ts';
import { CODE, printedFor } from './codes.ts';
import { NO_INSTANCE, PROCESS, PROCESS_SAMPLE, PROCESS_SHARE, PROCESS_SHARES } from './layouts.ts';
import type { Handle, Library } from './library.ts';
import type { Memory } from './memory.ts';

/** The processes of one GPU at each read, and at a slower pace what was spent on them: the driver tells the time since it was last asked. */
export class Processes {
  readonly #library: Library;
  /** Of the driver. */
  readonly #branch: number;
  readonly #gpu: Handle;
  readonly #notes: CallNotes;
  #told: ProcessList | undefined;
  #shares: Shares | undefined;

  constructor(library: Library, branch: number, gpu: Handle, notes: CallNotes) {
    this.#library = library;
    this.#branch = branch;
    this.#gpu = gpu;
    this.#notes = notes;
  }

  refresh(isDue: boolean): void {
    const { list, ...count } = this.#notes.during('nvmlDeviceGetComputeRunningProcesses', () =>
      readProcesses(this.#library, this.#branch, this.#gpu),
    );
    const sinceUs = this.#shares?.atUs ?? 0;
    if (list.length === 0) this.#shares = undefined;
    else if (isDue) {
      const pids = list.map(({ pid }) => pid);
      this.#shares = this.#notes.during('nvmlDeviceGetProcessUtilization', () => readShares(this.#library, this.#gpu, sinceUs, pids));
    }
    // A process that came after the last look at the shares has none.
    this.#told = { ...count, list: list.map((process) => ({ ...process, utilizationRatio: this.#shares?.byPid.get(process.pid) })) };
  }

  told(): ProcessList | undefined {
    return this.#told;
  }

  forget(): void {
    this.#told = this.#shares = undefined;
  }
}

/** A list that the driver filled. */
interface Filled {
  readonly code: number;
  readonly memory: Memory;
  readonly count: number;
}

const FIRST_CAPACITY = 512;
const MOST_ENTRIES = 100_000;

/** Calls a function that fills a list after a header, with more room where it wants that. `count`: where the number of entries stands. */
function filled(library: Library, header: number, count: number, entry: number, call: (memory: Memory) => number): Filled {
  let capacity = FIRST_CAPACITY;
  for (let attempt = 1; ; attempt += 1) {
    const memory = library.memory(header + capacity * entry);
    memory.setU32(count, capacity);
    const code = call(memory);
    if (code !== CODE.insufficientSize || attempt === 3) return { code, memory, count: Math.min(memory.u32(count), capacity) };
    // Processes come and go between two calls: some room to spare.
    capacity = Math.min(memory.u32(count), MOST_ENTRIES) + FIRST_CAPACITY;
  }
}

/** Programs with a context, by kind; clients of MPS are in no other list. Versions 2 and 3 share one struct. */
const KINDS = ['Compute', 'Graphics', 'MPSCompute'];
/** The first builds of this branch write entries of 32 bytes by the third version, and some have none; the second is that of the other branches. */
const BRANCH_OF_LONG_ENTRIES = 535;
/** The number of entries, then the entries. */
const LIST = 8;

/** All of a GPU, those inside its instances included. Not counted where the driver tells of no kind, or fails to tell of one. */
function readProcesses(library: Library, branch: number, gpu: Handle): ProcessList {
  const versions = branch === BRANCH_OF_LONG_ENTRIES ? ['v2'] : ['v3', 'v2'];
  const kinds = KINDS.map((kind) => {
    const symbols = versions.map((version) => `nvmlDeviceGet${kind}RunningProcesses_${version}`);
    const symbol = symbols.find((each) => library.bind(each, 'hpp') !== undefined) ?? '';
    return filled(library, LIST, 0, PROCESS.size, ({ address }) => library.call(symbol, 'hpp', gpu, address, address + LIST));
  });
  const told = kinds.filter(({ code }) => code === CODE.success);
  const list = told.flatMap(({ memory, count }) =>
    Array.from({ length: count }, (_, index) => processAt(memory, LIST + index * PROCESS.size)),
  );
  const isCounted = told.length > 0 && kinds.every(({ code }) => code !== CODE.insufficientSize && printedFor(code) === undefined);
  return isCounted ? { count: new Set(list.map(({ pid }) => pid)).size, list } : { list };
}

/** All ones: the driver does not tell, as without rights. */
const NOT_TOLD = 2 ** 64;

function processAt(memory: Memory, at: number): ProcessSample {
  const memoryBytes = memory.u64(at + PROCESS.memory);
  return {
    pid: memory.u32(at + PROCESS.pid),
    memoryBytes: memoryBytes >= NOT_TOLD ? undefined : memoryBytes,
    gpuInstance: instanceText(memory.u32(at + PROCESS.gpuInstance)),
    computeInstance: instanceText(memory.u32(at + PROCESS.computeInstance)),
  };
}

const instanceText = (id: number): string | undefined => (id === NO_INSTANCE ? undefined : String(id));

/** What the driver spent on the processes of a GPU since it was last asked. */
interface Shares {
  /** Share of its time that each engine spent on a process. */
  readonly byPid: ReadonlyMap<number, Readonly<Record<string, number>>>;
  /** The latest sample, in microseconds of the driver. */
  readonly atUs: number;
}

/** The driver gives nonsense above now and then. */
const MOST_PERCENT = 100;

/**
 * By the newest function that the driver has; the older one does not tell of all engines. Undefined where the driver does not tell, as of
 * GPUs that are split. `sinceUs`: of the answer before, or 0. The driver leaves out processes on which it spent nothing: those of `pids`
 * that it leaves out have zeros.
 */
function readShares(library: Library, gpu: Handle, sinceUs: number, pids: readonly number[]): Shares | undefined {
  const { size: header, count, since, list, version } = PROCESS_SHARES;
  const newer = filled(library, header, count, PROCESS_SHARE.size, (memory) => {
    memory.setU32(0, version);
    memory.setPointer(since, sinceUs);
    memory.setPointer(list, memory.address + header);
    return library.call('nvmlDeviceGetProcessesUtilizationInfo', 'hp', gpu, memory.address);
  });
  const isOld = newer.code === CODE.functionNotFound || newer.code === CODE.versionMismatch;
  const layout = isOld ? PROCESS_SAMPLE : PROCESS_SHARE;
  const older = (): Filled =>
    filled(library, header, count, PROCESS_SAMPLE.size, ({ address }) =>
      library.call('nvmlDeviceGetProcessUtilization', 'hppq', gpu, address + header, address + count, sinceUs),
    );
  const answer = isOld ? older() : newer;
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

const isPossible = ({ percents }: Sample): boolean => Object.values(percents).every((percent) => percent <= MOST_PERCENT);

/** A process may have several samples: their mean; zero without any. */
function meansOf(samples: readonly Sample[], engines: readonly string[]): Readonly<Record<string, number>> {
  const meanOf = (engine: string): number =>
    samples.reduce((sum, { percents }) => sum + (percents[engine] ?? 0), 0) / (samples.length || 1) / 100;
  return Object.fromEntries(engines.map((engine) => [engine, meanOf(engine)]));
}
