import { chmodSync, closeSync, mkdirSync, openSync, renameSync, symlinkSync, truncateSync, writeFileSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { SimulatedHardware } from './family-simulation.ts';

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
      else if (this.#links.delete(path)) this.#unlink(path, text);
      else if (this.#written.has(path)) this.#overwrite(path, text);
      else this.#create(path, text);
      this.#written.set(path, text);
    }
    for (const [path, target] of Object.entries(hardware.links)) {
      if (this.#links.get(path) === target) continue;
      this.#link(path, target);
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

  /** Replaces the file of a command or of its output. */
  #replace(path: string, text: string): void {
    const full = this.#place(path);
    writeFileSync(`${full}.new`, text);
    chmodSync(`${full}.new`, 0o755);
    renameSync(`${full}.new`, full);
  }

  /** Replaces what is there in one step. Who has a file open reads nothing of it any more, as of a file that the kernel removed. */
  #link(path: string, target: string): void {
    const full = this.#place(path);
    symlinkSync(target, `${full}.new`);
    if (this.#written.delete(path)) truncateSync(full, 0);
    renameSync(`${full}.new`, full);
  }

  /** Replaces a link by a file. */
  #unlink(path: string, text: string): void {
    const full = this.#place(path);
    writeFileSync(`${full}.new`, text);
    renameSync(`${full}.new`, full);
    this.#sizes.set(path, Buffer.byteLength(text));
  }

  #place(path: string): string {
    const full = join(this.#root, path);
    mkdirSync(dirname(full), { recursive: true });
    return full;
  }
}
