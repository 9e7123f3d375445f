import { chmodSync, closeSync, mkdirSync, openSync, renameSync, symlinkSync, unlinkSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { SimulatedHardware } from '../model/simulated.ts';

/**
 * Updates a directory tree from hardware that is described as plain data. Writes only changed files. Files change in place, like the
 * kernel's files, so an open descriptor sees the new value.
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

  /** Writes in one call and never shorter than before, so that no reader sees a partial value. Empty lines fill the rest. */
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

  /** Replaces a command or its output as a whole file. */
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
