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
const IDS = { gpu_instance_id: 'nvmlDeviceGetGpuInstanceId', compute_instance_id: 'nvmlDeviceGetComputeInstanceId' };

/** That there is no such instance is an answer too. */
const NONE = CODE.notSupported;
const ANSWERS: ReadonlySet<number> = new Set([CODE.success, NONE, CODE.notFound, CODE.invalidArgument, CODE.functionNotFound]);
const isAnswer = (code: number): boolean => ANSWERS.has(code);

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

  /** Handles by number; `before` itself when they are the same. None where the GPU is not split. Or the code, where the driver failed. */
  handles(gpu: Handle, mode: unknown, before: InstanceHandles): InstanceHandles | number {
    const code = mode === MIG_ENABLED ? this.#library.call('nvmlDeviceGetMaxMigDeviceCount', 'hp', gpu, this.#scratch.address) : NONE;
    if (!isAnswer(code)) return code;
    return this.#byNumber(gpu, code === CODE.success ? Math.min(this.#scratch.u32(0), MOST_INSTANCES) : 0, before);
  }

  #byNumber(gpu: Handle, most: number, before: InstanceHandles): InstanceHandles | number {
    let handles = before.length === most ? undefined : Array.from({ length: most }, (_, index) => before[index]);
    for (let index = 0; index < most; index += 1) {
      const code = this.#byIndex?.(gpu, index, this.#scratch.address) ?? NONE;
      if (!isAnswer(code)) return code;
      const found = code === CODE.success ? this.#scratch.pointer(0) : undefined;
      if (found === before[index]) continue;
      handles ??= [...before];
      handles[index] = found;
    }
    return handles ?? before;
  }

  /** What an instance is. Undefined when it went away meanwhile; or the code, where the driver failed. */
  describe(handle: Handle, index: number): FoundInstance | number | undefined {
    const values: Values = { index: String(index) };
    for (const [path, symbol] of Object.entries(IDS)) {
      const code = this.#library.call(symbol, 'hp', handle, this.#scratch.address);
      if (code !== CODE.success) return isAnswer(code) ? undefined : code;
      values[path] = String(this.#scratch.u32(0));
    }
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

  #text(symbol: string, handle: Handle): string | undefined {
    const code = this.#library.call(symbol, 'hpu', handle, this.#scratch.address, NAME_LENGTH);
    return code === CODE.success ? this.#scratch.text(0, NAME_LENGTH) : undefined;
  }
}
