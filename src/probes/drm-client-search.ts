import type { Tree } from '../host/fs/tree.ts';
import { seconds } from '../model/duration.ts';

/** Open files of one process on the nodes of graphics cards. */
export interface OpenNodes {
  readonly pid: number;
  /** `node`: name below `/dev/dri`, `renderD128` or `card0`. */
  readonly files: readonly { readonly fd: string; readonly node: string }[];
}

/** Time after which the open files of a process that uses a card are listed again. */
const AGAIN_MS = seconds(30);
/** A process without a card is listed again when its known age has doubled, but not before and not after these times. */
const SOONEST_MS = seconds(10);
const LATEST_MS = seconds(300);

/** When the files of a process were listed first and last. */
interface Seen {
  readonly firstMs: number;
  readonly lastMs: number;
  readonly isRefused: boolean;
}

/**
 * Finds the processes that have a node of a graphics card open. Listing the open files of all processes is expensive, so one refresh lists
 * only some of them: new processes first, then those that wait longest. A program opens a card soon after its start, so a young process is
 * listed more often than an old one. A process that was found is listed again every 30 seconds.
 */
export class ClientSearch {
  readonly #proc: Tree;
  readonly #found = new Map<number, { readonly nodes: OpenNodes; readonly atMs: number }>();
  readonly #seen = new Map<number, Seen>();
  /** True when the last search that listed a process was refused for all of them. */
  isRefused = false;
  /** True when the files of every process were listed at least once, and none was refused. */
  isComplete = false;

  constructor(proc: Tree) {
    this.#proc = proc;
  }

  /** `first`: processes that are listed even when the search is off, because they are known to use a card. */
  find(nowMs: number, most: number, first: readonly number[]): readonly OpenNodes[] {
    const names = most === 0 ? first.map(String) : this.#proc.list('.');
    const present = new Set(names.filter((name) => /^[1-9]\d{0,9}$/.test(name)).map(Number));
    for (const pid of this.#found.keys()) if (!present.has(pid)) this.#found.delete(pid);
    for (const pid of this.#seen.keys()) if (!present.has(pid)) this.#seen.delete(pid);
    const outcomes = this.#due(present, nowMs, most, first).map((pid) => this.#list(pid, nowMs));
    if (outcomes.length > 0) this.isRefused = outcomes.includes('refused') && !outcomes.includes('listed');
    this.isComplete = most > 0 && present.size > 0 && this.#isComplete(present, outcomes.includes('gone'));
    return [...this.#found.values()].map(({ nodes }) => nodes).sort((a, b) => a.pid - b.pid);
  }

  /** Forgets the files of a process, because one of them could not be read. */
  forget(pid: number): void {
    this.#found.delete(pid);
    this.#seen.delete(pid);
  }

  /** A process that ended during the search is still in the list of names. */
  #isComplete(present: ReadonlySet<number>, hasEnded: boolean): boolean {
    for (const pid of present) {
      const seen = this.#seen.get(pid);
      if (seen === undefined ? !hasEnded || this.#proc.exists(`${pid}/fd`) : seen.isRefused) return false;
    }
    return true;
  }

  #due(present: ReadonlySet<number>, nowMs: number, most: number, first: readonly number[]): readonly number[] {
    const old = [...this.#found].filter(([, { atMs }]) => nowMs - atMs >= AGAIN_MS).map(([pid]) => pid);
    const wanted = first.filter((pid) => present.has(pid) && !this.#seen.has(pid));
    const fresh = [...present].filter((pid) => !this.#seen.has(pid)).slice(0, most);
    const waiting = [...this.#seen].filter(([pid, seen]) => !this.#found.has(pid) && waitOf(seen, nowMs) >= 1);
    const longest = waiting.sort(([, a], [, b]) => waitOf(b, nowMs) - waitOf(a, nowMs)).slice(0, most - fresh.length);
    return [...new Set([...old, ...wanted, ...fresh, ...longest.map(([pid]) => pid)])];
  }

  #list(pid: number, atMs: number): 'listed' | 'refused' | 'gone' {
    const { names, error } = this.#proc.listing(`${pid}/fd`);
    const isRefused = error === 'EACCES' || error === 'EPERM';
    if (names === undefined) this.#found.delete(pid);
    if (names === undefined && !isRefused) return 'gone';
    this.#seen.set(pid, { firstMs: this.#seen.get(pid)?.firstMs ?? atMs, lastMs: atMs, isRefused });
    if (names === undefined) return 'refused';
    const files = names.flatMap((fd) => {
      const node = /^\/dev\/dri\/((?:renderD|card)\d{1,6})$/.exec(this.#proc.link(`${pid}/fd/${fd}`) ?? '')?.[1];
      return node === undefined ? [] : [{ fd, node }];
    });
    if (files.length === 0) this.#found.delete(pid);
    else this.#found.set(pid, { nodes: { pid, files: files.slice(0, MOST_FILES) }, atMs });
    return 'listed';
  }
}

/** Time since the last listing as a share of the time after which the process is due; 1 and above: it is due. */
function waitOf({ firstMs, lastMs }: Seen, nowMs: number): number {
  return (nowMs - lastMs) / Math.min(Math.max(lastMs - firstMs, SOONEST_MS), LATEST_MS);
}

/** Most open files of one process that are read. */
const MOST_FILES = 64;
