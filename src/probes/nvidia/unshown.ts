import type { DeviceReport, Problem } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { Finding } from '../../model/health.ts';
import { raise } from '../kit/finding.ts';
import { conditions } from './conditions.ts';
import type { GpuPlace } from './machine-gpus.ts';
import type { SurplusFault } from './wordings.ts';

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
  /** What the kernel driver tells of an address that only a text of the driver names. */
  placeAt(address: string): readonly GpuPlace[];
}

/** A GPU that the machine has and the driver does not show. */
export interface UnshownGpu {
  readonly place: GpuPlace;
  /** `lost`: a text of the driver names it. `not-initialized`: nothing explains it. `unread`: nobody can tell how it is. */
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
  if (facts.isListed && facts.uuid === undefined) return raise(conditions.NotInitialized, 'NeverStarted', { status: true, message });
  return raise(conditions.GpuLost, 'GpuIsLost', { status: true, message });
}

function notInitialized({ address, state }: GpuPlace): Finding {
  if (state === 'unbound') {
    const message = `no driver is bound to PCI function ${address}, and the driver has another GPU of this model`;
    return raise(conditions.NotInitialized, 'NotBound', { status: true, message });
  }
  const message = `the driver is bound to PCI function ${address}, and does not show its GPU`;
  return raise(conditions.NotInitialized, 'NotShown', { status: true, message });
}

/** Problems of the faults: each GPU that could not be opened has one. */
export function faultProblems(faults: readonly SurplusFault[], deviceAt: (pciAddress: string) => string | undefined): readonly Problem[] {
  return faults.flatMap(({ pciAddress, fault, line: message, problem: code }): Problem[] => {
    if (fault === 'inforom') return [];
    const device = pciAddress === undefined || fault === 'closed' ? undefined : deviceAt(pciAddress);
    return [{ code, message, ...(device === undefined ? {} : { device }) }];
  });
}
