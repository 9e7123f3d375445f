import { normalizePciAddress } from '../../../host/pci/pci.ts';
import { minutes } from '../../../model/duration.ts';
import {
  type GpuIdentity,
  type GpuSample,
  INTENSE_PER_SECOND,
  type LinkErrorMinutes,
  type LinkPeer,
  type LinkSample,
  SWITCH_END,
} from '../sample.ts';
import { CODE, kindOf, PCI_INFO } from './header.ts';
import type { Handle } from './library.ts';
import { callForNumber, type Device, fieldValues, type TrackedDevice } from './question.ts';

/** `NVML_NVLINK_MAX_LINKS` of nvml.h 13.3. */
const MAX_LINKS = 36;
const KIBIBYTE = 1_024;

/** Fields of a link. Their scope is the number of the link. Generations before NVLink 5 count in KiB, NVLink 5 in bytes. */
const TRAFFIC = { sentKibibytes: 138, receivedKibibytes: 139, sentBytes: 202, receivedBytes: 204 };
/** `NVML_FI_DEV_NVLINK_GET_SPEED`: of one direction, in MB/s. A recorded answer of an older agent has 0 for it. */
const SPEED = 164;
const MEGABYTE = 1_000_000;
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

/** The NVLinks of one GPU. */
export class Links {
  readonly #gpu: TrackedDevice;
  #read: LinksRead = NO_LINKS;
  /** Monotonic clock of that read. */
  readMs = -Infinity;
  /** Highest number of links of all reads. */
  #highest = 0;
  #ends: LinkEnds = NO_ENDS;
  readonly #counts = new Map<number, LinkCounts>();

  constructor(gpu: TrackedDevice) {
    this.#gpu = gpu;
  }

  /** Reads states, traffic and errors. `nowMs`: monotonic clock. */
  read(nowMs: number): void {
    this.#read = this.#gpu.during('nvmlDeviceGetNvLinkState', () => readLinks(this.#gpu, this.#highest));
    this.#highest = Math.max(this.#highest, this.#read.links.length);
    this.readMs = nowMs;
    for (const { number, errors = {} } of this.#read.links) {
      if (hasCounters(errors)) this.#counts.set(number, countsOf(this.#counts.get(number), errors, nowMs));
    }
  }

  /** Reads the remote ends of the links that are up. */
  readEnds(): void {
    this.#ends = this.#gpu.during('nvmlDeviceGetNvLinkRemotePciInfo', () => readLinkEnds(this.#gpu, this.#read.links, this.#ends));
  }

  /** The GPU is known to have no link. */
  get areNone(): boolean {
    return this.#read.isComplete && this.#read.links.length === 0;
  }

  get ends(): LinkEnds {
    return this.#ends;
  }

  sample(): Pick<GpuSample, 'links' | 'hasAllLinks'> {
    const links = this.#read.links.map((link) => ({
      ...link,
      end: this.#ends.ofLink.get(link.number),
      errorMinutes: this.#minutesOf(link),
    }));
    return { links, hasAllLinks: this.#read.isComplete };
  }

  /** Forgets the states, and not the ends, which do not change. */
  forget(): void {
    this.#read = NO_LINKS;
  }

  /** Undefined for a link whose errors were not read. */
  #minutesOf({ number, errors = {} }: LinkSample): LinkErrorMinutes | undefined {
    const counts = hasCounters(errors) ? this.#counts.get(number) : undefined;
    if (counts === undefined) return undefined;
    const { all, recoveries, kinds, perSecond } = counts;
    return { minutes: all?.count, recoveryMinutes: recoveries?.count, kinds, ...(perSecond !== undefined && { perSecond }) };
  }
}

/** The links of a GPU whose state was read. `isComplete`: the state of each link was read. */
interface LinksRead {
  readonly links: readonly LinkSample[];
  readonly isComplete: boolean;
}

const NO_LINKS: LinksRead = { links: [], isComplete: false };

/**
 * Reads state, traffic and errors of the links of a GPU. A board without links gives an empty list. `expected`: the highest number of links
 * of earlier reads. A driver that answers for fewer links does not say that the others are down.
 */
export function readLinks(gpu: Device, expected = 0): LinksRead {
  const links: LinkSample[] = [];
  // NVLink 5 does not support the error counter function.
  let isCounting = true;
  let isComplete = true;
  for (let number = 0; number < MAX_LINKS; number += 1) {
    const code = callForNumber(gpu, 'nvmlDeviceGetNvLinkState', 'u', number);
    if (code !== CODE.success) {
      isComplete &&= isUnsupported(code) || code === CODE.invalidArgument;
      if (isLast(code)) break;
      continue;
    }
    const isUp = gpu.library.scratch.u32(0) === 1;
    if (!isUp) {
      links.push({ number, isUp });
      continue;
    }
    const counted: Counted | undefined = isCounting ? countErrors(gpu, number) : undefined;
    isCounting = counted !== undefined;
    links.push({ number, isUp, ...readFields(gpu, number, counted ?? {}) });
  }
  return { links, isComplete: isComplete && links.length >= expected };
}

function readFields(gpu: Device, number: number, counted: Counted): Omit<LinkSample, 'number' | 'isUp'> {
  const ids = [...Object.values(TRAFFIC), ...Object.values(ERROR_FIELDS), SPEED];
  const values = fieldValues(
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
  const speed = field(SPEED) ?? 0;
  return {
    ...(speed > 0 && { bytesPerSecond: speed * MEGABYTE }),
    transmittedBytes: field(TRAFFIC.sentBytes) ?? bytes(field(TRAFFIC.sentKibibytes)),
    receivedBytes: field(TRAFFIC.receivedBytes) ?? bytes(field(TRAFFIC.receivedKibibytes)),
    errors: { ...counted, ...Object.fromEntries(errors) },
  };
}

/** Error counts, keyed by kind. */
type Counted = Readonly<Record<string, number>>;

/** Reads the error counters. Returns undefined when the driver does not support this function. */
function countErrors(gpu: Device, number: number): Counted | undefined {
  const counted: Record<string, number> = {};
  let isSupported = false;
  for (const [counter, kind] of COUNTERS.entries()) {
    const code = callForNumber(gpu, 'nvmlDeviceGetNvLinkErrorCounter', 'ui', number, counter);
    isSupported ||= !isUnsupported(code);
    if (code === CODE.success) counted[kind] = gpu.library.scratch.u64(0);
  }
  return isSupported ? counted : undefined;
}

/**
 * Errors count by the minutes that had new ones. A burst is one minute: a link that fails has errors again and again, days before a program
 * dies of it. A minute with so many errors that they are a fault of their own does not count.
 */
const WINDOW_MS = minutes(1);
const MS_PER_SECOND = 1_000;
const RECOVERIES: ReadonlySet<string> = new Set(['recovery', 'recovery_failed']);
/** A sound link has such errors: a retransmission repairs them. */
const NORMAL: ReadonlySet<string> = new Set(['effective']);

/** A board that does not count errors gives an empty list. */
const hasCounters = (errors: object): boolean => Object.keys(errors).length > 0;

interface LinkCounts {
  /** Counters of the last read, keyed by kind. */
  readonly counters: Readonly<Record<string, number>>;
  readonly atMs: number;
  /** Kinds of the latest new errors. */
  readonly kinds: readonly string[];
  /** New errors a second of the most frequent kind between the last two reads. */
  readonly perSecond: number | undefined;
  readonly all: Minutes | undefined;
  readonly recoveries: Minutes | undefined;
}

/** Number of minutes with new errors, and the last of them. */
interface Minutes {
  readonly count: number;
  readonly last: number | undefined;
}

/** The first read of a counter is its base, because the time of its errors is unknown. */
function countsOf(before: LinkCounts | undefined, counters: LinkCounts['counters'], atMs: number): LinkCounts {
  const minute = Math.floor(atMs / WINDOW_MS);
  const kinds = Object.keys(counters).filter((kind) => !NORMAL.has(kind) && counters[kind] !== 0);
  const isNew = (kind: string): boolean => (counters[kind] as number) > (before?.counters[kind] ?? Number.POSITIVE_INFINITY);
  const grown = kinds.filter(isNew);
  const perSecond = before === undefined || atMs <= before.atMs ? undefined : mostNew(before, counters, kinds, atMs);
  const isIntense = (perSecond ?? 0) >= INTENSE_PER_SECOND;
  const minutesOf = (among: readonly string[], known: Minutes | undefined): Minutes | undefined => {
    if (among.length === 0) return known;
    const { count, last } = known ?? { count: 0, last: undefined };
    return !isIntense && among.some(isNew) && last !== minute ? { count: count + 1, last: minute } : { count, last };
  };
  return {
    counters,
    atMs,
    perSecond,
    kinds: grown.length === 0 ? (before?.kinds ?? []) : grown,
    all: minutesOf(kinds, before?.all),
    recoveries: minutesOf(
      kinds.filter((kind) => RECOVERIES.has(kind)),
      before?.recoveries,
    ),
  };
}

function mostNew(before: LinkCounts, counters: LinkCounts['counters'], kinds: readonly string[], atMs: number): number {
  const grown = kinds.map((kind) => (counters[kind] as number) - (before.counters[kind] ?? Number.POSITIVE_INFINITY));
  return (Math.max(0, ...grown) * MS_PER_SECOND) / (atMs - before.atMs);
}

/** Remote ends of a GPU's links: an address, or {@link SWITCH_END}. */
interface LinkEnds {
  /** A link that is down keeps its last known end. */
  readonly ofLink: ReadonlyMap<number, string>;
  /** Ends of the links that are up. */
  readonly reached: readonly string[];
}

export const NO_ENDS: LinkEnds = { ofLink: new Map(), reached: [] };
/** `nvmlIntNvLinkDeviceType_t`. */
const SWITCH = 2;

/** Reads the remote ends of the links that are up. `before`: the earlier read. */
export function readLinkEnds(gpu: Device, links: readonly LinkSample[], before: LinkEnds): LinkEnds {
  const read = links.flatMap(({ number, isUp }) => {
    const end = isUp ? endOf(gpu, number) : undefined;
    return end === undefined ? [] : [[number, end] as const];
  });
  return { ofLink: new Map([...before.ofLink, ...read]), reached: read.map(([, end]) => end) };
}

function endOf(gpu: Device, number: number): string | undefined {
  const { library, handle } = gpu;
  const { scratch } = library;
  const type = callForNumber(gpu, 'nvmlDeviceGetNvLinkRemoteDeviceType', 'u', number);
  if (type === CODE.success && scratch.u32(0) === SWITCH) return SWITCH_END;
  scratch.clear(PCI_INFO.size);
  const code = library.call('nvmlDeviceGetNvLinkRemotePciInfo_v2', 'hup', handle, number, scratch.address);
  return code === CODE.success ? normalizePciAddress(scratch.text(PCI_INFO.busId, PCI_INFO.busIdLength)) : undefined;
}

/** A GPU of the node that others may reach. */
interface Peer {
  readonly device: TrackedDevice;
  readonly identity: GpuIdentity;
  readonly pciAddress: string;
  readonly links: Links;
  readonly isLost: boolean;
  readonly maySplit: boolean;
}

/** Whether each GPU reaches each other GPU over NVLink, by the handles of both. Pairs that were not read are absent. */
export type PeerAccess = ReadonlyMap<Handle, ReadonlyMap<Handle, boolean>>;

/**
 * Returns the GPUs that a GPU reaches. GPUs on switches reach each other; the smaller number of switch links counts. The access is unknown when
 * it was not read, or when one of the two is lost.
 */
export function peersOf(gpu: Peer, all: readonly Peer[], access: PeerAccess): readonly LinkPeer[] {
  const linksTo = ({ links }: Peer, end: string): number => links.ends.reached.filter((each) => each === end).length;
  return all.flatMap((other) => {
    const { identity, pciAddress, device, isLost } = other;
    const links = linksTo(gpu, pciAddress) + Math.min(linksTo(gpu, SWITCH_END), linksTo(other, SWITCH_END));
    if (other === gpu || identity.uuid === undefined || links === 0) return [];
    const hasAccess = gpu.isLost || isLost ? undefined : access.get(gpu.device.handle)?.get(device.handle);
    return [{ uuid: identity.uuid, links, pciAddress, hasAccess }];
  });
}

/** `NVML_P2P_CAPS_INDEX_NVLINK`. */
const NVLINK = 2;
/** `NVML_P2P_STATUS_OK` and `NVML_P2P_STATUS_UNKNOWN`; the other states are reasons why there is no access. */
const OK = 0;
const UNKNOWN = 6;

/** Asks the driver about the pairs of GPUs that have links. A split GPU reaches no other GPU, so it is not asked about. */
export function readPeerAccess(gpus: readonly Peer[]): PeerAccess {
  const whole = gpus.filter((gpu) => !gpu.isLost && !gpu.maySplit && gpu.links.ends.ofLink.size > 0);
  return new Map(whole.map((gpu) => [gpu.device.handle, gpu.device.during('nvmlDeviceGetP2PStatus', () => accessOf(gpu, whole))]));
}

function accessOf({ device: gpu }: Peer, all: readonly Peer[]): ReadonlyMap<Handle, boolean> {
  const access = new Map<Handle, boolean>();
  for (const { device } of all) {
    const { handle } = device;
    if (device === gpu) continue;
    const code = callForNumber(gpu, 'nvmlDeviceGetP2PStatus', 'hi', handle, NVLINK);
    const state = gpu.library.scratch.u32(0);
    if (code === CODE.success && state !== UNKNOWN) access.set(handle, state === OK);
  }
  return access;
}
