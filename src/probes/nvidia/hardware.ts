import type { Host } from '../../host/host.ts';
import { BusFunctions, mayBeOnBus } from '../../host/pci/functions.ts';
import { isPciAddress } from '../../host/pci/pci.ts';
import type { DeviceReport, Problem } from '../../model/collection.ts';
import type { BusHardware } from '../../model/declaration.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import { declaredFinding } from '../kit/finding.ts';
import { standingOf } from '../kit/pcie/standing.ts';
import { conditions } from './conditions.ts';
import type { SurplusFault } from './sample.ts';

/** Name of the driver, and its directory below `/proc`, with a folder for each GPU to which it is bound. */
export const DRIVER = 'nvidia';
const PROC = 'driver/nvidia';

/** VGA and 3D controllers: the classes to which NVIDIA's driver binds. Source: nv-pci-table.c of the open kernel modules. */
export const bus: readonly BusHardware[] = [
  { what: 'NVIDIA GPU', vendor: '0x10de', maker: 'NVIDIA', classes: ['0300', '0302'], kind: 'gpu', drivers: [DRIVER] },
];

/** A GPU that the driver has, so that it should show it. */
export interface ExpectedFunction {
  readonly address: string;
}

/** Device nodes of the driver on servers, in WSL, and on Jetson boards. WSL and Jetson have no PCI function. */
const DRIVER_NODES = ['nvidiactl', 'dxg', 'nvhost-ctrl-gpu', 'nvgpu'];

/** Returns true when the machine may have a GPU: hardware on the bus, or a driver. */
export function mayHaveGpus(host: Host): boolean {
  return DRIVER_NODES.some((name) => host.dev.exists(name)) || host.proc.exists(`${PROC}/version`) || mayBeOnBus(host.sys, bus);
}

/** Returns true when the machine has NVIDIA GPUs that the driver should show. It is a problem if no source shows them. */
export function hardwareOnBus({ sys, proc }: Host): boolean {
  if (proc.exists(`${PROC}/version`)) return true;
  return new BusFunctions(sys, bus).read(0).some((each) => standingOf(each).is !== 'handed-over');
}

/** Returns the addresses of bound GPUs; empty when the kernel does not show them. */
export const boundGpus = ({ proc }: Pick<Host, 'proc'>): readonly string[] =>
  proc.exists(`${PROC}/gpus`) ? proc.list(`${PROC}/gpus`).filter(isPciAddress) : [];

/** What the kernel driver reports of a GPU, before any program opens it. */
export interface ProcFacts {
  /** Absent when the driver never started the GPU: it then prints question marks. */
  readonly uuid: string | undefined;
  readonly model: string | undefined;
  readonly minor: string | undefined;
  /** The driver was told to leave the GPU out. */
  readonly isExcluded: boolean;
  /** The driver reports something of the GPU. */
  readonly isListed: boolean;
}

/** Parses `/proc/driver/nvidia/gpus/<address>/information`, which has lines such as `Device Minor: 	 0`. */
export function procFacts({ proc }: Pick<Host, 'proc'>, pciAddress: string): ProcFacts {
  const text = proc.text(`${PROC}/gpus/${pciAddress}/information`);
  const fact = (name: string, form: string): string | undefined => new RegExp(`^${name}:\\s*(${form})\\s*$`, 'im').exec(text ?? '')?.[1];
  return {
    uuid: fact('GPU UUID', 'GPU-[0-9a-f-]{36}'),
    model: fact('Model', '.+?'),
    minor: fact('Device Minor', '\\d+'),
    // Older drivers say "Blacklisted".
    isExcluded: fact('GPU (?:Excluded|Blacklisted)', 'Yes') !== undefined,
    isListed: text !== undefined,
  };
}

/** A GPU that the driver does not show, with what the kernel driver reports of it. */
export interface GpuPlace extends ExpectedFunction {
  readonly facts: ProcFacts;
  /** The container of the agent may be without this GPU. */
  readonly isWithheld: boolean;
}

/** The GPUs of the machine, whatever the driver's library or command shows. */
export class MachineGpus {
  readonly #host: Host;
  readonly #functions: BusFunctions;
  readonly #visible: string | undefined;
  /** Whether the driver was told to leave a GPU out, which holds as long as it is loaded. */
  #excluded: ReadonlyMap<string, boolean> = new Map();

  /** `visible`: the variable NVIDIA_VISIBLE_DEVICES of the agent; undefined outside of containers of NVIDIA's runtime. */
  constructor(host: Host, visible: string | undefined) {
    this.#host = host;
    this.#functions = new BusFunctions(host.sys, bus);
    this.#visible = visible;
  }

  /** The GPUs that a working driver should show, by address: without those that it was told to exclude. `nowMs` is monotonic. */
  expected(nowMs: number): readonly ExpectedFunction[] {
    const functions = this.#functions.read(nowMs);
    const { sys } = this.#host;
    const onBus = functions.flatMap(({ address, driver }) => (driver === DRIVER ? [{ address }] : []));
    const isVirtual = (address: string): boolean => sys.link(`bus/pci/devices/${address}/physfn`) !== undefined;
    // The kernel driver also lists a GPU whose function the machine does not show.
    const listed = boundGpus(this.#host).filter((address) => !onBus.some((each) => each.address === address) && !isVirtual(address));
    const all = [...onBus, ...listed.map((address) => ({ address }))];
    this.#excluded = new Map(all.map(({ address }) => [address, this.#excluded.get(address) ?? procFacts(this.#host, address).isExcluded]));
    return all.filter(({ address }) => this.#excluded.get(address) === false).sort((a, b) => (a.address < b.address ? -1 : 1));
  }

  /** Adds what the kernel driver reports. */
  placesOf(functions: readonly ExpectedFunction[]): readonly GpuPlace[] {
    return functions.map((each) => {
      const facts = procFacts(this.#host, each.address);
      return { ...each, facts, isWithheld: this.#isWithheld(facts) };
    });
  }

  /** The GPUs that the driver would have if it were loaded. */
  withoutDriver(nowMs: number): readonly ExpectedFunction[] {
    return this.#functions.read(nowMs).filter((each) => ['served', 'unbound'].includes(standingOf(each).is));
  }

  /** The runtime gives a container the nodes of the GPUs that its variable names. "void" is also the value when it uses CDI. */
  #isWithheld({ uuid, minor }: ProcFacts): boolean {
    const visible = this.#visible;
    if (visible === undefined || visible === 'all' || (uuid !== undefined && visible.includes(uuid))) return false;
    return minor === undefined || !this.#host.dev.exists(`nvidia${minor}`);
  }
}

/** What one answer of the driver leaves open. */
export interface Gap {
  /** The GPUs that the driver should show and does not, by address. */
  readonly missing: readonly GpuPlace[];
  /** Addresses of all GPUs that it should show, in its order. */
  readonly expected: readonly string[];
  /** Addresses of the GPUs that were listed before and are not shown. */
  readonly gone: readonly string[];
  readonly faults: readonly SurplusFault[];
  /** Number of GPUs that the driver announces and does not show; 0 when it announces none. */
  readonly announced: number;
  /** The driver did not list its GPUs, so that a missing one is unread. */
  readonly isUnlisted?: true;
  /** What the kernel driver reports of an address that only a text of the driver names. */
  placeAt(address: string): readonly GpuPlace[];
}

/** A GPU that the machine has and the driver does not show. */
interface UnshownGpu {
  readonly place: GpuPlace;
  /** `lost`: a text of the driver names it. `not-initialized`: nothing explains it. `unread`: its state is unknown. */
  readonly why: 'lost' | 'not-initialized' | 'unread';
  readonly fault?: SurplusFault;
}

export interface Unshown {
  readonly gpus: readonly UnshownGpu[];
  /** The faults, each with the address that it belongs to where that is known. */
  readonly faults: readonly SurplusFault[];
  /** Number of GPUs that were announced and that no line explains. */
  readonly unexplained: number;
  /** False when a GPU may exist that is neither shown nor among `gpus`. */
  readonly isComplete: boolean;
}

/** Compares the GPUs that the driver shows with those that the machine has. Pure. */
export function unshownGpus(gap: Gap): Unshown {
  const { missing, expected, gone, announced } = gap;
  const faults = withAddresses(gap.faults, [missing.map(({ address }) => address), gone], expected);
  const faultOf = new Map<string, SurplusFault>();
  for (const fault of faults) if (fault.pciAddress !== undefined && fault.fault !== 'inforom') faultOf.set(fault.pciAddress, fault);
  const open = faults.filter(({ pciAddress, fault }) => pciAddress === undefined && fault !== 'inforom');
  const unexplained = Math.max(0, announced - faultOf.size - open.length);
  // One of several GPUs is closed to the reader, or was left out of the text: each of them may be that one.
  const isUnsure = gap.isUnlisted === true || unexplained > 0 || open.some(({ fault }) => fault === 'closed');
  const told = [...faultOf.keys()].filter((address) => !missing.some((place) => place.address === address));
  const gpus = [...missing, ...told.flatMap((address) => gap.placeAt(address))].map((place): UnshownGpu => {
    const fault = faultOf.get(place.address);
    if (fault !== undefined) return { place, fault, why: fault.fault === 'closed' ? 'unread' : 'lost' };
    return { place, why: isUnsure || place.isWithheld ? 'unread' : 'not-initialized' };
  });
  const isComplete = open.length === 0 && unexplained === 0 && !gpus.some(({ why }) => why === 'unread');
  return { gpus, faults, unexplained, isComplete };
}

/**
 * Gives faults without an address the one that is left for them. If a list has as many missing GPUs as there are such faults, they are these,
 * in the order of the driver. Otherwise the index of the GPU tells it, where that GPU is missing.
 */
function withAddresses(
  faults: readonly SurplusFault[],
  lists: readonly (readonly string[])[],
  all: readonly string[],
): readonly SurplusFault[] {
  const named = new Set(faults.map(({ pciAddress }) => pciAddress));
  const open = faults.filter(({ pciAddress }) => pciAddress === undefined);
  const free = lists.map((list) => list.filter((address) => !named.has(address)));
  const fitting = free.find(({ length }) => length === open.length);
  return faults.map((fault) => {
    if (fault.pciAddress !== undefined) return fault;
    const byIndex = fault.index === undefined ? undefined : all[fault.index];
    const pciAddress = fitting?.[open.indexOf(fault)] ?? (byIndex !== undefined && free[0]?.includes(byIndex) ? byIndex : undefined);
    return pciAddress === undefined ? fault : { ...fault, pciAddress };
  });
}

/** The report of such a GPU. A GPU that nobody could read has none, so that its state becomes unknown. */
export function unshownReport(device: Device, { place, why, fault }: UnshownGpu): DeviceReport {
  const finding = why === 'unread' ? undefined : why === 'lost' ? lost(place, fault as SurplusFault) : notInitialized(place);
  return finding === undefined ? { device } : { device, read: { readings: [], findings: [finding] } };
}

/** The kernel driver knows no UUID of a GPU that it never started. */
function lost({ facts }: GpuPlace, { line: message }: SurplusFault): Finding {
  if (facts.isListed && facts.uuid === undefined)
    return declaredFinding(conditions.NotInitialized, 'NeverStarted', { status: true, message });
  return declaredFinding(conditions.GpuLost, 'GpuIsLost', { status: true, message });
}

function notInitialized({ address }: GpuPlace): Finding {
  const message = `the driver is bound to PCI function ${address}, and does not show its GPU`;
  return declaredFinding(conditions.NotInitialized, 'NotShown', { status: true, message });
}

/** Problems of the faults: each GPU that could not be opened has one. */
export function faultProblems(faults: readonly SurplusFault[], deviceAt: (pciAddress: string) => string | undefined): readonly Problem[] {
  return faults.flatMap(({ pciAddress, fault, line: message, problem: code }): Problem[] => {
    if (fault === 'inforom') return [];
    const device = pciAddress === undefined || fault === 'closed' ? undefined : deviceAt(pciAddress);
    return [{ code, message, ...defined({ device }) }];
  });
}
