import { normalizePciAddress } from '../../../host/pci/pci.ts';
import { type LinkPeer, type LinkSample, SWITCH_END } from '../sample.ts';
import { CODE, kindOf } from './codes.ts';
import { PCI_INFO } from './layouts.ts';
import type { Handle, Library } from './library.ts';
import { callForNumber, fieldValues } from './question.ts';

/** `NVML_NVLINK_MAX_LINKS` of nvml.h 13.3. */
const MAX_LINKS = 36;
const KIBIBYTE = 1_024;

/** Fields of a link. Their scope is the number of the link. Generations before NVLink 5 count in KiB, NVLink 5 in bytes. */
const TRAFFIC = { sentKibibytes: 138, receivedKibibytes: 139, sentBytes: 202, receivedBytes: 204 };
/** Error fields of NVLink 5. `effective`: errors that are left after forward error correction; `symbol`: errors that no retransmission repaired. */
const ERROR_FIELDS = {
  malformed: 206,
  overrun: 207,
  receive: 208,
  remote: 209,
  general: 210,
  local_integrity: 211,
  discarded: 212,
  recovery: 213,
  recovery_failed: 214,
  effective: 219,
  symbol: 221,
};
/** Kinds of `nvmlDeviceGetNvLinkErrorCounter` by number, for generations before NVLink 5. */
const COUNTERS = ['replay', 'recovery', 'crc_flit', 'crc_data', 'ecc'];

const isUnsupported = (code: number): boolean => code === CODE.notSupported || code === CODE.functionNotFound;
/** True when no further link will answer: the last link was read, there are no links, or the device or node failed. */
const isLast = (code: number): boolean =>
  isUnsupported(code) || code === CODE.invalidArgument || kindOf(code) === 'device' || kindOf(code) === 'node';

/** The links of a GPU whose state was read. `isComplete`: the state of each link was read. */
export interface LinksRead {
  readonly links: readonly LinkSample[];
  readonly isComplete: boolean;
}

export const NO_LINKS: LinksRead = { links: [], isComplete: false };

/**
 * Reads state, traffic and errors of the links of a GPU. A board without links gives an empty list. `expected`: the highest number of links
 * of earlier reads. A driver that answers for fewer links does not say that the others are down.
 */
export function readLinks(library: Library, gpu: Handle, expected = 0): LinksRead {
  const links: LinkSample[] = [];
  // NVLink 5 does not support the error counter function.
  let hasCounters = true;
  let isComplete = true;
  for (let number = 0; number < MAX_LINKS; number += 1) {
    const code = callForNumber(library, 'nvmlDeviceGetNvLinkState', 'hu', gpu, number);
    if (code !== CODE.success) {
      isComplete &&= isUnsupported(code) || code === CODE.invalidArgument;
      if (isLast(code)) break;
      continue;
    }
    const isUp = library.scratch.u32(0) === 1;
    if (!isUp) {
      links.push({ number, isUp });
      continue;
    }
    const counted: Counted | undefined = hasCounters ? countErrors(library, gpu, number) : undefined;
    hasCounters = counted !== undefined;
    links.push({ number, isUp, ...readFields(library, gpu, number, counted ?? {}) });
  }
  return { links, isComplete: isComplete && links.length >= expected };
}

function readFields(
  library: Library,
  gpu: Handle,
  number: number,
  counted: Counted,
): Pick<LinkSample, 'transmittedBytes' | 'receivedBytes' | 'errors'> {
  const ids = [...Object.values(TRAFFIC), ...Object.values(ERROR_FIELDS)];
  const values = fieldValues(
    library,
    gpu,
    ids.map((id) => ({ id, scope: number })),
  );
  const field = (id: number): number | undefined => {
    const value = typeof values === 'number' ? undefined : values[ids.indexOf(id)];
    return value?.code === CODE.success ? value.value : undefined;
  };
  const bytes = (kibibytes: number | undefined): number | undefined => (kibibytes === undefined ? undefined : kibibytes * KIBIBYTE);
  const errors = Object.entries(ERROR_FIELDS).flatMap(([kind, id]) => {
    const value = field(id);
    return value === undefined ? [] : [[kind, value] as const];
  });
  return {
    transmittedBytes: field(TRAFFIC.sentBytes) ?? bytes(field(TRAFFIC.sentKibibytes)),
    receivedBytes: field(TRAFFIC.receivedBytes) ?? bytes(field(TRAFFIC.receivedKibibytes)),
    errors: { ...counted, ...Object.fromEntries(errors) },
  };
}

/** Error counts, keyed by kind. */
type Counted = Readonly<Record<string, number>>;

/** Reads the error counters. Returns undefined when the driver does not support this function. */
function countErrors(library: Library, gpu: Handle, number: number): Counted | undefined {
  const counted: Record<string, number> = {};
  let isSupported = false;
  for (const [counter, kind] of COUNTERS.entries()) {
    const code = callForNumber(library, 'nvmlDeviceGetNvLinkErrorCounter', 'hui', gpu, number, counter);
    isSupported ||= !isUnsupported(code);
    if (code === CODE.success) counted[kind] = library.scratch.u64(0);
  }
  return isSupported ? counted : undefined;
}

/** Remote ends of a GPU's links. */
export interface LinkEnds {
  /** Number of links to a switch. */
  readonly toSwitch: number;
  /** Number of links to each other PCI function, keyed by its address. */
  readonly toAddress: ReadonlyMap<string, number>;
  /** The remote end of each link: an address, or {@link SWITCH_END}. A link that is down keeps its last known end. */
  readonly ofLink: ReadonlyMap<number, string>;
}

export const NO_ENDS: LinkEnds = { toSwitch: 0, toAddress: new Map(), ofLink: new Map() };
/** `nvmlIntNvLinkDeviceType_t`. */
const SWITCH = 2;

/** Reads the remote ends of the links that are up. `before`: the earlier read. */
export function readLinkEnds(library: Library, gpu: Handle, links: readonly LinkSample[], before: LinkEnds): LinkEnds {
  const { scratch } = library;
  let toSwitch = 0;
  const toAddress = new Map<string, number>();
  const ofLink = new Map(before.ofLink);
  for (const { number } of links.filter(({ isUp }) => isUp)) {
    const type = callForNumber(library, 'nvmlDeviceGetNvLinkRemoteDeviceType', 'hu', gpu, number);
    if (type === CODE.success && scratch.u32(0) === SWITCH) {
      toSwitch += 1;
      ofLink.set(number, SWITCH_END);
      continue;
    }
    scratch.clear(PCI_INFO.size);
    const code = library.call('nvmlDeviceGetNvLinkRemotePciInfo_v2', 'hup', gpu, number, scratch.address);
    const address = code === CODE.success ? normalizePciAddress(scratch.text(PCI_INFO.busId, PCI_INFO.busIdLength)) : undefined;
    if (address === undefined) continue;
    toAddress.set(address, (toAddress.get(address) ?? 0) + 1);
    ofLink.set(number, address);
  }
  return { toSwitch, toAddress, ofLink };
}

/** A GPU of the node and its link ends. */
export interface LinkedGpu {
  readonly uuid: string | undefined;
  readonly pciAddress: string;
  readonly ends: LinkEnds;
}

/** Returns the GPUs that a GPU reaches. GPUs on switches reach each other; the smaller number of switch links counts. */
export function peersOf(gpu: LinkedGpu, all: readonly LinkedGpu[]): readonly LinkPeer[] {
  return all.flatMap(({ uuid, pciAddress, ends }) => {
    if (pciAddress === gpu.pciAddress || uuid === undefined) return [];
    const links = (gpu.ends.toAddress.get(pciAddress) ?? 0) + Math.min(gpu.ends.toSwitch, ends.toSwitch);
    return links === 0 ? [] : [{ uuid, links, pciAddress }];
  });
}
