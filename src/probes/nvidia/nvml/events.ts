import type { ReadGuard } from '../../../host/fs/read-guard.ts';
import { CODE, kindOf } from './codes.ts';
import type { Gpu } from './gpu.ts';
import { EVENT, NO_INSTANCE } from './layouts.ts';
import type { Handle, Library } from './library.ts';

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
}

const WAIT = 'nvmlEventSetWait_v2';

/**
 * The events of all GPUs. They are asked for without waiting: a wait would take one of the few threads that the process shares, for
 * ever if the driver hangs, and could not be ended before its time (docs/decisions/0005-driver-events.md).
 */
export class GpuEvents {
  readonly #library: Library;
  readonly #guard: ReadGuard | undefined;
  /** False where the driver has no events, or an earlier call of it has not come back. */
  readonly #isUsable: boolean;
  /** Undefined while no GPU tells of any. */
  #set: Handle | undefined;
  /** How many GPUs do, or have none to tell. */
  #settled = 0;

  constructor(library: Library, guard: ReadGuard | undefined) {
    this.#library = library;
    this.#guard = guard;
    this.#isUsable = guard?.isClosed(`nvml/${WAIT}`) !== true && library.bind(WAIT, 'hpu') !== undefined;
  }

  /** Wants to be told what happens to these GPUs: anew after a failure, and when there are more of them than before. */
  ask(gpus: readonly Gpu[]): void {
    if (!this.#isUsable || gpus.length <= this.#settled) return;
    this.free();
    const { scratch } = this.#library;
    if (this.#library.call('nvmlEventSetCreate', 'p', scratch.address) !== CODE.success) return;
    const set = scratch.pointer(0);
    const codes = gpus.map(({ handle, notes }) => notes.during('nvmlDeviceRegisterEvents', () => register(this.#library, handle, set)));
    this.#settled = codes.filter((code) => code === CODE.success || kindOf(code) === 'absent').length;
    if (codes.includes(CODE.success)) this.#set = set;
    else this.#library.call('nvmlEventSetFree', 'h', set);
  }

  /** What has happened since the last call. */
  take(): Taken {
    const { scratch } = this.#library;
    const xids: XidEvent[] = [];
    let [happened, isStirred] = [false, false];
    for (let count = 0; this.#set !== undefined && count < MOST_AT_ONCE; count += 1) {
      const code = this.#next(this.#set);
      if (code === CODE.timeout) break;
      if (code !== CODE.success) {
        this.free();
        break;
      }
      happened = true;
      const xid = scratch.u64(EVENT.data);
      if (scratch.u64(EVENT.type) !== TYPES.xid) isStirred = true;
      else if (xid !== UNKNOWN_XID) xids.push({ gpu: scratch.pointer(0), xid, ...this.#instance() });
    }
    return { xids, happened, isStirred };
  }

  free(): void {
    if (this.#set !== undefined) this.#library.call('nvmlEventSetFree', 'h', this.#set);
    this.#set = undefined;
    this.#settled = 0;
  }

  #next(set: Handle): number {
    this.#guard?.enter(`nvml/${WAIT}`, 'call');
    const code = this.#library.call(WAIT, 'hpu', set, this.#library.scratch.address, 0);
    this.#guard?.leave();
    return code;
  }

  #instance(): Pick<XidEvent, 'gpuInstance' | 'computeInstance'> {
    const gpuInstance = this.#library.scratch.u32(EVENT.gpuInstance);
    const computeInstance = this.#library.scratch.u32(EVENT.computeInstance);
    if (gpuInstance === NO_INSTANCE) return {};
    return { gpuInstance, ...(computeInstance === NO_INSTANCE ? {} : { computeInstance }) };
  }
}

/** One bit too many is refused as a whole, so only what the GPU has is asked for. Gives the code, of not being supported where that is nothing. */
function register(library: Library, gpu: Handle, set: Handle): number {
  const code = library.call('nvmlDeviceGetSupportedEventTypes', 'hp', gpu, library.scratch.address);
  if (code !== CODE.success) return code;
  const types = library.scratch.u32(0) & WANTED;
  return types === 0 ? CODE.notSupported : library.call('nvmlDeviceRegisterEvents', 'hqh', gpu, types, set);
}
