import type { Tree } from '../../host/fs/tree.ts';

/** Open files of one process on render nodes. */
export interface OpenNodes {
  readonly pid: number;
  readonly files: readonly { readonly fd: string; readonly renderMinor: number }[];
}

/** Time after which the open files of a process that uses a GPU are listed again. */
const AGAIN_MS = 30_000;

/**
 * Finds the processes that have a render node open. Listing the open files of all processes is expensive, so one refresh lists only some
 * of them: new processes first, then the others in turn. A process that was found is listed again every 30 seconds.
 */
export class ClientSearch {
  readonly #proc: Tree;
  readonly #found = new Map<number, { readonly nodes: OpenNodes; readonly atMs: number }>();
  #seen = new Set<number>();
  #rest: number[] = [];
  /** True when the last search that listed a process was refused for all of them. */
  isRefused = false;

  constructor(proc: Tree) {
    this.#proc = proc;
  }

  /** `first`: processes that are listed even when the search is off, because they are known to use a GPU. */
  find(nowMs: number, most: number, first: readonly number[]): readonly OpenNodes[] {
    const names = most === 0 ? first.map(String) : this.#proc.list('.');
    const present = new Set(names.filter((name) => /^[1-9]\d{0,9}$/.test(name)).map(Number));
    for (const pid of this.#found.keys()) if (!present.has(pid)) this.#found.delete(pid);
    for (const pid of this.#seen) if (!present.has(pid)) this.#seen.delete(pid);
    const outcomes = this.#due(present, nowMs, most, first).map((pid) => this.#list(pid, nowMs));
    if (outcomes.length > 0) this.isRefused = outcomes.includes('refused') && !outcomes.includes('listed');
    return [...this.#found.values()].map(({ nodes }) => nodes).sort((a, b) => a.pid - b.pid);
  }

  /** Forgets the files of a process, because one of them could not be read. */
  forget(pid: number): void {
    this.#found.delete(pid);
    this.#seen.delete(pid);
  }

  #due(present: ReadonlySet<number>, nowMs: number, most: number, first: readonly number[]): readonly number[] {
    const old = [...this.#found].filter(([, { atMs }]) => nowMs - atMs >= AGAIN_MS).map(([pid]) => pid);
    const wanted = first.filter((pid) => present.has(pid) && !this.#seen.has(pid));
    const fresh = [...present].filter((pid) => !this.#seen.has(pid));
    if (this.#rest.length === 0) this.#rest = [...present];
    const chosen = new Set([...old, ...wanted, ...fresh.slice(0, most)]);
    const left = most - Math.min(fresh.length, most);
    for (const pid of this.#rest.splice(0, left)) if (present.has(pid)) chosen.add(pid);
    return [...chosen];
  }

  #list(pid: number, atMs: number): 'listed' | 'refused' | 'gone' {
    const { names, error } = this.#proc.listing(`${pid}/fd`);
    if (names === undefined) {
      this.#found.delete(pid);
      if (error !== 'EACCES' && error !== 'EPERM') return 'gone';
      this.#seen.add(pid);
      return 'refused';
    }
    this.#seen.add(pid);
    const files = names.flatMap((fd) => {
      const minor = /^\/dev\/dri\/renderD(\d{1,6})$/.exec(this.#proc.link(`${pid}/fd/${fd}`) ?? '')?.[1];
      return minor === undefined ? [] : [{ fd, renderMinor: Number(minor) }];
    });
    if (files.length === 0) this.#found.delete(pid);
    else this.#found.set(pid, { nodes: { pid, files: files.slice(0, MOST_FILES) }, atMs });
    return 'listed';
  }
}

/** Most open files of one process that are read. */
const MOST_FILES = 64;
