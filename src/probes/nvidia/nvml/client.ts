import type { Host } from '../../../host/host.ts';
import { normalizePciAddress } from '../../../host/pci/pci.ts';
import type { Problem } from '../../../model/collection.ts';
import type { ProblemCode } from '../declaration.ts';
import type { GpuIdentity, NodeSample, ReadFailure, SurplusFault } from '../sample.ts';
import { GpuEvents, SystemEvents } from './events.ts';
import { type Bound, Gpu } from './gpu.ts';
import { driverVersionOf, gpuQuestions, instanceQuestions } from './gpu-questions.ts';
import { CODE, kindOf, PCI_INFO, textOf } from './header.ts';
import type { Handle, Library } from './library.ts';
import { TrackedDevice } from './question.ts';

/** A GPU without a handle, or whose identity cannot be read. */
interface UnreadableGpu {
  readonly index: number;
  readonly code: number;
}

/** Return code and function with which the library could not be started. */
export interface Refusal {
  readonly code: number;
  readonly symbol: string;
}

/** Result of starting the library. Its handles and sets are valid until the library is shut down. */
export interface Client {
  readonly driver: string | undefined;
  readonly cudaVersion: string | undefined;
  readonly gpus: readonly Gpu[];
  readonly unreadable: readonly UnreadableGpu[];
  /** Addresses of GPUs that are not asked, because an earlier call hangs. */
  readonly hung: readonly string[];
  readonly events: GpuEvents;
  readonly systemEvents: SystemEvents;
}

const DRIVER_VERSION = 'nvmlSystemGetDriverVersion';
const DRIVER_VERSION_LENGTH = 80;
const HANDLE_BY_INDEX = 'nvmlDeviceGetHandleByIndex_v2';
const UUID_LENGTH = 96;

/** Starts the library and finds its GPUs. After a failure it shuts the library down. */
export function startClient(library: Library, { sys }: Pick<Host, 'sys'>, isActivityWanted: boolean): Client | Refusal {
  const symbol = 'nvmlInit_v2';
  const code = during(sys.guard, symbol, () => library.call(symbol, '')) ?? CODE.unknown;
  if (code !== CODE.success) return { code, symbol };
  const client = findGpus(library, sys, isActivityWanted);
  if ('code' in client) library.call('nvmlShutdown', '');
  return client;
}

function findGpus(library: Library, sys: Host['sys'], isActivityWanted: boolean): Client | Refusal {
  const driver = during(sys.guard, DRIVER_VERSION, () => driverVersion(library));
  if (typeof driver === 'number') return { code: driver, symbol: DRIVER_VERSION };
  const version = driverVersionOf(driver ?? '');
  const questions = { gpuQuestions: gpuQuestions(version), instanceQuestions: instanceQuestions() };
  const bound = { driver: version, ...questions, isActivityWanted };
  const symbol = 'nvmlDeviceGetCount_v2';
  const code = during(sys.guard, symbol, () => library.call(symbol, 'p', library.scratch.address)) ?? CODE.unknown;
  if (code !== CODE.success) return { code, symbol };
  const found = Array.from({ length: library.scratch.u32(0) }, (_, index) => find(library, sys, index, bound));
  const gpus = found.filter((each) => each instanceof Gpu);
  const unreadable = found.filter((each) => typeof each !== 'string' && 'code' in each);
  const hung = found.filter((each) => typeof each === 'string');
  const [first] = unreadable;
  if (first !== undefined && gpus.length === 0 && unreadable.every((each) => kindOf(each.code) === 'node'))
    return { code: first.code, symbol: HANDLE_BY_INDEX };
  const events = new GpuEvents(library, sys.guard);
  events.register(gpus);
  const systemEvents = new SystemEvents(library, sys.guard);
  return { driver, cudaVersion: cudaVersion(library), gpus, unreadable, hung, events, systemEvents };
}

/** A call that concerns no GPU. Undefined when an earlier one hung or ended its reader. */
function during<T>(guard: Host['sys']['guard'], symbol: string, call: () => T): T | undefined {
  if (guard?.enter(`nvml/${symbol}`, 'call') !== undefined) return undefined;
  const result = call();
  guard?.leave();
  return result;
}

/** The address of a GPU that is not asked, because an earlier call hangs. One that hung before its address was known counts as unreadable. */
function find(library: Library, sys: Host['sys'], index: number, bound: Bound): Gpu | UnreadableGpu | string {
  const { guard } = sys;
  if (guard?.enter(`nvml/${HANDLE_BY_INDEX}/index-${index}`, 'call') !== undefined) return { index, code: CODE.unknown };
  const code = library.call(HANDLE_BY_INDEX, 'up', index, library.scratch.address);
  const handle = library.scratch.pointer(0);
  const identity = code === CODE.success ? pciInfo(library, handle) : {};
  guard?.leave();
  if (code !== CODE.success) return { index, code };
  const pciAddress = normalizePciAddress(identity.busId ?? '') ?? `index-${index}`;
  const place = sys.path(`bus/pci/devices/${pciAddress}/nvml`);
  if (guard?.isLeftOut(place) === true) return pciAddress;
  const gpu = new TrackedDevice(library, handle, guard, place);
  const uuidCode = gpu.during('nvmlDeviceGetUUID', () =>
    library.call('nvmlDeviceGetUUID', 'hpu', handle, library.scratch.address, UUID_LENGTH),
  );
  // Without its UUID, the GPU would get another id and look like another GPU.
  if (uuidCode !== CODE.success && kindOf(uuidCode) !== 'absent') return { index, code: uuidCode };
  const uuid = uuidCode === CODE.success ? library.scratch.text(0, UUID_LENGTH) : undefined;
  return new Gpu(gpu, pciAddress, { ...identity, uuid }, bound);
}

/** Place of the answer in the scratch memory, behind the request. */
const DRAIN_AT = 128;

/** Whether an administrator drains the GPU: the driver then gives no program a handle for it. */
export function isDrained(library: Library, address: string): boolean {
  const { scratch } = library;
  const [domain = 0, bus = 0, device = 0] = address.split(/[:.]/).map((part) => Number.parseInt(part, 16));
  scratch.clear(DRAIN_AT + 4);
  scratch.setU32(PCI_INFO.domain, domain);
  scratch.setU32(PCI_INFO.domain + 4, bus);
  scratch.setU32(PCI_INFO.domain + 8, device);
  const code = library.call('nvmlDeviceQueryDrainState', 'pp', scratch.address, scratch.address + DRAIN_AT);
  return code === CODE.success && scratch.u32(DRAIN_AT) === 1;
}

function pciInfo(library: Library, handle: Handle): GpuIdentity {
  const { scratch } = library;
  scratch.clear(PCI_INFO.size);
  if (library.call('nvmlDeviceGetPciInfo_v3', 'hp', handle, scratch.address) !== CODE.success) return {};
  return {
    busId: scratch.text(PCI_INFO.busId, PCI_INFO.busIdLength),
    pciDeviceId: `0x${scratch.u32(PCI_INFO.deviceId).toString(16).toUpperCase().padStart(8, '0')}`,
  };
}

/** Reads the driver version, on which other answers depend. Returns the code of a failure; undefined when the driver has no version. */
function driverVersion(library: Library): string | number | undefined {
  const code = library.call(DRIVER_VERSION, 'pu', library.scratch.address, DRIVER_VERSION_LENGTH);
  if (code === CODE.success) return library.scratch.text(0, DRIVER_VERSION_LENGTH);
  return kindOf(code) === 'absent' ? undefined : code;
}

/** Uses version 1 of the call: version 2 searches for another library, which may not be mounted. */
function cudaVersion(library: Library): string | undefined {
  if (library.call('nvmlSystemGetCudaDriverVersion', 'p', library.scratch.address) !== CODE.success) return undefined;
  const version = library.scratch.u32(0);
  return `${Math.floor(version / 1_000)}.${Math.floor((version % 1_000) / 10)}`;
}

/** Problem codes of return codes that concern the node. */
const NODE_PROBLEMS: Readonly<Record<number, ProblemCode>> = {
  [CODE.noPermission]: 'no-permission',
  [CODE.driverNotLoaded]: 'driver-not-loaded',
  [CODE.libraryNotFound]: 'library-not-found',
  [CODE.operatingSystem]: 'no-permission',
  [CODE.libraryMismatch]: 'driver-library-mismatch',
  [CODE.gpuNotFound]: 'no-devices',
};

/** Nothing was read, because `what` gave this code. */
export function failureOf(code: number, what: string): ReadFailure {
  const known = NODE_PROBLEMS[code] ?? (kindOf(code) === 'device' ? 'gpu-unreadable' : 'driver-unreachable');
  return { problem: { code: known, message: `NVML ${what}: ${textOf(code)}` }, surplus: '' };
}

/** Returns the faults that `nvidia-smi` prints around its document. A GPU without a handle has no known address, only its index. */
export function faultsOf({ gpus, unreadable }: Pick<Client, 'gpus' | 'unreadable'>): Pick<NodeSample, 'faults' | 'problems'> {
  const problems: Problem[] = [];
  const faults = unreadable.map(({ index, code }): SurplusFault => {
    const line = `Unable to determine the device handle for GPU${index}: ${textOf(code)}`;
    return { index, fault: code === CODE.noPermission ? 'closed' : 'lost', line, problem: problemCodeOf(code) };
  });
  for (const gpu of gpus) {
    const { pciAddress, identity } = gpu;
    const { uuid = '', busId = '' } = identity;
    const codes = gpu.faults();
    if (codes.has(CODE.corruptedInforom))
      faults.push({ pciAddress, fault: 'inforom', line: `infoROM is corrupted at gpu ${busId}`, problem: 'inforom-corrupted' });
    if (codes.has(CODE.insufficientPower))
      problems.push({ code: 'insufficient-power', device: uuid, message: textOf(CODE.insufficientPower) });
  }
  return { faults, problems };
}

/** Returns the problem code for the return code of one GPU. */
function problemCodeOf(code: number): ProblemCode {
  if (code === CODE.noPermission) return 'no-permission';
  return code === CODE.insufficientPower ? 'insufficient-power' : 'gpu-unreadable';
}
