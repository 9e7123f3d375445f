import type { Tree } from '../../host/fs/tree.ts';

/** Open files of one process on render nodes. */
export interface OpenNodes {
  readonly pid: number;
  readonly files: readonly { readonly fd: string; readonly renderMinor: number }[];
}

/** Time between two searches. */
const SEARCH_MS = 30_000;
/** Time after which the open files of a process that uses a GPU are listed again. */
const AGAIN_MS = 60_000;
/** Most open files of one process that are read. */
const MOST_FILES = 64;

/**
 * Finds the processes that have a render node open. Listing the open files of all processes is expensive, so one search lists only some of
 * them: new processes first, then the others in turn. A process that is known to use a GPU is listed at once, and again once a minute.
 */
export class ClientSearch {
  readonly #proc: Tree;
  readonly #most: number;
  readonly #found = new Map<number, { readonly nodes: OpenNodes; readonly atMs: number }>();
  /** Processes that were listed. */
  readonly #seen = new Set<number>();
  /** Processes that are due in the present turn. */
  #turn: number[] = [];
  #searchedAtMs: number | undefined;
  /** True when the last listings were all refused. */
  isRefused = false;

  /** `most`: number of processes that one search lists; 0 turns the search off. */
  constructor(proc: Tree, most: number) {
    this.#proc = proc;
    this.#most = most;
  }

  /** `users`: processes that are known to use a GPU. */
  find(nowMs: number, users: readonly number[]): readonly OpenNodes[] {
    const due = new Set(users.filter((pid) => !this.#seen.has(pid)));
    for (const [pid, { atMs }] of this.#found) if (nowMs - atMs >= AGAIN_MS) due.add(pid);
    if (this.#most > 0 && (this.#searchedAtMs === undefined || nowMs - this.#searchedAtMs >= SEARCH_MS)) {
      this.#searchedAtMs = nowMs;
      for (const pid of this.#next()) due.add(pid);
    }
    const outcomes = [...due].map((pid) => this.#list(pid, nowMs));
    if (outcomes.length > 0) this.isRefused = outcomes.includes('refused') && !outcomes.includes('listed');
    return [...this.#found.values()].map(({ nodes }) => nodes).sort((a, b) => a.pid - b.pid);
  }

  /** Forgets the files of a process, because one of them is gone. */
  forget(pid: number): void {
    this.#found.delete(pid);
    this.#seen.delete(pid);
  }

  /** Processes of one search. */
  #next(): readonly number[] {
    const present = new Set(
      this.#proc
        .list('.')
        .filter((name) => /^[1-9]\d{0,9}$/.test(name))
        .map(Number),
    );
    for (const pid of [...this.#found.keys(), ...this.#seen]) if (!present.has(pid)) this.forget(pid);
    const fresh = [...present].filter((pid) => !this.#seen.has(pid)).slice(0, this.#most);
    this.#turn = this.#turn.filter((pid) => present.has(pid));
    if (this.#turn.length === 0) this.#turn = [...present];
    return [...fresh, ...this.#turn.splice(0, this.#most - fresh.length)];
  }

  #list(pid: number, atMs: number): 'listed' | 'refused' | 'gone' {
    const { names, error } = this.#proc.listing(`${pid}/fd`);
    if (names === undefined) {
      this.forget(pid);
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
