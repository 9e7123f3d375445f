import type { StepGuard } from '../../../host/fs/step-guard.ts';
import { CODE, EVENT, kindOf, NO_INSTANCE, SYSTEM_EVENT, SYSTEM_EVENT_SET, SYSTEM_EVENT_WAIT, SYSTEM_REGISTER } from './header.ts';
import type { Handle, Library } from './library.ts';
import type { Device, TrackedDevice } from './question.ts';

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
interface XidEvent {
  readonly gpu: Handle;
  readonly xid: number;
  readonly gpuInstance?: number;
  readonly computeInstance?: number;
}

interface Taken {
  readonly xids: readonly XidEvent[];
  readonly happened: boolean;
  /** True when an event of another type occurred. */
  readonly hasOtherEvents: boolean;
}

/** A GPU whose events are wanted. */
interface Source {
  readonly device: TrackedDevice;
}

const WAIT = 'nvmlEventSetWait_v2';
const SYSTEM_WAIT = 'nvmlSystemEventSetWait';

/**
 * Events of all GPUs. The class polls for them and never waits: a wait occupies one of the few shared threads of the process, cannot be
 * cancelled, and never ends if the driver hangs (docs/decisions.md).
 */
export class GpuEvents {
  readonly #library: Library;
  readonly #guard: StepGuard | undefined;
  /** False when the driver has no events, or when an earlier call still hangs. */
  readonly #isUsable: boolean;
  /** Undefined while no GPU is registered. */
  #set: Handle | undefined;
  /** Number of GPUs that are registered or have no events. */
  #settled = 0;

  constructor(library: Library, guard: StepGuard | undefined) {
    this.#library = library;
    this.#guard = guard;
    this.#isUsable = mayPoll(library, guard, WAIT, 'hpu');
  }

  /** Registers for the events of these GPUs. It registers again after a failure, and when there are more GPUs than before. */
  register(gpus: readonly Source[]): void {
    if (!this.#isUsable || gpus.length <= this.#settled) return;
    this.free();
    const { scratch } = this.#library;
    if (this.#library.call('nvmlEventSetCreate', 'p', scratch.address) !== CODE.success) return;
    const set = scratch.pointer(0);
    const codes = gpus.map(({ device }) => device.during('nvmlDeviceRegisterEvents', () => register(device, set)));
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
      const code = polled(this.#library, this.#guard, WAIT, 'hpu', this.#set, scratch.address, 0);
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

  #instance(): Pick<XidEvent, 'gpuInstance' | 'computeInstance'> {
    const gpuInstance = this.#library.scratch.u32(EVENT.gpuInstance);
    const computeInstance = this.#library.scratch.u32(EVENT.computeInstance);
    if (gpuInstance === NO_INSTANCE) return {};
    return { gpuInstance, ...(computeInstance === NO_INSTANCE ? {} : { computeInstance }) };
  }
}

/** Registers only supported types, because the driver rejects a mask with any other bit. Returns `notSupported` if there are none. */
function register({ library, handle }: Device, set: Handle): number {
  const code = library.call('nvmlDeviceGetSupportedEventTypes', 'hp', handle, library.scratch.address);
  if (code !== CODE.success) return code;
  const types = library.scratch.u32(0) & WANTED;
  return types === 0 ? CODE.notSupported : library.call('nvmlDeviceRegisterEvents', 'hqh', handle, types, set);
}

/** Type of an event. Source: nvml.h 12.9, `nvmlSystemEventTypeGpuDriverUnbind`. */
const DRIVER_UNBIND = 0x1;
/** Place of the events in the scratch memory, behind the request. */
const EVENTS_AT = 64;
const EVENTS = 16;

/** Events of the driver itself, since driver 560. They are polled like {@link GpuEvents}. An older driver gives no event. */
export class SystemEvents {
  readonly #library: Library;
  readonly #guard: StepGuard | undefined;
  #set: Handle | undefined;

  constructor(library: Library, guard: StepGuard | undefined) {
    this.#library = library;
    this.#guard = guard;
    if (!mayPoll(library, guard, SYSTEM_WAIT, 'p')) return;
    const { scratch } = library;
    scratch.clear(SYSTEM_EVENT_SET.size);
    scratch.setU32(0, SYSTEM_EVENT_SET.version);
    if (library.call('nvmlSystemEventSetCreate', 'p', scratch.address) !== CODE.success) return;
    this.#set = scratch.pointer(SYSTEM_EVENT_SET.set);
    scratch.clear(SYSTEM_REGISTER.size);
    scratch.setU32(0, SYSTEM_REGISTER.version);
    scratch.setU32(SYSTEM_REGISTER.types, DRIVER_UNBIND);
    scratch.setPointer(SYSTEM_REGISTER.set, this.#set);
    if (library.call('nvmlSystemRegisterEvents', 'p', scratch.address) !== CODE.success) this.free();
  }

  /** Whether the driver began to unbind a GPU since the last call. The driver waits until each program has closed the GPU. */
  takeUnbind(): boolean {
    if (this.#set === undefined) return false;
    const { scratch } = this.#library;
    scratch.clear(EVENTS_AT + EVENTS * SYSTEM_EVENT.size);
    scratch.setU32(0, SYSTEM_EVENT_WAIT.version);
    scratch.setPointer(SYSTEM_EVENT_WAIT.set, this.#set);
    scratch.setPointer(SYSTEM_EVENT_WAIT.events, scratch.address + EVENTS_AT);
    scratch.setU32(SYSTEM_EVENT_WAIT.room, EVENTS);
    const code = polled(this.#library, this.#guard, SYSTEM_WAIT, 'p', scratch.address);
    if (code === CODE.timeout) return false;
    if (code !== CODE.success) {
      this.free();
      return false;
    }
    const count = Math.min(scratch.u32(SYSTEM_EVENT_WAIT.count), EVENTS);
    const types = Array.from({ length: count }, (_, at) => scratch.u64(EVENTS_AT + at * SYSTEM_EVENT.size + SYSTEM_EVENT.type));
    return types.includes(DRIVER_UNBIND);
  }

  free(): void {
    if (this.#set === undefined) return;
    const { scratch } = this.#library;
    scratch.clear(SYSTEM_EVENT_SET.size);
    scratch.setU32(0, SYSTEM_EVENT_SET.version);
    scratch.setPointer(SYSTEM_EVENT_SET.set, this.#set);
    this.#set = undefined;
    this.#library.call('nvmlSystemEventSetFree', 'p', scratch.address);
  }
}

/** False when the driver lacks the function, or when an earlier call of it hangs. */
const mayPoll = (library: Library, guard: StepGuard | undefined, wait: string, types: string): boolean =>
  guard?.isLeftOut(`nvml/${wait}`) !== true && library.bind(wait, types) !== undefined;

function polled(library: Library, guard: StepGuard | undefined, wait: string, types: string, ...values: readonly Handle[]): number {
  guard?.enter(`nvml/${wait}`, 'call');
  const code = library.call(wait, types, ...values);
  guard?.leave();
  return code;
}
