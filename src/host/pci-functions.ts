import { ConfigHeader } from './config-header.ts';
import { keepableDescriptors } from './descriptors.ts';
import { DirectoryMark } from './directory-mark.ts';
import type { Tree } from './fs/tree.ts';
import { KeptFiles } from './kept-files.ts';
import type { KeptFile, KeptGroup } from './kept-group.ts';
import type { NativeFiles } from './native-files.ts';
import {
  AER_FILES,
  type AerCounters,
  isAsleepState,
  LINK_FILES,
  linkOf,
  type PcieLink,
  parseAerFiles,
  readUpstreamLink,
} from './pci/pcie.ts';
import { TextFiles } from './text-files.ts';

/** What a function tells besides its link. */
export interface PciErrors {
  readonly aer: AerCounters;
  /** False for a card that fell off the bus; absent when unknown, as of one that sleeps. */
  readonly answers?: boolean;
}

/** The same for a function whose link nobody else tells of. */
export interface PciErrorsAndLink extends PciErrors {
  readonly link: PcieLink;
}

const DEVICES = 'bus/pci/devices';
/** Files of one function: counters of errors, power state, configuration, link. */
const FILES = AER_FILES.length + 2 + LINK_FILES.length;

export interface PciFunctionsOptions {
  readonly keepable?: number;
  /** The direct way to the kernel, for which a module is loaded: few files are not worth that. Default: through Node. */
  readonly native?: (() => NativeFiles | undefined) | undefined;
}

/**
 * PCI functions that are asked again and again for their errors and whether they answer. Their files are kept open, within an eighth of
 * the process's descriptors.
 */
export class PciFunctions {
  readonly #sys: Tree;
  readonly #functions = new Map<string, PciFunction>();
  #keepable: number;
  #keeper: KeptFiles;
  /** Of the directory of all functions, whose links are replaced with them. Absent in sysfs, where descriptors fail by themselves. */
  #mark: DirectoryMark | undefined;
  #round: number | undefined;

  constructor(sys: Tree, { keepable = Math.floor(keepableDescriptors() / 4), native = () => undefined }: PciFunctionsOptions = {}) {
    this.#sys = sys;
    this.#keepable = keepable;
    this.#keeper = new KeptFiles(sys, keepable, native);
    this.#mark = this.#markOf(this.#keeper);
  }

  /**
   * `address` as `normalizePciAddress` gives it; `round` is the same number for reads that belong together. The same object as long as
   * nothing changed; undefined where the function is not there. A function that sleeps is not woken: its power state is asked first, and
   * its configuration left alone.
   */
  read(address: string, round: number): PciErrors | undefined {
    return this.#read(address, round, (pci) => pci.read());
  }

  /** As {@link read}, with its link. */
  readWithLink(address: string, round: number): PciErrorsAndLink | undefined {
    return this.#read(address, round, (pci) => pci.readWithLink());
  }

  #read<T>(address: string, round: number, read: (pci: PciFunction) => T | undefined): T | undefined {
    if (round !== this.#round) this.#look();
    this.#round = round;
    const { shortages } = this.#sys;
    const known = this.#functions.get(address);
    const pci = known ?? new PciFunction(this.#sys, this.#keeper, address, this.#functions.size < Math.floor(this.#keepable / FILES));
    const told = read(pci);
    if (told === undefined) {
      pci.close();
      this.#functions.delete(address);
    } else if (known === undefined) this.#functions.set(address, pci);
    this.#keeper.rest();
    if (this.#sys.shortages !== shortages) this.#keepNothing();
    return told;
  }

  /** Gives up what is kept of a function. */
  forget(address: string): void {
    this.#functions.get(address)?.close();
    this.#functions.delete(address);
  }

  /** Descriptors of a tree that was replaced are of other functions. */
  #look(): void {
    if (this.#mark?.renew() === true) this.#forgetAll();
  }

  close(): void {
    this.#forgetAll();
  }

  #markOf({ invalidates, native }: KeptFiles): DirectoryMark | undefined {
    return invalidates ? undefined : new DirectoryMark(this.#sys.path(DEVICES), { native });
  }

  #forgetAll(): void {
    for (const pci of this.#functions.values()) pci.close();
    this.#functions.clear();
  }

  /** When there are no descriptors left, others need them more. */
  #keepNothing(): void {
    if (this.#keepable === 0) return;
    this.close();
    this.#keepable = 0;
    this.#keeper = new KeptFiles(this.#sys, 0);
    this.#mark = this.#markOf(this.#keeper);
  }
}

class PciFunction {
  readonly #sys: Tree;
  readonly #address: string;
  readonly #directory: string;
  readonly #group: KeptGroup;
  readonly #powerState: KeptFile;
  readonly #aer: TextFiles;
  readonly #link: TextFiles;
  readonly #config: ConfigHeader;
  #power: string | undefined;
  #errors: PciErrors | undefined;
  #withLink: PciErrorsAndLink | undefined;
  /** Once it was awake: what the port above tells never changes. */
  #upstream: readonly (string | undefined)[] | undefined;

  constructor(sys: Tree, keeper: KeptFiles, address: string, isConfigKept: boolean) {
    this.#sys = sys;
    this.#address = address;
    this.#directory = `${DEVICES}/${address}`;
    this.#group = keeper.group(this.#directory, [this.#directory]);
    this.#powerState = this.#group.file(`${this.#directory}/power_state`);
    this.#aer = new TextFiles(
      this.#group,
      this.#directory,
      AER_FILES.map(([, file]) => file),
    );
    this.#link = new TextFiles(this.#group, this.#directory, LINK_FILES);
    this.#config = new ConfigHeader(sys, `${this.#directory}/config`, isConfigKept, keeper.native);
  }

  read(): PciErrors | undefined {
    if (this.#group.hasChanged()) this.#config.close();
    this.#power = this.#group.text(this.#powerState).text?.trim();
    return this.#power === undefined && !this.#sys.exists(this.#directory) ? undefined : this.#readErrors();
  }

  readWithLink(): PciErrorsAndLink | undefined {
    const errors = this.read();
    if (errors === undefined) return undefined;
    const before = this.#withLink;
    const isAsleep = isAsleepState(this.#power);
    const isOther = !isAsleep && this.#link.read();
    if (!isOther && before?.link.powerState === this.#power && before !== undefined) {
      if (before.aer === errors.aer && before.answers === errors.answers) return before;
      this.#withLink = { ...errors, link: before.link };
      return this.#withLink;
    }
    if (!isAsleep) this.#upstream ??= readUpstreamLink(this.#sys, this.#address);
    this.#withLink = { ...errors, link: linkOf(this.#power, this.#link.texts(), this.#upstream ?? []) };
    return this.#withLink;
  }

  #readErrors(): PciErrors {
    const answers = isAsleepState(this.#power) ? undefined : this.#config.answers();
    const before = this.#errors;
    const isOther = this.#aer.read();
    if (!isOther && before !== undefined && before.answers === answers) return before;
    const aer = !isOther && before !== undefined ? before.aer : parseAerFiles(this.#aer.texts());
    this.#errors = answers === undefined ? { aer } : { aer, answers };
    return this.#errors;
  }

  close(): void {
    this.#group.close();
    this.#config.close();
  }
}
