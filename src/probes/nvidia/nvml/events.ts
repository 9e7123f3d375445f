import type { ReadGuard } from '../../../host/read-guard.ts';
import { CODE } from './codes.ts';
import { EVENT, NO_INSTANCE } from './layouts.ts';
import type { Handle, Library, NvmlFunction } from './library.ts';
import type { Memory } from './memory.ts';

/** Types of events: nvml.h 13.3. */
const TYPES = {
  doubleBitEcc: 0x2,
  xid: 0x8,
  migChange: 0x100,
  singleBitStorm: 0x200,
  dramRetirement: 0x400,
  retirementFailure: 0x800,
  nonFatalPoison: 0x1000,
  fatalPoison: 0x2000,
  gpuUnavailable: 0x4000,
  recoveryActionChanged: 0x8000,
} as const;
const WANTED = Object.values(TYPES).reduce((mask, type) => mask | type, 0);
/** A flood must not keep the thread from its reads. */
const MOST_AT_ONCE = 256;
/** The library's own word for an Xid that it does not know. */
const UNKNOWN_XID = 999;

/** An Xid, as the driver tells its clients: the number alone. */
export interface XidEvent {
  readonly gpu: Handle;
  readonly xid: number;
  readonly gpuInstance?: number;
  readonly computeInstance?: number;
}

export interface Taken {
  readonly xids: readonly XidEvent[];
  readonly happened: boolean;
  /** Something other than an Xid was among it. */
  readonly isStirred: boolean;
  /** The set tells nothing any more. */
  readonly isDead: boolean;
}

/**
 * The events of all GPUs. They are asked for without waiting: a wait would take one of the few threads that the process shares, for
 * ever if the driver hangs, and could not be ended before its time.
 */
export class EventSet {
  readonly #library: Library;
  readonly #set: Handle;
  readonly #memory: Memory;
  readonly #wait: NvmlFunction;
  readonly #guard: ReadGuard | undefined;
  readonly #note: number | undefined;

  private constructor(library: Library, set: Handle, memory: Memory, wait: NvmlFunction, guard: ReadGuard | undefined) {
    this.#library = library;
    this.#set = set;
    this.#memory = memory;
    this.#wait = wait;
    this.#guard = guard;
    this.#note = guard?.name('nvml/nvmlEventSetWait_v2');
  }

  /** Undefined where the driver has no events, or none of these GPUs has one of interest. */
  static open(library: Library, gpus: readonly Handle[], guard: ReadGuard | undefined): EventSet | undefined {
    const memory = library.memory(EVENT.size);
    const wait = library.bind('nvmlEventSetWait_v2', 'hpu');
    if (wait === undefined || library.call('nvmlEventSetCreate', 'p', memory.address) !== CODE.success) return undefined;
    const set = memory.pointer(0);
    const registered = gpus.filter((gpu) => register(library, gpu, set, memory));
    if (registered.length > 0) return new EventSet(library, set, memory, wait, guard);
    library.call('nvmlEventSetFree', 'h', set);
    return undefined;
  }

  /** What has happened since the last call. */
  take(): Taken {
    const xids: XidEvent[] = [];
    let [happened, isStirred] = [false, false];
    for (let count = 0; count < MOST_AT_ONCE; count += 1) {
      const code = this.#next();
      if (code !== CODE.success) return { xids, happened, isStirred, isDead: code !== CODE.timeout };
      happened = true;
      const xid = this.#memory.u64(EVENT.data);
      if (this.#memory.u64(EVENT.type) !== TYPES.xid) isStirred = true;
      else if (xid !== UNKNOWN_XID) xids.push({ gpu: this.#memory.pointer(0), xid, ...this.#instance() });
    }
    return { xids, happened, isStirred, isDead: false };
  }

  free(): void {
    this.#library.call('nvmlEventSetFree', 'h', this.#set);
  }

  #next(): number {
    if (this.#note !== undefined) this.#guard?.enterNamed(this.#note);
    const code = this.#wait(this.#set, this.#memory.address, 0);
    if (this.#note !== undefined) this.#guard?.leaveNamed();
    return code;
  }

  #instance(): Pick<XidEvent, 'gpuInstance' | 'computeInstance'> {
    const gpuInstance = this.#memory.u32(EVENT.gpuInstance);
    const computeInstance = this.#memory.u32(EVENT.computeInstance);
    if (gpuInstance === NO_INSTANCE) return {};
    return { gpuInstance, ...(computeInstance === NO_INSTANCE ? {} : { computeInstance }) };
  }
}

/** One bit too many is refused as a whole, so only what the GPU has is asked for. */
function register(library: Library, gpu: Handle, set: Handle, memory: Memory): boolean {
  if (library.call('nvmlDeviceGetSupportedEventTypes', 'hp', gpu, memory.address) !== CODE.success) return false;
  const types = memory.u32(0) & WANTED;
  return types !== 0 && library.call('nvmlDeviceRegisterEvents', 'hqh', gpu, types, set) === CODE.success;
}
