import type { MigName } from '../listing.ts';
import { CODE } from './codes.ts';
import type { Values } from './getter.ts';
import { ATTRIBUTES } from './layouts.ts';
import type { Handle, Library } from './library.ts';
import type { Memory } from './memory.ts';

/** A MIG instance as it was found. */
export interface FoundInstance {
  readonly handle: Handle;
  readonly values: Values;
  readonly name?: MigName;
}

const MIG_ENABLED = 1;

/** Finds the instances of a GPU by number; the numbers have gaps. */
export class InstanceFinder {
  readonly #library: Library;
  readonly #scratch: Memory;

  constructor(library: Library, scratch: Memory) {
    this.#library = library;
    this.#scratch = scratch;
  }

  /** Handles by number; empty where the GPU is not split. */
  handles(gpu: Handle, mode: unknown): readonly (Handle | undefined)[] {
    if (mode !== MIG_ENABLED) return [];
    const code = this.#library.call('nvmlDeviceGetMaxMigDeviceCount', 'hp', gpu, this.#scratch.address);
    const most = code === CODE.success ? this.#scratch.u32(0) : 0;
    return Array.from({ length: Math.min(most, 64) }, (_, index) => {
      const found = this.#library.call('nvmlDeviceGetMigDeviceHandleByIndex', 'hup', gpu, index, this.#scratch.address);
      return found === CODE.success ? this.#scratch.pointer(0) : undefined;
    });
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
    const uuid = this.#text('nvmlDeviceGetUUID', handle);
    // The name of an instance ends in its profile: `NVIDIA H100 80GB HBM3 MIG 1g.10gb`.
    const profile = /\bMIG (\S+)$/.exec(this.#text('nvmlDeviceGetName', handle) ?? '')?.[1] ?? '';
    return { handle, values, ...(uuid === undefined ? {} : { name: { uuid, profile } }) };
  }

  #number(symbol: string, handle: Handle): number | undefined {
    return this.#library.call(symbol, 'hp', handle, this.#scratch.address) === CODE.success ? this.#scratch.u32(0) : undefined;
  }

  #text(symbol: string, handle: Handle): string | undefined {
    const code = this.#library.call(symbol, 'hpu', handle, this.#scratch.address, 96);
    return code === CODE.success ? this.#scratch.text(0, 96) : undefined;
  }
}
