import type { Tree } from '../../../host/fs/tree.ts';
import { seconds } from '../../../model/duration.ts';
import { isDue, type Pace } from '../pace.ts';

/** Open files of one process on the nodes of graphics cards. */
export interface OpenNodes {
  readonly pid: number;
  /** `node`: name below `/dev/dri`, `renderD128` or `card0`. */
  readonly files: readonly { readonly fd: string; readonly node: string }[];
}

/** Time after which the open files of a process that uses a card are listed again. */
const AGAIN_MS = seconds(60);
/** A process without a card is listed again when its known age has doubled, but not before and not after these times. */
const SOONEST_MS = seconds(10);
const LATEST_MS = seconds(300);

/** When the files of a process were listed first and last. */
interface Seen {
  readonly firstMs: number;
  readonly lastMs: number;
  readonly isRefused: boolean;
}

/** Cost of the search. */
export interface SearchPace {
  /** Number of processes that one search lists; 0 turns the search off. */
  readonly most: number;
  /** Time between two searches; 0 searches at every call. */
  readonly everyMs: number;
}

/**
 * Finds the processes that have a node of a graphics card open. Listing the open files of all processes is expensive, so one search lists
 * only some of them: new processes first, then those that wait longest. A program opens a card soon after its start, so a young process is
 * listed more often than an old one. A process that is known to use a card is listed at once, and again once a minute.
 */
export class ClientSearch {
  readonly #proc: Tree;
  readonly #pace: SearchPace;
  readonly #found = new Map<number, { readonly nodes: OpenNodes; readonly atMs: number }>();
  readonly #seen = new Map<number, Seen>();
  #searchedAtMs: number | undefined;
  /** True when the last search knew the files of every process, and none was refused. */
  isComplete = false;

  constructor(proc: Tree, pace: SearchPace) {
    this.#proc = proc;
    this.#pace = pace;
  }

  /** True when the kernel hides the open files of some process. */
  get isPartial(): boolean {
    return [...this.#seen.values()].some(({ isRefused }) => isRefused);
  }

  /** True when the kernel hides the open files of all processes but this one. */
  get isRefused(): boolean {
    const own = this.#proc.link('self');
    const others = [...this.#seen].filter(([pid]) => String(pid) !== own);
    return others.length > 0 && others.every(([, { isRefused }]) => isRefused);
  }

  /** `users`: processes that are known to use a card. */
  find(pace: Pace, users: readonly number[] = []): readonly OpenNodes[] {
    const { nowMs } = pace;
    const { most, everyMs } = this.#pace;
    const due = new Set(users.filter((pid) => !this.#seen.has(pid)));
    for (const [pid, { atMs }] of this.#found) if (isDue(atMs, AGAIN_MS, pace)) due.add(pid);
    const isSearch = most > 0 && isDue(this.#searchedAtMs, everyMs, pace);
    const present = isSearch ? this.#present() : new Set<number>();
    if (isSearch) {
      this.#searchedAtMs = nowMs;
      for (const pid of this.#next(present, nowMs)) due.add(pid);
    }
    const outcomes = [...due].map((pid) => this.#list(pid, nowMs));
    if (isSearch) this.isComplete = present.size > 0 && this.#isComplete(present, outcomes.includes('gone'));
    return [...this.#found.values()].map(({ nodes }) => nodes).sort((a, b) => a.pid - b.pid);
  }

  /** Forgets the files of a process, because one of them is gone. */
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

  #present(): ReadonlySet<number> {
    const names = this.#proc.list('.').filter((name) => /^[1-9]\d{0,9}$/.test(name));
    const present = new Set(names.map(Number));
    for (const pid of [...this.#found.keys(), ...this.#seen.keys()]) if (!present.has(pid)) this.forget(pid);
    return present;
  }

  /** Processes of one search. */
  #next(present: ReadonlySet<number>, nowMs: number): readonly number[] {
    const fresh = [...present].filter((pid) => !this.#seen.has(pid)).slice(0, this.#pace.most);
    const waiting = [...this.#seen].filter(([pid, seen]) => !this.#found.has(pid) && waitOf(seen, nowMs) >= 1);
    const longest = waiting.sort(([, a], [, b]) => waitOf(b, nowMs) - waitOf(a, nowMs)).slice(0, this.#pace.most - fresh.length);
    return [...fresh, ...longest.map(([pid]) => pid)];
  }

  #list(pid: number, atMs: number): 'listed' | 'refused' | 'gone' {
    const { names, error } = this.#proc.listing(`${pid}/fd`);
    const targets = (names ?? []).map((fd) => ({ fd, target: this.#proc.link(`${pid}/fd/${fd}`) }));
    // Root without capabilities may list the files of a process of root that has some, and learns nothing of them.
    const isBlind = targets.length > 0 && targets.every(({ target }) => target === undefined);
    const isRefused = isPermission(error) || (isBlind && isPermission(this.#proc.listing(`${pid}/fdinfo`).error));
    if (names === undefined && !isRefused) {
      this.forget(pid);
      return 'gone';
    }
    this.#seen.set(pid, { firstMs: this.#seen.get(pid)?.firstMs ?? atMs, lastMs: atMs, isRefused });
    if (isRefused) {
      this.#found.delete(pid);
      return 'refused';
    }
    const files = targets.flatMap(({ fd, target = '' }) => {
      const node = /^\/dev\/dri\/((?:renderD|card)\d{1,6})$/.exec(target)?.[1];
      return node === undefined ? [] : [{ fd, node }];
    });
    if (files.length === 0) this.#found.delete(pid);
    else this.#found.set(pid, { nodes: { pid, files: files.slice(0, MOST_FILES) }, atMs });
    return 'listed';
  }
}

const isPermission = (error: string | undefined): boolean => error === 'EACCES' || error === 'EPERM';

/** Time since the last listing as a share of the time after which the process is due; 1 and above: it is due. */
function waitOf({ firstMs, lastMs }: Seen, nowMs: number): number {
  return (nowMs - lastMs) / Math.min(Math.max(lastMs - firstMs, SOONEST_MS), LATEST_MS);
}

/** Most open files of one process that are read. */
const MOST_FILES = 64;
