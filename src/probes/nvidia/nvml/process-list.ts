import { CODE, printedFor } from './codes.ts';
import type { DriverVersion } from './driver-version.ts';
import { NO_INSTANCE, PROCESS } from './layouts.ts';
import type { Handle, Library, NvmlFunction } from './library.ts';
import type { Memory } from './memory.ts';
import type { Values } from './sheet.ts';

const FIRST_CAPACITY = 256;
/** All ones: the driver does not tell, as without rights. */
const NOT_TOLD = 2 ** 64;
const WORDS = PROCESS.size / 4;
const FIRST = 8;

/** Programs with a context, by kind, in the letters of `nvidia-smi`; clients of MPS are in no other list. Versions 2 and 3 share one struct. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  C: ['nvmlDeviceGetComputeRunningProcesses_v3', 'nvmlDeviceGetComputeRunningProcesses_v2'],
  G: ['nvmlDeviceGetGraphicsRunningProcesses_v3', 'nvmlDeviceGetGraphicsRunningProcesses_v2'],
  'M+C': ['nvmlDeviceGetMPSComputeRunningProcesses_v3', 'nvmlDeviceGetMPSComputeRunningProcesses_v2'],
};

const COMPUTE = 'C';
/** Its first builds write entries of 32 bytes by the third version, and some have none; the second is that of the other branches. */
const BRANCH_OF_LONG_ENTRIES = 535;
interface Kind {
  readonly letter: string;
  readonly call: NvmlFunction;
}

/** The processes of one kind as the library wrote them; undefined where it does not tell, null where it failed to. */
type Answer = Int32Array | undefined | null;

/** The processes of a GPU: what was made of the answers, and the answers. */
export interface Listing {
  /** Undefined when the driver tells of no kind. */
  readonly processes: readonly Values[] | undefined;
  /** False where it failed to tell of a kind, so that there may be more. */
  readonly isWhole: boolean;
  readonly answers: readonly Answer[];
}

export const NO_LISTING: Listing = { processes: undefined, isWhole: false, answers: [] };

/** Lists the processes of a GPU, those inside its instances included. */
export class ProcessList {
  readonly #library: Library;
  readonly #calls: readonly Kind[];
  #memory: Memory;

  constructor(library: Library, { branch }: DriverVersion) {
    this.#library = library;
    this.#memory = library.memory(FIRST + FIRST_CAPACITY * PROCESS.size);
    this.#calls = Object.entries(KINDS).flatMap(([letter, symbols]) => {
      const known = branch === BRANCH_OF_LONG_ENTRIES ? symbols.filter((symbol) => symbol.endsWith('_v2')) : symbols;
      const call = known.map((symbol) => library.bind(symbol, 'hpp')).find((each) => each !== undefined);
      return call === undefined ? [] : [{ letter, call }];
    });
  }

  /** `before` itself when nothing changed. `isDue`: also kinds of which there was no program, as on most nodes of those that draw or use MPS. */
  read(handle: Handle, before: Listing, isDue: boolean): Listing {
    let answers: Answer[] | undefined;
    for (let index = 0; index < this.#calls.length; index += 1) {
      const { letter, call } = this.#calls[index] as Kind;
      if (letter !== COMPUTE && !isDue && before !== NO_LISTING && !before.answers[index]?.length) continue;
      const count = this.#count(handle, call);
      if (this.#isSame(count, before.answers[index])) continue;
      answers ??= [...before.answers];
      answers[index] = typeof count !== 'number' ? count : this.#memory.words.slice(FIRST / 4, FIRST / 4 + count * WORDS);
    }
    return answers === undefined ? before : { processes: this.#told(answers), isWhole: !answers.includes(null), answers };
  }

  #isSame(count: number | undefined | null, before: Answer): boolean {
    if (typeof count !== 'number' || !before) return count === before;
    if (before.length !== count * WORDS) return false;
    const { words } = this.#memory;
    for (let at = 0; at < before.length; at += 1) if (words[FIRST / 4 + at] !== before[at]) return false;
    return true;
  }

  #count(handle: Handle, call: NvmlFunction): number | undefined | null {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const capacity = Math.floor((this.#memory.size - FIRST) / PROCESS.size);
      this.#memory.setU32(0, capacity);
      const code = call(handle, this.#memory.address, this.#memory.address + FIRST);
      if (code === CODE.success) return Math.min(this.#memory.u32(0), capacity);
      if (code !== CODE.insufficientSize) return printedFor(code) === undefined ? undefined : null;
      // Processes come and go between two calls: some room to spare.
      this.#memory = this.#library.memory(FIRST + (Math.min(this.#memory.u32(0), 100_000) + FIRST_CAPACITY) * PROCESS.size);
    }
    return null;
  }

  #told(answers: readonly Answer[]): readonly Values[] | undefined {
    if (!answers.some(Boolean)) return undefined;
    return answers.flatMap((answer, index) => {
      const kind = this.#calls[index]?.letter;
      return Array.from({ length: (answer?.length ?? 0) / WORDS }, (_, at) => processAt(answer as Int32Array, at * PROCESS.size, kind));
    });
  }
}

function processAt(words: Int32Array, at: number, type: string | undefined): Values {
  const view = new DataView(words.buffer, words.byteOffset);
  const u32 = (offset: number): number => view.getUint32(at + offset, true);
  const memory = u32(PROCESS.memory + 4) * 2 ** 32 + u32(PROCESS.memory);
  return {
    type,
    pid: String(u32(PROCESS.pid)),
    used_memory: memory >= NOT_TOLD ? 'N/A' : `${memory} B`,
    gpu_instance_id: instanceText(u32(PROCESS.gpuInstance)),
    compute_instance_id: instanceText(u32(PROCESS.computeInstance)),
  };
}

const instanceText = (id: number): string => (id === NO_INSTANCE ? 'N/A' : String(id));
