import type { MigName } from '../listing.ts';
import { CODE } from './codes.ts';
import { ATTRIBUTES } from './layouts.ts';
import type { Handle, Library, NvmlFunction } from './library.ts';
import type { Memory } from './memory.ts';
import type { Values } from './sheet.ts';

/** A MIG instance as it was found. */
export interface FoundInstance {
  readonly handle: Handle;
  readonly values: Values;
  readonly name?: MigName;
  /** The name as the library wrote it; absent where it has none. */
  readonly nameWords?: Int32Array;
}

export type InstanceHandles = readonly (Handle | undefined)[];

const MIG_ENABLED = 1;
const NAME_LENGTH = 96;
const MOST_INSTANCES = 64;

/** Finds the instances of a GPU by number; the numbers have gaps. */
export class InstanceFinder {
  readonly #library: Library;
  readonly #scratch: Memory;
  readonly #byIndex: NvmlFunction | undefined;
  readonly #uuidOf: NvmlFunction | undefined;

  constructor(library: Library, scratch: Memory) {
    this.#library = library;
    this.#scratch = scratch;
    this.#byIndex = library.bind('nvmlDeviceGetMigDeviceHandleByIndex', 'hup');
    this.#uuidOf = library.bind('nvmlDeviceGetUUID', 'hpu');
  }

  /** How many instances the GPU can have; 0 where it is not split. */
  most(gpu: Handle, mode: unknown): number {
    if (mode !== MIG_ENABLED) return 0;
    const code = this.#library.call('nvmlDeviceGetMaxMigDeviceCount', 'hp', gpu, this.#scratch.address);
    return code === CODE.success ? Math.min(this.#scratch.u32(0), MOST_INSTANCES) : 0;
  }

  /** Handles by number; `before` itself when they are the same. */
  handles(gpu: Handle, most: number, before: InstanceHandles): InstanceHandles {
    let handles = before.length === most ? undefined : Array.from({ length: most }, (_, index) => before[index]);
    for (let index = 0; index < most; index += 1) {
      const found = this.#byIndex?.(gpu, index, this.#scratch.address) === CODE.success ? this.#scratch.pointer(0) : undefined;
      if (found === before[index]) continue;
      handles ??= [...before];
      handles[index] = found;
    }
    return handles ?? before;
  }

  /** What an instance is. Undefined when it went away meanwhile. */
  describe(handle: Handle, index: number): FoundInstance | undefined {
    const gpuInstance = this.#number('nvmlDeviceGetGpuInstanceId', handle);
    const computeInstance = this.#number('nvmlDeviceGetComputeInstanceId', handle);
    if (gpuInstance === undefined || computeInstance === undefined) return undefined;
    const values: Values = {
      index: String(index),
      gpu_instance_id: String(gpuInstance),
      compute_instance_id: String(computeInstance),
    };
    if (this.#library.call('nvmlDeviceGetAttributes_v2', 'hp', handle, this.#scratch.address) === CODE.success)
      values['device_attributes/shared/multiprocessor_count'] = this.#scratch.u32(ATTRIBUTES.multiprocessors);
    const uuid = this.#uuid(handle) ? this.#scratch.text(0, NAME_LENGTH) : undefined;
    const nameWords = uuid === undefined ? undefined : this.#scratch.words.slice(0, NAME_LENGTH / 4);
    // The name of an instance ends in its profile: `NVIDIA H100 80GB HBM3 MIG 1g.10gb`.
    const profile = /\bMIG (\S+)$/.exec(this.#text('nvmlDeviceGetName', handle) ?? '')?.[1] ?? '';
    return { handle, values, ...(uuid === undefined ? {} : { name: { uuid, profile } }), ...(nameWords && { nameWords }) };
  }

  /** Whether the handle still is that of the instance that was found; false where instances have no names. */
  isStill({ handle, nameWords }: FoundInstance): boolean {
    if (nameWords === undefined || !this.#uuid(handle)) return false;
    const { words } = this.#scratch;
    for (let at = 0; at < nameWords.length; at += 1) if (words[at] !== nameWords[at]) return false;
    return true;
  }

  /** Leaves the name in the scratch memory, with zeros after it. */
  #uuid(handle: Handle): boolean {
    this.#scratch.clear(NAME_LENGTH);
    return this.#uuidOf?.(handle, this.#scratch.address, NAME_LENGTH) === CODE.success;
  }

  #number(symbol: string, handle: Handle): number | undefined {
    return this.#library.call(symbol, 'hp', handle, this.#scratch.address) === CODE.success ? this.#scratch.u32(0) : undefined;
  }

  #text(symbol: string, handle: Handle): string | undefined {
    const code = this.#library.call(symbol, 'hpu', handle, this.#scratch.address, NAME_LENGTH);
    return code === CODE.success ? this.#scratch.text(0, NAME_LENGTH) : undefined;
  }
}
