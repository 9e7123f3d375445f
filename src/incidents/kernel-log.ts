import type { Clock } from '../host/clock.ts';
import { JobThread, moduleBeside } from '../host/job-thread.ts';
import type { KmsgMessage } from '../host/kernel-log/reader.ts';
import { defined } from '../model/defined.ts';
import type { Device } from '../model/device.ts';
import { oneLine } from '../model/one-line.ts';
import type { KernelLine, KernelPart } from './record.ts';

/** One job of the thread. It answers with one {@link KernelPart} for each device. */
export interface KernelSearch {
  readonly path: string;
  readonly procfs: string;
  /** Folders of the messages of kernels that crashed. */
  readonly crashes: readonly string[];
  readonly devices: readonly DeviceMarks[];
}

/** `path`: undefined when the log is not read. */
type KernelPaths = Pick<KernelSearch, 'procfs' | 'crashes'> & { readonly path: string | undefined };

/** Searches the kernel log in a thread, which ends after the search. Devices that fail together share one search. */
export class KernelLog {
  readonly #paths: KernelPaths;
  readonly #thread: JobThread<KernelSearch, readonly KernelPart[]>;
  #waiting: { readonly marks: DeviceMarks; resolve(part: KernelPart): void }[] = [];
  #isClosed = false;

  constructor(paths: KernelPaths, clock: Clock) {
    this.#paths = paths;
    this.#thread = new JobThread({
      ...{ name: 'kernel-log', entry: moduleBeside(import.meta.url, 'kernel-worker'), clock, memoryMib: 64 },
      // The log can only be read from its begin, so all of it is read. A usual log takes some milliseconds.
      deadlineMs: 5_000,
      idleMs: 0,
    });
  }

  /** The last lines about a device. Never rejects: a part without lines says why. */
  linesOf(marks: DeviceMarks): Promise<KernelPart> {
    if (this.#paths.path === undefined) return Promise.resolve(unread('path.kmsg is empty, so the kernel log is not read'));
    return new Promise((resolve) => {
      this.#waiting.push({ marks, resolve });
      // The other devices of this snapshot come in the same turn.
      if (this.#waiting.length === 1) queueMicrotask(() => void this.#search());
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#thread.close();
  }

  async #search(): Promise<void> {
    const asked = this.#waiting.splice(0);
    const { path = '', ...paths } = this.#paths;
    const made = this.#isClosed ? undefined : await this.#thread.ask({ path, ...paths, devices: asked.map(({ marks }) => marks) });
    const why =
      made === undefined || this.#isClosed
        ? 'the agent ended before it read the kernel log'
        : `reading ${path} failed: ${'reason' in made ? made.reason : 'it gave no answer'}`;
    for (const [at, { resolve }] of asked.entries()) resolve((made !== undefined && 'answer' in made && made.answer[at]) || unread(why));
  }
}

const unread = (problem: string): KernelPart => ({ lines: [], problem });

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
    ...defined({ address: pciAddress }),
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
  readonly #kept: { readonly isAbout: ReturnType<typeof lineMatcher>; lines: KernelLine[]; crash: string[]; earlier: number }[];

  constructor(marks: readonly DeviceMarks[]) {
    this.#kept = marks.map((one) => ({ isAbout: lineMatcher(one), lines: [], crash: [], earlier: 0 }));
  }

  take(message: KmsgMessage): void {
    if (message.origin !== 'kernel' && message.origin !== 'piece') return;
    for (const kept of this.#kept) {
      if (!kept.isAbout(message)) continue;
      kept.lines.push(lineOf(message));
      if (kept.lines.length <= MOST_LINES) continue;
      kept.lines.shift();
      kept.earlier += 1;
    }
  }

  /** A line of the kernel that crashed. */
  takeOfCrash(text: string): void {
    for (const { isAbout, crash } of this.#kept) {
      if (!isAbout({ text })) continue;
      crash.push(shortened(text));
      if (crash.length > MOST_LINES) crash.shift();
    }
  }

  /** The lines of each device, in the order of the marks. */
  parts(problem: string | undefined): readonly KernelPart[] {
    return this.#kept.map(({ lines, crash, earlier }) =>
      defined({ lines, crash: crash.length === 0 ? undefined : crash, earlier: earlier === 0 ? undefined : earlier, problem }),
    );
  }
}

const shortened = (text: string): string => [...oneLine(text.slice(0, 4 * MOST_CHARACTERS)).trim()].slice(0, MOST_CHARACTERS).join('');

function lineOf({ timeMs, text }: KmsgMessage): KernelLine {
  return { ...(timeMs === undefined ? {} : { time: new Date(timeMs).toISOString() }), text: shortened(text) };
}
