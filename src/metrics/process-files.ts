import { openSync, readSync } from 'node:fs';

/** Longer than what the kernel tells in any of them. */
const LENGTH = 8_192;

/**
 * The process's own files below `/proc/self`, which never hang. Kept open: to read one again is one system call, and works when no
 * descriptor is left.
 */
export class ProcessFiles {
  readonly #bytes = Buffer.allocUnsafeSlow(LENGTH);
  readonly #descriptors = new Map<string, number>();

  /** Empty where there is no procfs. */
  text(name: string): string {
    try {
      const length = readSync(this.#descriptor(name), this.#bytes, 0, LENGTH, 0);
      return this.#bytes.toString('latin1', 0, length);
    } catch {
      return '';
    }
  }

  #descriptor(name: string): number {
    const known = this.#descriptors.get(name);
    if (known !== undefined) return known;
    const descriptor = openSync(`/proc/self/${name}`, 'r');
    this.#descriptors.set(name, descriptor);
    return descriptor;
  }
}
