import type { Clock } from '../host/clock.ts';
import { Tree } from '../host/fs/tree.ts';
import type { Roots } from '../host/host.ts';

/** Families ask one after the other at each refresh: one look is enough for all of them. */
const FRESH_MS = 1_000;

/**
 * What a driver that is loaded or hardware that is plugged in leaves on a machine, whatever its family: names of kernel modules, device
 * classes and PCI functions. To look costs a thousandth of starting a probe's thread; the kernel tells it from memory, so it cannot hang.
 */
export class Surroundings {
  readonly #sys: Tree;
  readonly #proc: Tree;
  readonly #clock: Clock;
  readonly #places: readonly string[];
  #seen: { readonly text: string; readonly atMs: number } | undefined;

  /** `traces`: further directories below `/sys`, in which nothing but what families read comes and goes. */
  constructor({ sysfs, procfs }: Pick<Roots, 'sysfs' | 'procfs'>, clock: Clock, traces: readonly string[] = []) {
    this.#sys = new Tree(sysfs);
    this.#proc = new Tree(procfs);
    this.#clock = clock;
    this.#places = ['class', 'bus/pci/devices', ...traces];
  }

  /** Equal for two moments between which nothing came or went. */
  look(): string {
    const atMs = this.#clock.monotonic();
    if (this.#seen !== undefined && atMs - this.#seen.atMs < FRESH_MS) return this.#seen.text;
    const shortages = this.#shortages;
    const text = this.#text();
    // What cannot be opened for want of descriptors has not gone.
    if (this.#seen === undefined || shortages === this.#shortages) this.#seen = { text, atMs };
    return this.#seen.text;
  }

  get #shortages(): number {
    return this.#sys.shortages + this.#proc.shortages;
  }

  #text(): string {
    // One line per module, of which the first word is its name; the rest changes with its use.
    const modules = (this.#proc.text('modules') ?? '').replaceAll(/ .*/g, '');
    return [modules, ...this.#places.map((path) => this.#sys.list(path).join('\n'))].join('\n\n');
  }
}
