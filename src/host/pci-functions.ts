import { ConfigHeader } from './config-header.ts';
import { keepableDescriptors } from './descriptors.ts';
import { KeptFiles } from './kept-files.ts';
import type { KeptFile, KeptGroup } from './kept-group.ts';
import type { NativeFiles } from './native-files.ts';
import { AER_FILES, type AerCounters, isAsleepState, parseAerFiles } from './pcie.ts';
import type { ReadResult, Tree } from './tree.ts';

/** What a function tells besides its link. */
export interface PciErrors {
  readonly aer: AerCounters;
  /** False for a card that fell off the bus; absent when unknown, as of one that sleeps. */
  readonly answers?: boolean;
}

const DEVICES = 'bus/pci/devices';
/** Files of one function: counters of errors, power state, configuration. */
const FILES = AER_FILES.length + 2;

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
  /** The directory of all functions, whose links are replaced with them. */
  #links: KeptGroup;
  #identity: string | undefined;

  constructor(sys: Tree, { keepable = Math.floor(keepableDescriptors() / 4), native = () => undefined }: PciFunctionsOptions = {}) {
    this.#sys = sys;
    this.#keepable = keepable;
    this.#keeper = new KeptFiles(sys, keepable, native);
    this.#links = this.#keeper.group(DEVICES, [DEVICES]);
  }

  /**
   * `address` as `normalizePciAddress` gives it. The same object as long as nothing changed; undefined where the function is not there.
   * A function that sleeps is not woken: its power state is asked first, and its configuration left alone.
   */
  read(address: string): PciErrors | undefined {
    const { shortages } = this.#sys;
    const known = this.#functions.get(address);
    const pci = known ?? new PciFunction(this.#sys, this.#keeper, address, this.#functions.size < Math.floor(this.#keepable / FILES));
    const errors = pci.read();
    if (errors === undefined) {
      pci.close();
      this.#functions.delete(address);
    } else if (known === undefined) this.#functions.set(address, pci);
    this.#keeper.rest();
    if (this.#sys.shortages !== shortages) this.#keepNothing();
    return errors;
  }

  /**
   * To be called before each round of reads: descriptors of a tree that was replaced are of other functions. In sysfs they fail by
   * themselves.
   */
  look(): void {
    const identity = this.#sys.identity(DEVICES);
    const isReplaced = this.#links.hasChanged() || identity !== this.#identity;
    this.#identity = identity;
    if (isReplaced) this.#forget();
  }

  close(): void {
    this.#forget();
    this.#links.close();
  }

  #forget(): void {
    for (const pci of this.#functions.values()) pci.close();
    this.#functions.clear();
  }

  /** When there are no descriptors left, others need them more. */
  #keepNothing(): void {
    if (this.#keepable === 0) return;
    this.close();
    this.#keepable = 0;
    this.#keeper = new KeptFiles(this.#sys, 0);
    this.#links = this.#keeper.group(DEVICES, [DEVICES]);
  }
}

class PciFunction {
  readonly #sys: Tree;
  readonly #directory: string;
  readonly #group: KeptGroup;
  readonly #powerState: KeptFile;
  readonly #files: readonly KeptFile[];
  readonly #config: ConfigHeader;
  /** By file, as last read: the same object as long as it says the same. */
  readonly #said: ReadResult[] = [];
  #errors: PciErrors | undefined;

  constructor(sys: Tree, keeper: KeptFiles, address: string, isConfigKept: boolean) {
    this.#sys = sys;
    this.#directory = `${DEVICES}/${address}`;
    this.#group = keeper.group(this.#directory, [this.#directory]);
    this.#powerState = this.#group.file(`${this.#directory}/power_state`);
    this.#files = AER_FILES.map(([, file]) => this.#group.file(`${this.#directory}/${file}`));
    this.#config = new ConfigHeader(sys, `${this.#directory}/config`, isConfigKept, keeper.native);
  }

  read(): PciErrors | undefined {
    if (this.#group.hasChanged()) this.#config.close();
    const powerState = this.#group.text(this.#powerState).text;
    if (powerState === undefined && !this.#sys.exists(this.#directory)) return undefined;
    const answers = isAsleepState(powerState?.trim()) ? undefined : this.#config.answers();
    const before = this.#errors;
    const isOther = this.#readFiles();
    if (!isOther && before?.answers === answers && before !== undefined) return before;
    const aer = parseAerFiles(this.#said.map(({ text }) => text));
    this.#errors = answers === undefined ? { aer } : { aer, answers };
    return this.#errors;
  }

  /** True when one of them says something else. */
  #readFiles(): boolean {
    let isOther = false;
    for (let at = 0; at < this.#files.length; at += 1) {
      const result = this.#group.text(this.#files[at] as KeptFile);
      if (isSame(result, this.#said[at])) continue;
      this.#said[at] = result;
      isOther = true;
    }
    return isOther;
  }

  close(): void {
    this.#group.close();
    this.#config.close();
  }
}

/** Why a file cannot be read does not matter. */
const isSame = (a: ReadResult, b: ReadResult | undefined): boolean =>
  a === b || (b !== undefined && a.text === undefined && b.text === undefined);
