import { type BigIntStats, statSync } from 'node:fs';
import { oneLine, shortened } from '../../model/one-line.ts';
import { readStart } from '../fs/tree.ts';
import type { Host } from '../host.ts';

/** Where distributions keep the database of PCI ids, below `/usr/share`. */
const FILES = ['misc/pci.ids', 'hwdata/pci.ids'] as const;
/** Largest part of the file that is read. It has about 1.5 MB, in the order of its vendors. */
const MOST_BYTES = 4 * 2 ** 20;
const MOST_NAME_BYTES = 100;

/** Four hexadecimal digits each, in lower case. */
export interface PciCard {
  readonly device: string;
  /** Vendor and device of the subsystem, with a space between. */
  readonly subsystem?: string;
}

/** Names of one card. A name that the database does not have is absent. */
export interface PciNames {
  readonly device?: string;
  readonly subsystem?: string;
}

/**
 * Names of the cards of one vendor, from the database of PCI ids of the host, where it has one. The file is read once for each kind of
 * card, and again when it changes. A capture has only the lines of the cards that were asked for. Source of the format: pci.ids(5).
 */
export class PciDatabase {
  readonly #host: Host;
  readonly #vendor: string;
  readonly #names = new Map<string, PciNames>();
  #mark: string | undefined;

  /** `vendor`: four hexadecimal digits in lower case. */
  constructor(host: Host, vendor: string) {
    this.#host = host;
    this.#vendor = vendor;
  }

  of(card: PciCard): PciNames {
    const file = this.#file();
    if (file === undefined) return {};
    const key = `\t${card.device}  \n\t\t${card.subsystem}  `;
    const known = this.#names.get(key);
    if (known !== undefined) return known;
    const guard = this.#host.share?.guard;
    // One file must not blind the family: after a read that hung, there are no names.
    if (guard?.enter(file, 'call') !== undefined) return {};
    try {
      const names = namesIn(readStart(file, MOST_BYTES), this.#vendor, card);
      this.#names.set(key, names);
      this.#host.observe?.({ kind: 'file', path: file, bytes: Buffer.from(this.#extract()) });
      return names;
    } catch {
      return {};
    } finally {
      guard?.leave();
    }
  }

  /** Path of the database; undefined without one. What was read of another file is forgotten. */
  #file(): string | undefined {
    const { share, observe } = this.#host;
    if (share === undefined) return undefined;
    const paths = FILES.map((name) => share.path(name));
    const [found] = paths.flatMap((path) => {
      const stats = statsOf(path);
      return stats?.isFile() === true ? [{ path, mark: `${path} ${stats.dev}:${stats.ino}:${stats.size}:${stats.mtimeNs}` }] : [];
    });
    if (found?.mark !== this.#mark) {
      this.#mark = found?.mark;
      this.#names.clear();
      for (const path of paths) observe?.({ kind: 'absent', path });
    }
    return found?.path;
  }

  /** What a capture keeps of the file. */
  #extract(): string {
    const cards = [...this.#names].map(([key, { device = '', subsystem = '' }]) => {
      const [ofDevice, ofSubsystem] = key.split('\n');
      return device === '' ? '' : `${ofDevice}${device}\n${subsystem === '' ? '' : `${ofSubsystem}${subsystem}\n`}`;
    });
    return `${this.#vendor}  \n${cards.join('')}`;
  }
}

function statsOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true });
  } catch {
    return undefined;
  }
}

/** `<vendor>  <name>`, below it `\t<device>  <name>`, and below that `\t\t<subvendor> <subdevice>  <name>`. */
function namesIn(bytes: Buffer, vendor: string, { device, subsystem }: PciCard): PciNames {
  const begin = bytes.indexOf(`\n${vendor}  `) + 1;
  const lines = bytes.toString('utf8', begin).split('\n');
  if (lines.shift()?.startsWith(`${vendor}  `) !== true) return {};
  const end = lines.findIndex((line) => line !== '' && !/^[\t#]/.test(line));
  const section = lines.slice(0, end < 0 ? undefined : end);
  const at = section.findIndex((line) => line.startsWith(`\t${device}  `));
  if (at < 0) return {};
  const next = section.findIndex((line, index) => index > at && /^\t(?!\t)/.test(line));
  const below = section.slice(at + 1, next < 0 ? undefined : next).find((line) => line.startsWith(`\t\t${subsystem}  `));
  return { ...named('device', section[at]), ...named('subsystem', below) };
}

/** The name behind the ids of a line. */
function named(key: keyof PciNames, line = ''): PciNames {
  const name = shortened(oneLine(line.slice(line.indexOf('  ') + 2)).trim(), MOST_NAME_BYTES);
  return name === '' ? {} : { [key]: name };
}
