import type { Host } from '../../../host/host.ts';
import { normalizePciAddress } from '../../../host/pci/pci.ts';
import type { Element } from '../document.ts';
import { type Bound, bindAll } from './bound.ts';
import { CallNotes } from './call-notes.ts';
import { CODE, kindOf } from './codes.ts';
import { GpuEvents } from './events.ts';
import { BoundGetter } from './getter.ts';
import { uuidGetter } from './getters-facts.ts';
import { Gpu } from './gpu.ts';
import { PCI_INFO } from './layouts.ts';
import type { Handle, Library } from './library.ts';
import type { Memory } from './memory.ts';
import { Form, Sheet, type Values } from './sheet.ts';

/** A GPU and its address; `index-<n>` where the library does not tell it. */
export interface FoundGpu {
  readonly gpu: Gpu;
  readonly pciAddress: string;
}

/** A GPU that gave no handle, or does not say which one it is. */
export interface UnreadableGpu {
  readonly index: number;
  readonly code: number;
}

/** Why the library is of no use. */
export interface Refusal {
  readonly code: number;
  readonly symbol: string;
}

/** What the library gave when it was started: handles and sets, which end with it. */
export interface Client {
  readonly gpus: readonly FoundGpu[];
  readonly unreadable: readonly UnreadableGpu[];
  readonly events: GpuEvents;
  /** The same as long as the library runs: what changes is in the GPUs' values. */
  readonly elements: { readonly log: Element; readonly gpus: readonly Gpu[] };
}

const DRIVER_VERSION = 'nvmlSystemGetDriverVersion';
const DRIVER_VERSION_LENGTH = 80;
const HANDLE_BY_INDEX = 'nvmlDeviceGetHandleByIndex_v2';

/** Starts the library and finds what it knows. */
export class ClientStarter {
  readonly #library: Library;
  readonly #host: Pick<Host, 'sys'>;
  readonly #isActivityWanted: boolean;
  readonly #scratch: Memory;
  readonly #uuid: BoundGetter;
  readonly #uuidForm = new Form();

  constructor(library: Library, host: Pick<Host, 'sys'>, isActivityWanted: boolean) {
    this.#library = library;
    this.#host = host;
    this.#isActivityWanted = isActivityWanted;
    this.#scratch = library.memory(4_096);
    this.#uuid = new BoundGetter(library, uuidGetter, this.#uuidForm);
  }

  /** A library that refuses is ended again. */
  start(): Client | Refusal {
    const { guard } = this.#host.sys;
    const symbol = 'nvmlInit_v2';
    if (guard?.enter(`nvml/${symbol}`, 'call') === false) return { code: CODE.unknown, symbol };
    const code = this.#library.call(symbol, '');
    guard?.leave();
    if (code !== CODE.success) return { code, symbol };
    const client = this.#look();
    if ('code' in client) this.#library.call('nvmlShutdown', '');
    return client;
  }

  #look(): Client | Refusal {
    const driver = this.#driverVersion();
    if (typeof driver === 'number') return { code: driver, symbol: DRIVER_VERSION };
    const bound = bindAll(this.#library, this.#scratch, driver ?? '', this.#isActivityWanted);
    const symbol = 'nvmlDeviceGetCount_v2';
    const code = this.#library.call(symbol, 'p', this.#scratch.address);
    if (code !== CODE.success) return { code, symbol };
    const found = Array.from({ length: this.#scratch.u32(0) }, (_, index) => this.#find(index, bound));
    const gpus = found.flatMap((each) => (each !== undefined && 'gpu' in each ? [each] : []));
    const unreadable = found.flatMap((each) => (each !== undefined && 'code' in each ? [each] : []));
    const [first] = unreadable;
    if (first !== undefined && gpus.length === 0 && unreadable.every((each) => kindOf(each.code) === 'node'))
      return { code: first.code, symbol: HANDLE_BY_INDEX };
    const events = new GpuEvents(this.#library, this.#host.sys.guard);
    events.ask(gpus.map(({ gpu }) => gpu));
    return {
      gpus,
      unreadable,
      events,
      elements: {
        log: { kmd_version: driver, cuda_umd_version: this.#cudaVersion(), gpu: gpus.map(({ gpu }) => gpu.values as Element) },
        gpus: gpus.map(({ gpu }) => gpu),
      },
    };
  }

  /** Undefined for a GPU of which an earlier call has not come back; where that was before its address was known, it gives no handle. */
  #find(index: number, bound: Bound): FoundGpu | UnreadableGpu | undefined {
    const { guard } = this.#host.sys;
    if (guard?.enter(`nvml/${HANDLE_BY_INDEX}/index-${index}`, 'call') === false) return { index, code: CODE.unknown };
    const opened = this.#open(index);
    guard?.leave();
    if (typeof opened === 'number') return { index, code: opened };
    const { handle, identity } = opened;
    const pciAddress = normalizePciAddress(String(identity['@id'] ?? '')) ?? `index-${index}`;
    const place = this.#host.sys.path(`bus/pci/devices/${pciAddress}/nvml`);
    if (guard?.isClosed(place) === true) return undefined;
    const notes = new CallNotes(guard, place);
    const told = notes.during('nvmlDeviceGetUUID', () => this.#uuid.read(new Sheet(handle, identity, this.#uuidForm)));
    // Under another name it would be another GPU.
    if (told !== CODE.success && kindOf(told) !== 'absent') return { index, code: told };
    return { gpu: new Gpu(handle, identity, bound, notes), pciAddress };
  }

  /** The code, where it gives no handle. */
  #open(index: number): { readonly handle: Handle; readonly identity: Values } | number {
    const code = this.#library.call(HANDLE_BY_INDEX, 'up', index, this.#scratch.address);
    if (code !== CODE.success) return code;
    const handle = this.#scratch.pointer(0);
    return { handle, identity: this.#pciInfo(handle) };
  }

  #pciInfo(handle: Handle): Values {
    this.#scratch.clear(PCI_INFO.size);
    if (this.#library.call('nvmlDeviceGetPciInfo_v3', 'hp', handle, this.#scratch.address) !== CODE.success) return {};
    const busId = this.#scratch.text(PCI_INFO.busId, PCI_INFO.busIdLength);
    const pciDevice = this.#scratch.u32(PCI_INFO.deviceId).toString(16).toUpperCase().padStart(8, '0');
    return { '@id': busId, 'pci/pci_bus_id': busId, 'pci/pci_device_id': `0x${pciDevice}` };
  }

  /** On it hangs what the rest means. The code, where the driver failed to tell; undefined where it does not tell. */
  #driverVersion(): string | number | undefined {
    const code = this.#library.call(DRIVER_VERSION, 'pu', this.#scratch.address, DRIVER_VERSION_LENGTH);
    if (code === CODE.success) return this.#scratch.text(0, DRIVER_VERSION_LENGTH);
    return kindOf(code) === 'absent' ? undefined : code;
  }

  /** The first form of the call: the second looks for another library, which may not be mounted. */
  #cudaVersion(): string | undefined {
    if (this.#library.call('nvmlSystemGetCudaDriverVersion', 'p', this.#scratch.address) !== CODE.success) return undefined;
    const version = this.#scratch.u32(0);
    return `${Math.floor(version / 1_000)}.${Math.floor((version % 1_000) / 10)}`;
  }
}
