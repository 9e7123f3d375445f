import { chmodSync, closeSync, mkdirSync, openSync, renameSync, symlinkSync, unlinkSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { SimulatedHardware } from '../model/simulated.ts';

/**
 * Keeps a directory tree in step with hardware described as plain data, writing only what changed. Files change in place, as
 * the kernel's do: a descriptor that is kept open sees the new value.
 */
export class TreeWriter {
  readonly #root: string;
  readonly #written = new Map<string, string>();
  readonly #sizes = new Map<string, number>();
  readonly #links = new Map<string, string>();

  constructor(root: string) {
    this.#root = root;
  }

  apply(hardware: Pick<SimulatedHardware, 'files' | 'links'>): void {
    for (const [path, text] of Object.entries(hardware.files)) {
      if (this.#written.get(path) === text) continue;
      if (path.startsWith('bin/')) this.#replace(path, text);
      else if (this.#written.has(path)) this.#overwrite(path, text);
      else this.#create(path, text);
      this.#written.set(path, text);
    }
    for (const [path, target] of Object.entries(hardware.links)) {
      const before = this.#links.get(path);
      if (before === target) continue;
      if (before !== undefined) unlinkSync(join(this.#root, path));
      symlinkSync(target, this.#place(path));
      this.#links.set(path, target);
    }
  }

  #create(path: string, text: string): void {
    writeFileSync(this.#place(path), text);
    this.#sizes.set(path, Buffer.byteLength(text));
  }

  /** One write, never shorter than before, so that no reader sees half of a value: empty lines fill up the rest. */
  #overwrite(path: string, text: string): void {
    const length = Math.max(Buffer.byteLength(text), this.#sizes.get(path) ?? 0);
    const fd = openSync(join(this.#root, path), 'r+');
    try {
      writeSync(fd, text + '\n'.repeat(length - Buffer.byteLength(text)), 0);
    } finally {
      closeSync(fd);
    }
    this.#sizes.set(path, length);
  }

  /** Commands and what they print are replaced whole. */
  #replace(path: string, text: string): void {
    const full = this.#place(path);
    writeFileSync(`${full}.new`, text);
    chmodSync(`${full}.new`, 0o755);
    renameSync(`${full}.new`, full);
  }

  #place(path: string): string {
    const full = join(this.#root, path);
    mkdirSync(dirname(full), { recursive: true });
    return full;
  }
}
