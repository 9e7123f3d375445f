import type { ProcessList, ProcessSample } from '../sample.ts';
import type { CallNotes } from './call-notes.ts';
import { CODE, printedFor } from './codes.ts';
import type { DriverVersion } from './driver-version.ts';
import { NO_INSTANCE, PROCESS } from './layouts.ts';
import type { Handle, Library } from './library.ts';
import type { Memory } from './memory.ts';
import type { ProcessShares, Shares } from './process-shares.ts';

const FIRST_CAPACITY = 256;
/** All ones: the driver does not tell, as without rights. */
const NOT_TOLD = 2 ** 64;
/** The number of entries, then the entries. */
const FIRST = 8;

/** Programs with a context, by kind; clients of MPS are in no other list. Versions 2 and 3 share one struct. */
const KINDS = ['Compute', 'Graphics', 'MPSCompute'];
/** The first builds of this branch write entries of 32 bytes by the third version, and some have none; the second is that of the other branches. */
const BRANCH_OF_LONG_ENTRIES = 535;

/** Lists the processes of a GPU, those inside its instances included. */
export class ProcessLists {
  readonly #library: Library;
  readonly #symbols: readonly string[];
  #memory: Memory;

  constructor(library: Library, { branch }: DriverVersion) {
    this.#library = library;
    this.#memory = library.memory(FIRST + FIRST_CAPACITY * PROCESS.size);
    const versions = branch === BRANCH_OF_LONG_ENTRIES ? ['v2'] : ['v3', 'v2'];
    this.#symbols = KINDS.flatMap((kind) => {
      const symbols = versions.map((version) => `nvmlDeviceGet${kind}RunningProcesses_${version}`);
      return symbols.find((symbol) => library.bind(symbol, 'hpp') !== undefined) ?? [];
    });
  }

  /** Not counted where the driver tells of no kind, or fails to tell of one, so that there may be more. */
  read(gpu: Handle): ProcessList {
    const kinds = this.#symbols.map((symbol) => this.#listed(symbol, gpu));
    const list = kinds.flatMap((kind) => (typeof kind === 'number' ? [] : kind));
    const isCounted = kinds.some((kind) => typeof kind !== 'number') && kinds.every((kind) => typeof kind !== 'number' || !isFailure(kind));
    return isCounted ? { count: new Set(list.map(({ pid }) => pid)).size, list } : { list };
  }

  /** Or the code. */
  #listed(symbol: string, gpu: Handle): readonly ProcessSample[] | number {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const capacity = Math.floor((this.#memory.size - FIRST) / PROCESS.size);
      this.#memory.setU32(0, capacity);
      const code = this.#library.call(symbol, 'hpp', gpu, this.#memory.address, this.#memory.address + FIRST);
      if (code === CODE.success) {
        const count = Math.min(this.#memory.u32(0), capacity);
        return Array.from({ length: count }, (_, index) => processAt(this.#memory, FIRST + index * PROCESS.size));
      }
      if (code !== CODE.insufficientSize) return code;
      // Processes come and go between two calls: some room to spare.
      this.#memory = this.#library.memory(FIRST + (Math.min(this.#memory.u32(0), 100_000) + FIRST_CAPACITY) * PROCESS.size);
    }
    return CODE.unknown;
  }
}

const isFailure = (code: number): boolean => printedFor(code) !== undefined;

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

/** The processes of one GPU at each read, and at a slower pace what was spent on them: the driver tells the time since it was last asked. */
export class Processes {
  readonly #lists: ProcessLists;
  readonly #timeShares: ProcessShares;
  readonly #gpu: Handle;
  readonly #notes: CallNotes;
  #told: ProcessList | undefined;
  #shares: Shares | undefined;

  constructor(lists: ProcessLists, shares: ProcessShares, gpu: Handle, notes: CallNotes) {
    this.#lists = lists;
    this.#timeShares = shares;
    this.#gpu = gpu;
    this.#notes = notes;
  }

  refresh(isDue: boolean): void {
    const { list, ...count } = this.#notes.during('nvmlDeviceGetComputeRunningProcesses', () => this.#lists.read(this.#gpu));
    const sinceUs = this.#shares?.atUs ?? 0;
    if (list.length === 0) this.#shares = undefined;
    else if (isDue) {
      const pids = list.map(({ pid }) => pid);
      this.#shares = this.#notes.during('nvmlDeviceGetProcessUtilization', () => this.#timeShares.read(this.#gpu, sinceUs, pids));
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
