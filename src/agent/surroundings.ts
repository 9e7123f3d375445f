import type { Clock } from '../host/clock.ts';
import type { Roots } from '../host/host.ts';
import { Tree } from '../host/tree.ts';

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
  #seen: { readonly text: string; readonly atMs: number } | undefined;

  constructor({ sysfs, procfs }: Pick<Roots, 'sysfs' | 'procfs'>, clock: Clock) {
    this.#sys = new Tree(sysfs);
    this.#proc = new Tree(procfs);
    this.#clock = clock;
  }

  /** Equal for two moments between which nothing came or went. */
  look(): string {
    const atMs = this.#clock.monotonic();
    if (this.#seen === undefined || atMs - this.#seen.atMs >= FRESH_MS) this.#seen = { text: this.#text(), atMs };
    return this.#seen.text;
  }

  #text(): string {
    // One line per module, of which the first word is its name; the rest changes with its use.
    const modules = (this.#proc.text('modules') ?? '').replaceAll(/ .*/g, '');
    return [modules, ...['class', 'bus/pci/devices'].map((path) => this.#sys.list(path).join('\n'))].join('\n\n');
  }
}
