import type { KmsgMessage } from '../host/kernel-log/reader.ts';
import { defined } from '../model/defined.ts';
import type { Device } from '../model/device.ts';
import { oneLine } from '../model/one-line.ts';
import type { KernelLine, KernelPart } from './record.ts';

/** Texts by which a line of the kernel log names a device. Plain data, because a thread searches the log. */
export interface DeviceMarks {
  /** PCI address of the device: `0000:3b:00.0`. */
  readonly address?: string;
  /** Addresses of the bridges above the device. Only lines about the link or PCIe errors count for them. */
  readonly ports: readonly string[];
  /** Names: `card0`, `eth0`, a UUID. */
  readonly names: readonly string[];
}

const MOST_LINES = 50;
const MOST_CHARACTERS = 500;
/** Shorter names, such as an index, are words of many lines. */
const SHORTEST_NAME = 3;
const ADDRESS = /^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$/;
const ABOUT_LINK = /\bAER\b|PCIe Bus Error|pciehp|Link (?:Down|Up)|DPC/i;

export function marksOf({ id, uuid, netdevs = [], pciAddress, pciPath = '' }: Device): DeviceMarks {
  const names = [id, ...(uuid === undefined ? [] : [uuid]), ...netdevs];
  return {
    ...(pciAddress === undefined ? {} : { address: pciAddress }),
    ports: pciPath.split('/').filter((part) => ADDRESS.test(part) && part !== pciAddress),
    names: [...new Set(names)].filter((name) => name.length >= SHORTEST_NAME && /[a-z]/i.test(name) && name !== pciAddress),
  };
}

/** Returns the test whether a record is about the device. */
export function lineMatcher({ address, ports, names }: DeviceMarks): (record: Pick<KmsgMessage, 'text' | 'device'>) => boolean {
  const own = [...(address === undefined ? [] : addressForms(address)), ...names.map((name) => `(?<![\\w-])${escaped(name)}(?![\\w-])`)];
  const named = own.length === 0 ? undefined : new RegExp(own.join('|'), 'i');
  const above = ports.length === 0 ? undefined : new RegExp(ports.map((port) => `(?<![\\w:])${escaped(port)}(?!\\w)`).join('|'), 'i');
  const subject = address === undefined ? undefined : `+pci:${address}`;
  return ({ text, device }) =>
    (device !== undefined && device === subject) ||
    named?.test(text) === true ||
    (above?.test(`${text} ${device?.replace('+pci:', '') ?? ''}`) === true && ABOUT_LINK.test(text));
}

/** The address with and without its domain; without its function as some drivers write it, with a domain of any width. */
function addressForms(address: string): readonly string[] {
  const [domain = '', bus = '', rest = ''] = address.split(':');
  const [slot = ''] = rest.split('.');
  const isFirstDomain = /^0+$/.test(domain);
  return [
    `(?<![\\w:])${escaped(address)}(?!\\w)`,
    ...(isFirstDomain ? [`(?<![\\w:])${escaped(`${bus}:${rest}`)}(?!\\w)`] : []),
    `PCI:0*${domain.replace(/^0+/, '')}:${bus}:${slot}(?![\\w:])`,
  ];
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Keeps the last lines about each device while a log is read once. Only the kernel's own: a process may have the name of a device. */
export class LineCollector {
  readonly #kept: { readonly isAbout: ReturnType<typeof lineMatcher>; lines: KernelLine[]; earlier: number }[];

  constructor(marks: readonly DeviceMarks[]) {
    this.#kept = marks.map((one) => ({ isAbout: lineMatcher(one), lines: [], earlier: 0 }));
  }

  take(message: KmsgMessage): void {
    if (message.origin !== 'kernel') return;
    for (const kept of this.#kept) {
      if (!kept.isAbout(message)) continue;
      kept.lines.push(lineOf(message));
      if (kept.lines.length <= MOST_LINES) continue;
      kept.lines.shift();
      kept.earlier += 1;
    }
  }

  /** The lines of each device, in the order of the marks. */
  parts(problem: string | undefined): readonly KernelPart[] {
    return this.#kept.map(({ lines, earlier }) => defined({ lines, earlier: earlier === 0 ? undefined : earlier, problem }));
  }
}

function lineOf({ timeMs, text }: KmsgMessage): KernelLine {
  const line = [...oneLine(text.slice(0, 4 * MOST_CHARACTERS)).trim()].slice(0, MOST_CHARACTERS).join('');
  return { ...(timeMs === undefined ? {} : { time: new Date(timeMs).toISOString() }), text: line };
}
