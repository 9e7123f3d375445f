import { CODE } from './codes.ts';
import type { Values } from './getter.ts';
import { NO_INSTANCE, PROCESS } from './layouts.ts';
import type { Handle, Library, NvmlFunction } from './library.ts';
import type { Memory } from './memory.ts';

const FIRST_CAPACITY = 256;
/** All ones: the driver does not tell, as without rights. */
const NOT_TOLD = 2 ** 64;

/** Programs with a context, by kind, in the letters of `nvidia-smi`. Versions 2 and 3 share one struct. */
const KINDS: Readonly<Record<string, readonly string[]>> = {
  C: ['nvmlDeviceGetComputeRunningProcesses_v3', 'nvmlDeviceGetComputeRunningProcesses_v2'],
  G: ['nvmlDeviceGetGraphicsRunningProcesses_v3', 'nvmlDeviceGetGraphicsRunningProcesses_v2'],
};

/** Lists the processes of a GPU, those inside its instances included. */
export class ProcessList {
  readonly #library: Library;
  readonly #calls: readonly (readonly [kind: string, call: NvmlFunction])[];
  #memory: Memory;

  constructor(library: Library) {
    this.#library = library;
    this.#memory = library.memory(8 + FIRST_CAPACITY * PROCESS.size);
    this.#calls = Object.entries(KINDS).flatMap(([kind, symbols]) => {
      const call = symbols.map((symbol) => library.bind(symbol, 'hpp')).find((each) => each !== undefined);
      return call === undefined ? [] : [[kind, call] as const];
    });
  }

  /** Undefined when the driver tells of no kind. The same list as `before` when nothing changed. */
  read(handle: Handle, before: readonly Values[] | undefined): readonly Values[] | undefined {
    const listed: Values[] = [];
    let isTold = false;
    for (const [kind, call] of this.#calls) {
      const count = this.#count(handle, call);
      if (count === undefined) continue;
      isTold = true;
      for (let index = 0; index < count; index += 1) {
        const known = before?.[listed.length];
        listed.push(this.#at(8 + index * PROCESS.size, kind, known));
      }
    }
    if (!isTold) return undefined;
    const isSame = before?.length === listed.length && listed.every((process, index) => process === before[index]);
    return isSame ? before : listed;
  }

  #count(handle: Handle, call: NvmlFunction): number | undefined {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const capacity = Math.floor((this.#memory.size - 8) / PROCESS.size);
      this.#memory.setU32(0, capacity);
      const code = call(handle, this.#memory.address, this.#memory.address + 8);
      if (code === CODE.success) return Math.min(this.#memory.u32(0), capacity);
      if (code !== CODE.insufficientSize) return undefined;
      // Processes come and go between two calls: some room to spare.
      this.#memory = this.#library.memory(8 + (Math.min(this.#memory.u32(0), 100_000) + FIRST_CAPACITY) * PROCESS.size);
    }
    return undefined;
  }

  #at(at: number, kind: string, known: Values | undefined): Values {
    const pid = String(this.#memory.u32(at + PROCESS.pid));
    const memory = this.#memory.u64(at + PROCESS.memory);
    const used = memory >= NOT_TOLD ? 'N/A' : `${memory} B`;
    const gpuInstance = instanceText(this.#memory.u32(at + PROCESS.gpuInstance));
    const computeInstance = instanceText(this.#memory.u32(at + PROCESS.computeInstance));
    const isKnown =
      known?.pid === pid &&
      known.used_memory === used &&
      known.type === kind &&
      known.gpu_instance_id === gpuInstance &&
      known.compute_instance_id === computeInstance;
    return isKnown ? known : { type: kind, pid, used_memory: used, gpu_instance_id: gpuInstance, compute_instance_id: computeInstance };
  }
}

const instanceText = (id: number): string => (id === NO_INSTANCE ? 'N/A' : String(id));
