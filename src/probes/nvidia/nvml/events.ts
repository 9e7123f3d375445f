import type { StepRecord } from '../../../host/fs/step-record.ts';
import { CODE, kindOf } from './codes.ts';
import type { Gpu } from './gpu.ts';
import { EVENT, NO_INSTANCE } from './layouts.ts';
import type { Handle, Library } from './library.ts';

/** Types of events. Source: nvml.h 13.3. */
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
/** Limit of events per call, so that many events cannot delay the reads of the thread. */
const MAX_EVENTS = 256;
/** Number that the library uses for an Xid that it does not know. */
const UNKNOWN_XID = 999;

/** An Xid event of the library, which contains only the number. */
export interface XidEvent {
  readonly gpu: Handle;
  readonly xid: number;
  readonly gpuInstance?: number;
  readonly computeInstance?: number;
}

export interface Taken {
  readonly xids: readonly XidEvent[];
  readonly happened: boolean;
  /** True when an event of another type occurred. */
  readonly hasOtherEvents: boolean;
}

const WAIT = 'nvmlEventSetWait_v2';

/**
 * Events of all GPUs. The class polls for them and never waits: a wait occupies one of the few shared threads of the process, cannot be
 * cancelled, and never ends if the driver hangs (docs/decisions.md).
 */
export class GpuEvents {
  readonly #library: Library;
  readonly #guard: StepRecord | undefined;
  /** False when the driver has no events, or when an earlier call still hangs. */
  readonly #isUsable: boolean;
  /** Undefined while no GPU is registered. */
  #set: Handle | undefined;
  /** Number of GPUs that are registered or have no events. */
  #settled = 0;

  constructor(library: Library, guard: StepRecord | undefined) {
    this.#library = library;
    this.#guard = guard;
    this.#isUsable = guard?.isClosed(`nvml/${WAIT}`) !== true && library.bind(WAIT, 'hpu') !== undefined;
  }

  /** Registers for the events of these GPUs. It registers again after a failure, and when there are more GPUs than before. */
  register(gpus: readonly Gpu[]): void {
    if (!this.#isUsable || gpus.length <= this.#settled) return;
    this.free();
    const { scratch } = this.#library;
    if (this.#library.call('nvmlEventSetCreate', 'p', scratch.address) !== CODE.success) return;
    const set = scratch.pointer(0);
    const codes = gpus.map(({ handle, tracker }) => tracker.during('nvmlDeviceRegisterEvents', () => register(this.#library, handle, set)));
    this.#settled = codes.filter((code) => code === CODE.success || kindOf(code) === 'absent').length;
    if (codes.includes(CODE.success)) this.#set = set;
    else this.#library.call('nvmlEventSetFree', 'h', set);
  }

  /** Returns the events since the last call. */
  take(): Taken {
    const { scratch } = this.#library;
    const xids: XidEvent[] = [];
    let [happened, hasOtherEvents] = [false, false];
    for (let count = 0; this.#set !== undefined && count < MAX_EVENTS; count += 1) {
      const code = this.#next(this.#set);
      if (code === CODE.timeout) break;
      if (code !== CODE.success) {
        this.free();
        break;
      }
      happened = true;
      const xid = scratch.u64(EVENT.data);
      if (scratch.u64(EVENT.type) !== TYPES.xid) hasOtherEvents = true;
      else if (xid !== UNKNOWN_XID) xids.push({ gpu: scratch.pointer(0), xid, ...this.#instance() });
    }
    return { xids, happened, hasOtherEvents };
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

/** Registers only supported types, because the driver rejects a mask with any other bit. Returns `notSupported` if there are none. */
function register(library: Library, gpu: Handle, set: Handle): number {
  const code = library.call('nvmlDeviceGetSupportedEventTypes', 'hp', gpu, library.scratch.address);
  if (code !== CODE.success) return code;
  const types = library.scratch.u32(0) & WANTED;
  return types === 0 ? CODE.notSupported : library.call('nvmlDeviceRegisterEvents', 'hqh', gpu, types, set);
}
