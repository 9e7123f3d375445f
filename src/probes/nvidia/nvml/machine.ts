import type { Host } from '../../../host/host.ts';
import { normalizePciAddress } from '../../../host/pci.ts';
import type { Problem } from '../../../model/collection.ts';
import type { Element } from '../document.ts';
import type { MigNames } from '../listing.ts';
import type { ProblemCode } from '../problems.ts';
import type { SurplusFault } from '../smi.ts';
import { type Bound, bindAll } from './bound.ts';
import { unseen } from './changes.ts';
import { CODE, kindOf, wordOf } from './codes.ts';
import { EventSet, type XidEvent } from './events.ts';
import { type BoundGetter, bindGetter, type Values } from './getter.ts';
import { identityGetters } from './getters.ts';
import { type Due, Gpu } from './gpu.ts';
import { PCI_INFO } from './layouts.ts';
import type { Handle, Library } from './library.ts';
import type { Memory } from './memory.ts';

/** The same that a document of `nvidia-smi`, its listing and the lines around it tell. */
export interface NvmlDocument {
  readonly log: Element;
  readonly gpus: readonly Gpu[];
  /** After a round that asked for everything. */
  readonly isWhole: boolean;
  readonly names: MigNames;
  readonly faults: readonly SurplusFault[];
  readonly problems: readonly Problem[];
  readonly problem?: undefined;
}
export type NvmlResult = NvmlDocument | { readonly problem: { readonly code: ProblemCode; readonly message: string } };

/** Of codes that concern the node. */
const NODE_PROBLEMS: Readonly<Record<number, ProblemCode>> = {
  [CODE.noPermission]: 'no-permission',
  [CODE.driverNotLoaded]: 'driver-not-loaded',
  [CODE.libraryNotFound]: 'library-not-found',
  [CODE.operatingSystem]: 'no-permission',
  [CODE.libraryMismatch]: 'driver-library-mismatch',
  [CODE.gpuNotFound]: 'no-devices',
};

/** A lost GPU comes back only to a library that was started anew, which disturbs the others: rarely. */
const RESTART_FOR_LOST_MS = 300_000;

/** What is asked for besides what changes quickly, and how often. */
export interface Wanted {
  readonly slowEveryMs: number;
  readonly factsEveryMs: number;
  readonly isActivityWanted: boolean;
}

/** All GPUs of the node through one library that stays open, since opening it wakes GPUs and ends what their drivers had counted. */
export class Machine {
  readonly library: Library;
  readonly #host: Host;
  readonly #wanted: Wanted;
  readonly #scratch: Memory;
  readonly #identity: readonly BoundGetter[];
  readonly #addresses = new Set<string>();
  #running: Running | undefined;

  constructor(library: Library, host: Host, wanted: Wanted) {
    this.library = library;
    this.#host = host;
    this.#wanted = wanted;
    this.#scratch = library.memory(4_096);
    this.#identity = identityGetters.map((getter) => bindGetter(library, getter));
  }

  /** One round over all GPUs. */
  read(): NvmlResult {
    const nowMs = this.#host.clock.monotonic();
    if (this.#running?.isToRestart === true || this.#isLostForLong(nowMs) || this.#isBoundAnew(nowMs)) this.close();
    const started = this.#running ?? this.#start(nowMs);
    if (typeof started === 'number') return { problem: problemOf(started, 'nvmlInit_v2') };
    const due = this.#due(started, nowMs);
    for (const { gpu } of started.gpus) {
      const code = gpu.refresh(due);
      if (code === undefined) continue;
      started.isToRestart = true;
      return { problem: problemOf(code, 'a call') };
    }
    return this.#document(started, due.slow);
  }

  /** Xids since the last call, by the address of the GPU; `happened` also for other events. */
  events(): { readonly xids: readonly (XidEvent & { readonly pciAddress: string })[]; readonly happened: boolean } {
    const running = this.#running;
    const taken = running?.events?.take();
    if (running === undefined || taken === undefined) return { xids: [], happened: false };
    if (taken.isDead) {
      running.events?.free();
      running.events = undefined;
    }
    if (taken.isStirred) running.isStirred = true;
    const xids = taken.xids.flatMap((event) => {
      const pciAddress = running.gpus.find(({ gpu }) => gpu.handle === event.gpu)?.pciAddress;
      return pciAddress === undefined ? [] : [{ ...event, pciAddress }];
    });
    return { xids, happened: taken.happened };
  }

  /** Handles and sets end with the library's client. */
  close(): void {
    if (this.#running === undefined) return;
    this.#running.events?.free();
    for (const { gpu } of this.#running.gpus) gpu.close();
    this.#running = undefined;
    this.library.call('nvmlShutdown', '');
  }

  /** At an event nothing waits: it may be of instances, of retired pages, of an action that is asked for. */
  #due(running: Running, nowMs: number): Due {
    const facts = nowMs - running.factsAtMs >= this.#wanted.factsEveryMs;
    const slow = facts || running.isStirred || nowMs - running.slowAtMs >= this.#wanted.slowEveryMs;
    if (facts) running.factsAtMs = nowMs;
    if (slow) running.slowAtMs = nowMs;
    running.isStirred = false;
    return { slow, facts, nowMs };
  }

  /** The library knows the GPUs that were there when it was started. Looked at with what can wait. */
  #isBoundAnew(nowMs: number): boolean {
    const running = this.#running;
    if (running === undefined || nowMs - running.slowAtMs < this.#wanted.slowEveryMs) return false;
    return this.#boundGpus() !== running.boundGpus;
  }

  /** Addresses of the GPUs that the kernel's driver has, as text; empty where that is not shown. */
  #boundGpus(): string {
    return this.#host.proc.list('driver/nvidia/gpus').toSorted().join(' ');
  }

  #isLostForLong(nowMs: number): boolean {
    const running = this.#running;
    if (running === undefined || !running.gpus.some(({ gpu }) => gpu.faults.has(CODE.gpuIsLost))) return false;
    return nowMs - running.startedAtMs >= RESTART_FOR_LOST_MS;
  }

  #start(nowMs: number): Running | number {
    const { guard } = this.#host.sys;
    if (guard?.enter('nvml/nvmlInit_v2') === false) return CODE.unknown;
    const code = this.library.call('nvmlInit_v2', '');
    guard?.leave();
    if (code !== CODE.success) return code;
    const driver = this.#systemText('nvmlSystemGetDriverVersion');
    const bound = bindAll(this.library, this.#scratch, driver ?? '', this.#wanted.isActivityWanted);
    const running: Running = {
      driver,
      cuda: this.#cudaVersion(),
      bound,
      gpus: [],
      unreadable: [],
      boundGpus: this.#boundGpus(),
      startedAtMs: nowMs,
      slowAtMs: -Infinity,
      factsAtMs: -Infinity,
      isStirred: false,
    };
    const count = this.library.call('nvmlDeviceGetCount_v2', 'p', this.#scratch.address);
    const gpus = count === CODE.success ? this.#scratch.u32(0) : 0;
    for (let index = 0; index < gpus; index += 1) this.#find(index, running);
    running.events = EventSet.open(
      this.library,
      running.gpus.map(({ gpu }) => gpu.handle),
      guard,
    );
    this.#running = running;
    return running;
  }

  #find(index: number, running: Running): void {
    const { guard } = this.#host.sys;
    const code = this.library.call('nvmlDeviceGetHandleByIndex_v2', 'up', index, this.#scratch.address);
    if (code !== CODE.success) {
      running.unreadable.push({ index, code });
      return;
    }
    const handle = this.#scratch.pointer(0);
    const identity: Values = this.#pciInfo(handle);
    const pciAddress = normalizePciAddress(String(identity['@id'] ?? '')) ?? `index-${index}`;
    const place = this.#host.sys.path(`bus/pci/devices/${pciAddress}/nvml`);
    // An earlier call to this GPU has not come back.
    if (guard !== undefined && guard.name(place) === undefined) return;
    for (const getter of this.#identity) getter.read(handle, identity, unseen(getter.words));
    this.#addresses.add(pciAddress);
    running.gpus.push({ gpu: new Gpu(handle, identity, running.bound, place, guard), pciAddress });
  }

  #pciInfo(handle: Handle): Values {
    this.#scratch.clear(PCI_INFO.size);
    if (this.library.call('nvmlDeviceGetPciInfo_v3', 'hp', handle, this.#scratch.address) !== CODE.success) return {};
    const busId = this.#scratch.text(PCI_INFO.busId, PCI_INFO.busIdLength);
    const pciDevice = this.#scratch.u32(PCI_INFO.deviceId).toString(16).toUpperCase().padStart(8, '0');
    return { '@id': busId, 'pci/pci_bus_id': busId, 'pci/pci_device_id': `0x${pciDevice}` };
  }

  #document(running: Running, isWhole: boolean): NvmlDocument {
    const { gpus, unreadable } = running;
    const { faults, problems: met } = this.#unreadable(gpus, unreadable);
    for (const { gpu, pciAddress } of gpus) {
      if (gpu.faults.size === 0) continue;
      if (gpu.faults.has(CODE.corruptedInforom))
        faults.push({ pciAddress, fault: 'inforom', line: `infoROM is corrupted at gpu ${String(gpu.values['@id'])}` });
      if (gpu.faults.has(CODE.insufficientPower))
        met.push({ code: 'insufficient-power', device: String(gpu.values.uuid), message: wordOf(CODE.insufficientPower) });
    }
    running.elements ??= elementsOf(running);
    return {
      ...running.elements,
      isWhole,
      names: this.#names(running),
      faults,
      problems: met,
    };
  }

  /** Made anew when an instance came or went. */
  #names(running: Running): MigNames {
    let generation = 0;
    for (const { gpu } of running.gpus) generation += gpu.generation;
    if (running.names?.generation !== generation)
      running.names = { generation, names: new Map(running.gpus.flatMap(({ gpu }) => gpu.names())) };
    return running.names.names;
  }

  /** A GPU without a handle does not say which it is: where as many are missing as are silent, it is one of those from before. */
  #unreadable(gpus: Running['gpus'], unreadable: Running['unreadable']): { readonly faults: SurplusFault[]; readonly problems: Problem[] } {
    if (unreadable.length === 0) return { faults: [], problems: [] };
    const missing = [...this.#addresses].filter((address) => !gpus.some(({ pciAddress }) => pciAddress === address));
    const isKnown = missing.length === unreadable.length;
    const faults = (isKnown ? missing : []).map((pciAddress, at): SurplusFault => {
      const word = wordOf(unreadable[at]?.code ?? CODE.unknown);
      return { pciAddress, fault: 'lost', line: `Unable to determine the device handle for GPU ${pciAddress}: ${word}` };
    });
    const problems = (isKnown ? [] : unreadable).map(
      ({ index, code }): Problem => ({
        code: code === CODE.noPermission ? 'no-permission' : 'gpu-unreadable',
        message: `GPU at index ${index}: ${wordOf(code)}`,
      }),
    );
    return { faults, problems };
  }

  #systemText(symbol: string): string | undefined {
    const code = this.library.call(symbol, 'pu', this.#scratch.address, 80);
    return code === CODE.success ? this.#scratch.text(0, 80) : undefined;
  }

  /** The first form of the call: the second looks for another library, which may not be mounted. */
  #cudaVersion(): string | undefined {
    if (this.library.call('nvmlSystemGetCudaDriverVersion', 'p', this.#scratch.address) !== CODE.success) return undefined;
    const version = this.#scratch.u32(0);
    return `${Math.floor(version / 1_000)}.${Math.floor((version % 1_000) / 10)}`;
  }
}

interface Running {
  readonly driver: string | undefined;
  readonly cuda: string | undefined;
  readonly bound: Bound;
  readonly gpus: { readonly gpu: Gpu; readonly pciAddress: string }[];
  /** GPUs that gave no handle. */
  readonly unreadable: { readonly index: number; readonly code: number }[];
  /** As they were at the start. */
  readonly boundGpus: string;
  readonly startedAtMs: number;
  slowAtMs: number;
  factsAtMs: number;
  /** Something other than an Xid has happened since. */
  isStirred: boolean;
  events?: EventSet | undefined;
  isToRestart?: true;
  elements?: Pick<NvmlDocument, 'log' | 'gpus'>;
  names?: { readonly generation: number; readonly names: MigNames };
}

/** The same as long as the library runs: what changes is in the GPUs' values. */
function elementsOf({ driver, cuda, gpus }: Running): Pick<NvmlDocument, 'log' | 'gpus'> {
  return {
    log: { kmd_version: driver, cuda_umd_version: cuda, gpu: gpus.map(({ gpu }) => gpu.values as Element) },
    gpus: gpus.map(({ gpu }) => gpu),
  };
}

function problemOf(code: number, what: string): { readonly code: ProblemCode; readonly message: string } {
  const known = NODE_PROBLEMS[code];
  const message = `NVML ${what}: ${wordOf(code)}`;
  return { code: known ?? (kindOf(code) === 'device' ? 'gpu-unreadable' : 'driver-unreachable'), message };
}
