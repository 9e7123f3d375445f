import type { Tree } from '../../host/fs/tree.ts';
import { readDriverFiles } from './driver-files.ts';
import type { Interface, LinkReply, LinkSource } from './link-source.ts';
import { hasCounted, type Traffic } from './traffic.ts';
import type { VirtualFunction } from './virtual-function.ts';

/** Where the counters of the virtual functions of one physical function come from. */
type CounterSource = 'kernel' | 'files';

export interface CardReadResult {
  /** Keyed by number. */
  readonly functions: ReadonlyMap<number, VirtualFunction>;
  readonly problem?: LinkReply['problem'];
}

/**
 * The virtual functions of one physical function, as its driver tells them.
 *
 * The kernel answers with counters of 0 also when the driver has none. So its counters are believed from the first one that is not 0. The
 * source then stays the same, because two sources can count from different times.
 */
export class Card {
  readonly #sys: Tree;
  readonly #directory: string;
  #source: CounterSource | undefined;
  /** Numbers of functions that have counted. Counters that all fall to 0 later are a failed question to the firmware. */
  readonly #counted = new Set<number>();
  #count = 0;

  /** `directory`: directory of the physical function on the PCI bus. */
  constructor(sys: Tree, directory: string) {
    this.#sys = sys;
    this.#directory = directory;
  }

  /** `one` is the interface of the physical function; absent when the host does not have it. `numbers`: the present functions. */
  async read(source: LinkSource, one: Interface | undefined, numbers: readonly number[]): Promise<CardReadResult> {
    if (numbers.length !== this.#count) this.#counted.clear();
    this.#count = numbers.length;
    const reply: LinkReply = one === undefined || source.isOff ? {} : await source.ask(one);
    const fromParent = new Map((reply.functions ?? []).map((fn) => [fn.number, fn]));
    if (this.#source === undefined && [...fromParent.values()].some(({ traffic }) => traffic !== undefined && hasCounted(traffic)))
      this.#source = 'kernel';
    const functions = new Map<number, VirtualFunction>();
    for (const number of numbers) {
      const { traffic: counted, ...settings } = fromParent.get(number) ?? { number };
      const traffic = this.#source === 'kernel' ? this.#believed(number, counted) : this.#fromFiles(number, one?.name);
      functions.set(number, { ...settings, ...(traffic !== undefined && { traffic }) });
    }
    return { functions, ...(reply.problem !== undefined && { problem: reply.problem }) };
  }

  #believed(number: number, traffic: Traffic | undefined): Traffic | undefined {
    if (traffic === undefined) return undefined;
    if (hasCounted(traffic)) this.#counted.add(number);
    else if (this.#counted.has(number)) return undefined;
    return traffic;
  }

  #fromFiles(number: number, interfaceName: string | undefined): Traffic | undefined {
    const traffic = readDriverFiles(this.#sys, this.#directory, interfaceName, number);
    if (traffic !== undefined) this.#source = 'files';
    return traffic;
  }
}
