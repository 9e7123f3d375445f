import type { StepRecord } from '../../../host/fs/step-record.ts';
import { CODE } from './codes.ts';
import { SYSTEM_EVENT, SYSTEM_EVENT_SET, SYSTEM_EVENT_WAIT, SYSTEM_REGISTER } from './layouts.ts';
import type { Handle, Library } from './library.ts';

/** Type of an event. Source: nvml.h 12.9, `nvmlSystemEventTypeGpuDriverUnbind`. */
const DRIVER_UNBIND = 0x1;
const WAIT = 'nvmlSystemEventSetWait';
/** Place of the events in the scratch memory, behind the request. */
const EVENTS_AT = 64;
const EVENTS = 16;

/** Events of the driver itself, since driver 560. They are polled like {@link GpuEvents}. An older driver gives no event. */
export class SystemEvents {
  readonly #library: Library;
  readonly #guard: StepRecord | undefined;
  #set: Handle | undefined;

  constructor(library: Library, guard: StepRecord | undefined) {
    this.#library = library;
    this.#guard = guard;
    if (guard?.isClosed(`nvml/${WAIT}`) === true || library.bind(WAIT, 'p') === undefined) return;
    const { scratch } = library;
    scratch.clear(SYSTEM_EVENT_SET.size);
    scratch.setU32(0, SYSTEM_EVENT_SET.version);
    if (library.call('nvmlSystemEventSetCreate', 'p', scratch.address) !== CODE.success) return;
    const set = scratch.pointer(SYSTEM_EVENT_SET.set);
    this.#set = set;
    scratch.clear(SYSTEM_REGISTER.size);
    scratch.setU32(0, SYSTEM_REGISTER.version);
    scratch.setU32(SYSTEM_REGISTER.types, DRIVER_UNBIND);
    scratch.setPointer(SYSTEM_REGISTER.set, set);
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
    this.#guard?.enter(`nvml/${WAIT}`, 'call');
    const code = this.#library.call(WAIT, 'p', scratch.address);
    this.#guard?.leave();
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
