import type { KmsgMessage } from '../../host/kernel-log/reader.ts';
import type { KmsgRecord } from '../../host/kernel-log/record.ts';
import { normalizePciAddress } from '../../host/pci/pci.ts';
import { defined } from '../../model/defined.ts';
import { MOST_FAULT_LINES } from '../../model/fault.ts';
import { RECOVERY_ACTIONS, type RecoveryAction } from './sample.ts';

/** Details that the text of some Xids contains. */
interface XidDetails {
  /** For 94 and 95: whether the driver requires a reset. */
  readonly resetRequired?: boolean;
  readonly nvlink?: NvlinkDetail;
  /** For 74: the number of the link, and its seven error registers. */
  readonly registers?: { readonly link: string; readonly words: readonly number[] };
  /** For 13: the part of the GPU. */
  readonly part?: string;
  /** For 154: the new recovery action; absent when it is unknown. */
  readonly recoveryAction?: RecoveryAction;
}

/** Details of the lines of Xids 144 to 150. */
export interface NvlinkDetail {
  readonly unit: string;
  readonly isFatal: boolean;
  readonly subcode?: number;
  /** Error status of the unit. */
  readonly status?: number;
  /** Absent when the error does not concern a single link. */
  readonly link?: number;
}

/** One Xid as the driver logs it. Details that the record lacks are absent. */
export interface XidLine extends XidDetails {
  readonly kind: 'xid';
  readonly pciAddress: string;
  readonly xid: number;
  /** GPU instance and compute instance of a MIG GPU; absent when the error concerns the whole GPU. */
  readonly gpuInstance?: number;
  readonly computeInstance?: number;
  /** PID in the host's PID namespace. */
  readonly pid?: number;
  readonly processName?: string;
  /** Text after number and process. */
  readonly text: string;
  readonly causedBy?: number;
  /** True for an event of the library, which has the number, but no details. */
  readonly isEvent?: true;
  /** Monotonic clock at which the event came; absent in a line of the log. */
  readonly cameAtMs?: number;
  /** The GPU is a Hopper board: for them, the vendor says what the registers of Xid 74 mean. */
  readonly isHopper?: true;
  /** The log lost the line of this event. */
  readonly isLost?: true;
}

/** An error of an NVSwitch. */
export interface SwitchLine {
  readonly kind: 'switch';
  readonly pciAddress: string;
  readonly sxid: number;
  /** Absent in the following lines, which contain registers. */
  readonly isFatal?: boolean;
  readonly link?: number;
  readonly text: string;
}

/** Messages of the NVIDIA driver in the kernel log that concern health. */
export type NvidiaLine =
  | XidLine
  | SwitchLine
  | { readonly kind: 'identity'; readonly pciAddress: string; readonly uuid: string }
  | { readonly kind: 'lost'; readonly pciAddress: string }
  /** First record of a message of several records, which may report a lost GPU. */
  | { readonly kind: 'gpu-named'; readonly pciAddress: string }
  /** Last record of that message. */
  | { readonly kind: 'named-gpu-lost' }
  | { readonly kind: 'driver-loaded'; readonly version?: string }
  /** Any other record of the driver. It ends a message of several records, unless `isMiddle`. */
  | { readonly kind: 'other'; readonly isMiddle: boolean };

const OWN = /^(?:NVRM:|nvidia-nvswitch)/;
const XID =
  /^NVRM: Xid \((?:PCI:)?([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(?:\.[0-7])?(?: GPU-I:(\d+)(?: GPU-CI:(\d+))?)?\): (\d{1,5})(?:, *(.*))?$/i;
const IDENTITY = /^NVRM: GPU at PCI:([0-9a-f:.]+): (GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/i;
const LOST = /^NVRM: GPU (?:at )?(?:PCI:)?([0-9a-f:.]+?):? (?:GPU )?has fallen off the bus/i;
const NAMED = /^NVRM: The NVIDIA GPU ([0-9a-f:.]+)(.*)$/i;
const LOST_TAIL = /^NVRM: fallen off the bus/i;
const SWITCH = /^nvidia-nvswitch\d*:? SXid \(PCI:([0-9a-f:.]+)\): (\d{1,6}), *(.*)$/i;
const LOADED = /^NVRM: loading NVIDIA UNIX .*Kernel Module(?: for \S+)? +(\d[\d.]*)?/;

/**
 * Parses one record. Undefined for a record of another origin: other parts of the kernel print names that a device or a process chooses.
 *
 * The driver prints without a device (nv_printf in os-interface.c of the open kernel modules), and at a level that depends on its
 * version, so only the text shows that a record is its own. It marks all of its lines as pieces of a message, too (KERN_CONT). Each form below
 * has more fixed bytes at its begin than the name of a process can have, 15, and the record is one line: a name within it starts no further message.
 */
export function parseNvidiaLine({ origin, text }: Pick<KmsgRecord, 'origin' | 'text'>): NvidiaLine | undefined {
  if ((origin !== 'kernel' && origin !== 'piece') || !OWN.test(text)) return undefined;
  return xidLine(text) ?? lostLine(text) ?? identityLine(text) ?? switchLine(text) ?? loadedLine(text) ?? otherLine(text);
}

function otherLine(line: string): NvidiaLine {
  return { kind: 'other', isMiddle: /^NVRM: \(PCI ID:/.test(line) };
}

function identityLine(line: string): NvidiaLine | undefined {
  const [, address = '', uuid = ''] = IDENTITY.exec(line) ?? [];
  const pciAddress = normalizePciAddress(address);
  return pciAddress === undefined ? undefined : { kind: 'identity', pciAddress, uuid: `GPU-${uuid.slice(4).toLowerCase()}` };
}

/** Parses the loss of a GPU without an Xid. Its message is one record, or the three lines of it are records of their own. */
function lostLine(line: string): NvidiaLine | undefined {
  const lost = normalizePciAddress(LOST.exec(line)?.[1] ?? '');
  if (lost !== undefined) return { kind: 'lost', pciAddress: lost };
  const [, address = '', rest = ''] = NAMED.exec(line) ?? [];
  const named = normalizePciAddress(address);
  if (named !== undefined) return { kind: /fallen off the bus/i.test(rest) ? 'lost' : 'gpu-named', pciAddress: named };
  return LOST_TAIL.test(line) ? { kind: 'named-gpu-lost' } : undefined;
}

function switchLine(line: string): SwitchLine | undefined {
  const [, address = '', sxid = '', text = ''] = SWITCH.exec(line) ?? [];
  const pciAddress = normalizePciAddress(address);
  if (pciAddress === undefined) return undefined;
  const severity = /^(?:(non-?fatal)|(fatal))\b/i.exec(text);
  const link = /\bLink (\d+)/i.exec(text)?.[1];
  return {
    kind: 'switch',
    pciAddress,
    sxid: Number(sxid),
    text,
    ...(severity !== null && { isFatal: severity[2] !== undefined }),
    ...(link !== undefined && { link: Number(link) }),
  };
}

function loadedLine(line: string): NvidiaLine | undefined {
  const loaded = LOADED.exec(line);
  if (loaded === null) return undefined;
  return { kind: 'driver-loaded', ...(loaded[1] !== undefined && { version: loaded[1] }) };
}

function xidLine(line: string): XidLine | undefined {
  const match = XID.exec(line);
  const pciAddress = normalizePciAddress(match?.[1] ?? '');
  if (match === null || pciAddress === undefined) return undefined;
  const [, , gpuInstance, computeInstance, number, rest = ''] = match;
  const xid = Number(number);
  const { pid, processName, text } = splitProcess(rest);
  const causedBy = /caused by previous Xid (\d+)/i.exec(text)?.[1];
  return {
    kind: 'xid',
    pciAddress,
    xid,
    ...(gpuInstance !== undefined && { gpuInstance: Number(gpuInstance) }),
    ...(computeInstance !== undefined && { computeInstance: Number(computeInstance) }),
    ...(pid !== undefined && { pid }),
    ...(processName !== undefined && { processName }),
    text,
    ...(causedBy !== undefined && { causedBy: Number(causedBy) }),
    ...xidDetails(xid, text),
  };
}

interface Process {
  readonly pid?: number;
  readonly processName?: string;
  readonly text: string;
}

/** Beginnings of the driver's texts after a process name. They mark its end, because a name may contain commas and spaces. */
const AFTER_NAME =
  /, (?=(?:Ch(?:annel)?\b|Contained|Uncontained|GPU |Graphics|errorString|Class|intr|engmask|Engine|Shader|MMU|CE|NV|RST))/i;

function splitProcess(rest: string): Process {
  const [prefix = '', pid = ''] = /^pid=('?<unknown>'?|\d+)(?:, |$)/i.exec(rest) ?? [];
  if (prefix === '') return { text: rest };
  const known = /^\d+$/.test(pid) ? { pid: Number(pid) } : {};
  const afterPid = rest.slice(prefix.length);
  if (!afterPid.startsWith('name=')) return { ...known, text: afterPid };
  const name = afterPid.slice('name='.length);
  const cut = AFTER_NAME.exec(name)?.index ?? name.indexOf(', ');
  const processName = cut < 0 ? name : name.slice(0, cut);
  const text = cut < 0 ? '' : name.slice(cut + 2);
  return { ...known, ...(!/^'?<unknown>'?$/i.test(processName) && processName !== '' && { processName }), text };
}

/** Parses the text after number and process of the Xids whose meaning depends on it. */
function xidDetails(xid: number, text: string): XidDetails {
  if (xid === 94 || xid === 95) {
    const words = [...text.matchAll(/\b(?:D-)?RST: (Yes|No)\b/gi)].map(([, word = '']) => word.toLowerCase());
    return words.length === 0 ? {} : { resetRequired: words.includes('yes') };
  }
  if (xid >= 144 && xid <= 150) {
    const nvlink = nvlinkDetail(text);
    return defined({ nvlink });
  }
  if (xid === 13) return defined({ part: /\b(GPC \d+, TPC \d+)\b/.exec(text)?.[1] });
  if (xid === 74) return defined({ registers: linkRegisters(text) });
  return xid === 154 ? recoveryDetail(text) : {};
}

/** Parses `NVLink: fatal error detected on link 14(0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0)`. */
function linkRegisters(text: string): XidDetails['registers'] {
  const [, link, words] = /\blink (\d{1,3}) ?\(((?:0x[0-9a-f]{1,8}, ?){6}0x[0-9a-f]{1,8})\)/i.exec(text) ?? [];
  return link === undefined || words === undefined ? undefined : { link, words: words.split(',').map(Number) };
}

/** Parses `NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 …)`. Bits 20 to 25 of the first number are the subcode, the second is the status. */
function nvlinkDetail(text: string): NvlinkDetail | undefined {
  const match = /^(\S+) +(?:(non-?fatal)|(?:link )?(fatal))\b(.*)$/i.exec(text);
  if (match === null) return undefined;
  const [, unit = '', , fatal, rest = ''] = match;
  const link = /\bLink (-?\d+)/i.exec(rest)?.[1];
  const [, word, status] = /\((0x[0-9a-f]{1,8})(?:,? (0x[0-9a-f]{1,8}))?/i.exec(rest) ?? [];
  return {
    unit,
    isFatal: fatal !== undefined,
    ...(word !== undefined && { subcode: (Number(word) >>> 20) & 0x3f }),
    ...(status !== undefined && { status: Number(status) }),
    ...(link !== undefined && Number(link) >= 0 && { link: Number(link) }),
  };
}

/** Parses the recovery action. Its text differs between drivers and may contradict the number, which is that of NVML. */
function recoveryDetail(text: string): XidDetails {
  const recoveryAction = RECOVERY_ACTIONS[Number(/\bto (0x[0-9a-f]+)/i.exec(text)?.[1])];
  return defined({ recoveryAction });
}

/** Number, times and text of a record. An Xid event of the library has a number below 0. */
export interface RecordPlace extends Pick<KmsgMessage, 'seq' | 'timeUsec' | 'text'> {
  /** Time on a clock that a change of the wall clock does not affect. It orders lines and reads. Absent when unknown. */
  readonly timeMs?: number;
  /** Wall clock time. Absent when it is equal to `timeMs`. */
  readonly wallMs?: number;
  readonly monotonicMs?: number;
}

/**
 * The lines of one fault. The driver reports most faults in one line. A graphics exception (Xid 13) takes several: what went wrong, registers,
 * and mostly at the end the process. The removal of channels (Xid 45) takes one line for each channel of a process.
 */
export interface XidGroup {
  /** Place of the first line. */
  readonly first: RecordPlace;
  /** Place of the latest line. */
  readonly last: RecordPlace;
  /** The line that tells the cause, with the process of the line that names one. */
  readonly line: XidLine;
  /** Texts of the distinct lines, the leading one first. */
  readonly texts: readonly string[];
  /** No further line belongs to it. */
  readonly isWhole: boolean;
}

const GRAPHICS_EXCEPTION = 13;
const CHANNEL_STOPPED = 43;
const CHANNELS_REMOVED = 45;

/** Longest time between two lines of one fault: the driver writes them in about 1.5 ms each, and a serial console takes 10 ms for one. */
const LONGEST_GAP_MS: Readonly<Record<number, number>> = { [GRAPHICS_EXCEPTION]: 250, [CHANNELS_REMOVED]: 1_000 };
/** The last line of a graphics exception. */
const IS_LAST = /^Graphics Exception: (?:channel|ChID)\b/i;
const IS_REGISTERS = /^Graphics Exception: ESR\b/i;

/** Returns the fault with one more line; undefined when the line begins another fault. */
export function withLine(group: XidGroup, line: XidLine, place: RecordPlace): XidGroup | undefined {
  if (group.isWhole || !isSoon(group, line.xid, place) || !isSameProcess(group.line, line)) return undefined;
  const leads = rankOf(line) > rankOf(group.line);
  const [lead, other] = leads ? [line, group.line] : [group.line, line];
  const texts = [...new Set(leads ? [line.text, ...group.texts] : [...group.texts, line.text])].slice(0, MOST_FAULT_LINES);
  return { first: group.first, last: place, line: withProcess(lead, other), texts, isWhole: isLast(line) };
}

export function newGroup(line: XidLine, place: RecordPlace): XidGroup {
  return { first: place, last: place, line, texts: [line.text], isWhole: LONGEST_GAP_MS[line.xid] === undefined || isLast(line) };
}

/** The line of a stopped channel (Xid 43) names the process of a graphics exception that came just before and names none. */
export function withChannel(group: XidGroup, line: XidLine, place: RecordPlace): XidGroup {
  if (line.xid !== CHANNEL_STOPPED || group.line.xid !== GRAPHICS_EXCEPTION || line.pid === undefined) return group;
  if (group.isWhole || group.line.pid !== undefined || !isSoon(group, GRAPHICS_EXCEPTION, place)) return group;
  return { ...group, line: withProcess(group.line, line), isWhole: true };
}

/** Whether no line can follow any more. `nowMs`: on the clock of {@link RecordPlace.timeMs}. */
export function isOver({ isWhole, last, line }: XidGroup, nowMs: number): boolean {
  return isWhole || last.timeMs === undefined || Math.abs(nowMs - last.timeMs) > (LONGEST_GAP_MS[line.xid] ?? 0);
}

/** Whether a line at this place is too late to belong to the fault. */
export const isBehind = (group: XidGroup, place: RecordPlace): boolean => group.isWhole || !isSoon(group, group.line.xid, place);

/** Longest time for which a fault waits for further lines. */
export const LONGEST_WAIT_MS = Math.max(...Object.values(LONGEST_GAP_MS));

const isSoon = ({ last }: XidGroup, xid: number, place: RecordPlace): boolean =>
  Math.abs(place.timeUsec - last.timeUsec) <= (LONGEST_GAP_MS[xid] ?? 0) * 1_000;

function isSameProcess(a: XidLine, b: XidLine): boolean {
  if (a.causedBy !== b.causedBy || a.isEvent !== b.isEvent) return false;
  return a.pid === b.pid || (a.xid === GRAPHICS_EXCEPTION && (a.pid === undefined || b.pid === undefined));
}

const isLast = ({ xid, text, pid }: XidLine): boolean => xid === GRAPHICS_EXCEPTION && pid !== undefined && IS_LAST.test(text);

/** The cause is in the line that has neither registers nor the channel. */
function rankOf({ text }: XidLine): number {
  if (IS_LAST.test(text)) return 0;
  return IS_REGISTERS.test(text) ? 1 : 2;
}

function withProcess(line: XidLine, { pid, processName }: XidLine): XidLine {
  if (line.pid !== undefined || pid === undefined) return line;
  return { ...line, pid, ...defined({ processName }) };
}
