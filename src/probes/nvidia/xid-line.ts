import { normalizePciAddress } from '../../host/pci/pci.ts';

/** What the text of some Xids tells beyond their number. */
interface XidDetails {
  /** For 94 and 95: what the driver says of a reset. */
  readonly resetRequired?: boolean;
  readonly nvlink?: NvlinkDetail;
  /** For 154: the number of the new recovery action, as NVML numbers it, and the driver's word for it. */
  readonly recoveryAction?: { readonly action: number; readonly word?: string };
}

/** What the lines of 144 to 150 tell. */
export interface NvlinkDetail {
  readonly unit: string;
  readonly isFatal: boolean;
  readonly subcode?: number;
  /** Absent when the error is of no single link. */
  readonly link?: number;
}

/** One Xid as the driver logs it. What the line does not tell is absent. */
export interface XidLine extends XidDetails {
  readonly kind: 'xid';
  readonly pciAddress: string;
  readonly xid: number;
  /** GPU instance and compute instance of a MIG GPU; absent when the error concerns the whole GPU. */
  readonly gpuInstance?: number;
  readonly computeInstance?: number;
  /** In the host's PID namespace. */
  readonly pid?: number;
  readonly processName?: string;
  /** What follows number and process. */
  readonly text: string;
  readonly causedBy?: number;
}

/** An error of an NVSwitch. */
export interface SwitchLine {
  readonly kind: 'switch';
  readonly pciAddress: string;
  readonly sxid: number;
  /** Absent in the lines that follow with registers. */
  readonly isFatal?: boolean;
  readonly link?: number;
  readonly text: string;
}

/** What the NVIDIA driver says in the kernel log, as far as it concerns health. */
export type NvidiaLine =
  | XidLine
  | SwitchLine
  | { readonly kind: 'identity'; readonly pciAddress: string; readonly uuid: string }
  | { readonly kind: 'lost'; readonly pciAddress: string }
  /** First line of a message of several, which may be that a GPU is lost. */
  | { readonly kind: 'gpu-named'; readonly pciAddress: string }
  /** Last line of that message. */
  | { readonly kind: 'named-gpu-lost' }
  | { readonly kind: 'api-mismatch'; readonly clientVersion: string }
  | { readonly kind: 'driver-loaded'; readonly version?: string }
  /** Any other line of the driver: it ends a message of several lines, unless it is the middle of one. */
  | { readonly kind: 'other'; readonly isMiddle: boolean };

const OWN_LINE = /^\s*(?:NVRM:|nvidia-nvswitch)/;
const XID =
  /^\s*NVRM: Xid \((?:PCI:)?([0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2})(?:\.[0-7])?(?: GPU-I:(\d+)(?: GPU-CI:(\d+))?)?\): (\d{1,5})(?:, *(.*))?$/i;
const IDENTITY = /^\s*NVRM: GPU at PCI:([0-9a-f:.]+): (GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})/i;
const LOST = /^\s*NVRM: GPU (?:at )?(?:PCI:)?([0-9a-f:.]+): GPU has fallen off the bus/i;
const NAMED = /^\s*NVRM: The NVIDIA GPU ([0-9a-f:.]+)(.*)$/i;
const LOST_TAIL = /fallen off the bus/i;
const SWITCH = /^\s*nvidia-nvswitch\d*:? SXid \(PCI:([0-9a-f:.]+)\): (\d{1,6}), *(.*)$/i;
const MISMATCH = /^\s*NVRM: API mismatch: the client has the version ([^\s,]+)/;
const LOADED = /^\s*NVRM: loading NVIDIA UNIX .*Kernel Module(?: for \S+)? +(\d[\d.]*)?/;

/**
 * Reads one record's text, which may hold several lines. Empty for what is not of the NVIDIA driver: the record itself must begin
 * as its lines do, since other parts of the kernel print names that a device or a program chose.
 */
export function parseNvidiaLines(text: string): readonly NvidiaLine[] {
  if (!OWN_LINE.test(text)) return [];
  return text.split('\n').map(parseLine);
}

function parseLine(line: string): NvidiaLine {
  return xidLine(line) ?? lostLine(line) ?? identityLine(line) ?? switchLine(line) ?? nodeLine(line) ?? otherLine(line);
}

function otherLine(line: string): NvidiaLine {
  return { kind: 'other', isMiddle: /NVRM: \(PCI ID:/.test(line) };
}

function identityLine(line: string): NvidiaLine | undefined {
  const [, address = '', uuid = ''] = IDENTITY.exec(line) ?? [];
  const pciAddress = normalizePciAddress(address);
  return pciAddress === undefined ? undefined : { kind: 'identity', pciAddress, uuid: `GPU-${uuid.slice(4).toLowerCase()}` };
}

/** The loss of a GPU without an Xid: one line, or three that older and newer kernels give as one record or as several. */
function lostLine(line: string): NvidiaLine | undefined {
  const lost = normalizePciAddress(LOST.exec(line)?.[1] ?? '');
  if (lost !== undefined) return { kind: 'lost', pciAddress: lost };
  const [, address = '', rest = ''] = NAMED.exec(line) ?? [];
  const named = normalizePciAddress(address);
  if (named !== undefined) return { kind: LOST_TAIL.test(rest) ? 'lost' : 'gpu-named', pciAddress: named };
  return OWN_LINE.test(line) && LOST_TAIL.test(line) ? { kind: 'named-gpu-lost' } : undefined;
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

function nodeLine(line: string): NvidiaLine | undefined {
  const clientVersion = MISMATCH.exec(line)?.[1];
  if (clientVersion !== undefined) return { kind: 'api-mismatch', clientVersion };
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

/** How the driver's texts after a process name begin. A name may hold commas and blanks itself, so these decide where it ends. */
const AFTER_NAME =
  /, (?=(?:Ch(?:annel)?\b|Contained|Uncontained|GPU |Graphics|errorString|Class|intr|engmask|Engine|Shader|MMU|CE|NV|RST))/i;

function splitProcess(rest: string): Process {
  const [whole = '', pid = ''] = /^pid=('?<unknown>'?|\d+)(?:, |$)/i.exec(rest) ?? [];
  if (whole === '') return { text: rest };
  const known = /^\d+$/.test(pid) ? { pid: Number(pid) } : {};
  const afterPid = rest.slice(whole.length);
  if (!afterPid.startsWith('name=')) return { ...known, text: afterPid };
  const name = afterPid.slice('name='.length);
  const cut = AFTER_NAME.exec(name)?.index ?? name.indexOf(', ');
  const processName = cut < 0 ? name : name.slice(0, cut);
  const text = cut < 0 ? '' : name.slice(cut + 2);
  return { ...known, ...(!/^'?<unknown>'?$/i.test(processName) && processName !== '' && { processName }), text };
}

/** Reads the text after number and process for the Xids whose text decides what they mean. */
function xidDetails(xid: number, text: string): XidDetails {
  if (xid === 94 || xid === 95) {
    const words = [...text.matchAll(/\b(?:D-)?RST: (Yes|No)\b/gi)].map(([, word = '']) => word.toLowerCase());
    return words.length === 0 ? {} : { resetRequired: words.includes('yes') };
  }
  if (xid >= 144 && xid <= 150) {
    const nvlink = nvlinkDetail(text);
    return nvlink === undefined ? {} : { nvlink };
  }
  return xid === 154 ? recoveryDetail(text) : {};
}

/** `NETIR_LINK_EVT Fatal XC0 i0 Link 08 (0x004505c6 0x00000000 …)`: the subcode is in bits 20 to 25 of the first word. */
function nvlinkDetail(text: string): NvlinkDetail | undefined {
  const match = /^(\S+) +(?:(non-?fatal)|(?:link )?(fatal))\b(.*)$/i.exec(text);
  if (match === null) return undefined;
  const [, unit = '', , fatal, rest = ''] = match;
  const link = /\bLink (-?\d+)/i.exec(rest)?.[1];
  const word = /\((0x[0-9a-f]+)/i.exec(rest)?.[1];
  return {
    unit,
    isFatal: fatal !== undefined,
    ...(word !== undefined && { subcode: (Number(word) >>> 20) & 0x3f }),
    ...(link !== undefined && Number(link) >= 0 && { link: Number(link) }),
  };
}

/** Words differ between drivers and sometimes contradict the number, which is NVML's. */
function recoveryDetail(text: string): XidDetails {
  const match = /\bto (0x[0-9a-f]+)(?: \(([^)]*)\))?/i.exec(text);
  if (match === null) return {};
  const [, action = '', word] = match;
  return { recoveryAction: { action: Number(action), ...(word !== undefined && { word }) } };
}
