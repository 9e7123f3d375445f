import { DirectoryMark, type MarkSettings } from './directory-mark.ts';
import type { Tree } from './fs/tree.ts';

/** Marks of the directories that some files lie in and that lead to them. */
export class DirectoryMarks {
  readonly #tree: Tree;
  readonly #directories: readonly string[];
  #marks: readonly DirectoryMark[] = [];
  /** Of the directories, where they were last looked up. */
  #identity = '';

  constructor(tree: Tree, directories: readonly string[]) {
    this.#tree = tree;
    this.#directories = directories;
  }

  /** Takes note of what the directories are now. One that is absent needs no mark of its own: the one above it changes when it appears. */
  look(settings: MarkSettings): void {
    this.close();
    this.#identity = this.#identify();
    this.#marks = this.#directories
      .filter((path) => this.#tree.exists(path))
      .map((path) => new DirectoryMark(this.#tree.path(path), settings));
  }

  /** True when names came, went or were replaced in one of them since the last time, or may have. */
  renew(): boolean {
    let changed = false;
    for (let at = 0; at < this.#marks.length; at += 1) changed = (this.#marks[at] as DirectoryMark).renew() || changed;
    return changed;
  }

  /** True when another directory lies under one of the paths, which one that is kept open does not show. */
  areOthers(): boolean {
    return this.#identify() !== this.#identity;
  }

  close(): void {
    for (const mark of this.#marks) mark.close();
    this.#marks = [];
  }

  #identify(): string {
    return this.#directories.map((path) => this.#tree.identity(path)).join();
  }
}
