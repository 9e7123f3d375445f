import { errnoName, type Tree } from '../../../host/fs/tree.ts';
import type { DeviceProcess } from '../../../model/collection.ts';
import { seconds } from '../../../model/duration.ts';
import { isDue, type Pace } from '../pace.ts';
import { type ProcessFacts, ProcessFactsReader } from '../process-facts.ts';
import { plainText } from '../text.ts';

const UNITS: Readonly<Record<string, number>> = { '': 1, KiB: 1_024, MiB: 1_048_576, GiB: 1_073_741_824 };

/**
 * Parses `/proc/<pid>/fdinfo/<fd>` of a client of a graphics driver: the keys that begin with `drm-`. Keys and values are separated by a
 * colon, blanks and tabs. Source: Linux Documentation/gpu/drm-usage-stats.
 */
export function drmValues(text: string): ReadonlyMap<string, string> {
  const values = new Map<string, string>();
  for (const line of plainText(text).split('\n')) {
    const at = line.indexOf(':');
    if (at > 0 && line.startsWith('drm-')) values.set(line.slice(0, at).trim(), line.slice(at + 1).trim());
  }
  return values;
}

/** Bytes of a size with or without a unit. A number without a unit is in bytes. Undefined for other text. */
export function drmBytes(text: string | undefined): number | undefined {
  const match = /^(\d{1,16})(?: (KiB|MiB|GiB))?$/.exec(text ?? '');
  if (match === null) return undefined;
  const bytes = Number(match[1]) * (UNITS[match[2] ?? ''] as number);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** Who a client is. */
export interface DrmIdentity {
  /** `drm-pdev`, `0000:03:00.0`. */
  readonly pdev?: string;
  /** Unique for the card until the machine boots; absent on old kernels. */
  readonly id?: string;
}

export function drmIdentity(values: ReadonlyMap<string, string>): DrmIdentity {
  const [pdev, id] = [values.get('drm-pdev'), values.get('drm-client-id')];
  return {
    ...(pdev !== undefined && /^[0-9a-f:.]{7,16}$/i.test(pdev) && { pdev: pdev.toLowerCase() }),
    ...(id !== undefined && /^\d{1,20}$/.test(id) && { id }),
  };
}

type ProcessFields = Pick<DeviceProcess, 'name' | 'isStuck' | 'podUid' | 'containerId'>;

/** A process counts as stuck from this many consecutive reads in state D on, because a healthy process waits for moments. */
const STUCK_READS = 2;

/** Reads what the kernel says about processes, once in a collection however many GPUs a process uses. */
export class DrmProcessFactsReader {
  readonly #reader: ProcessFactsReader;
  /** Number of consecutive reads in state D, keyed by process. */
  #stuck = new Map<string, number>();
  #stuckBefore: ReadonlyMap<string, number> = new Map();

  constructor(proc: Tree) {
    this.#reader = new ProcessFactsReader(proc);
  }

  /** Begins a new collection. */
  renew(): void {
    this.#reader.renew();
    this.#stuckBefore = this.#stuck;
    this.#stuck = new Map();
  }

  of(pid: number): ProcessFields {
    const { owner, own } = this.#reader.of(pid);
    if (own === undefined) return owner;
    const isStuck = this.#readsStuck(own) >= STUCK_READS;
    return { ...(own.name !== '' && { name: own.name }), ...(isStuck && { isStuck: true as const }), ...owner };
  }

  #readsStuck({ key, isStuck }: NonNullable<ProcessFacts['own']>): number {
    if (!isStuck) return 0;
    const reads = (this.#stuckBefore.get(key) ?? 0) + 1;
    this.#stuck.set(key, reads);
    return reads;
  }
}

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

/** Names of one process that a search reads before the next process has its turn. Few processes have more. */
const FIRST_NAMES = 256;
/** Names that one search reads of the process whose listing goes on from search to search. */
const MORE_NAMES = 16_384;
/** Longest time of one search. Any user can keep a million files open. */
const LONGEST_MS = 100;
/** Names between two looks at the clock. */
const NAMES_PER_LOOK = 64;
/** Most open files of one process that are read. */
const MOST_FILES = 64;

/** When the files of a process were listed first and last. */
interface ScanTimes {
  readonly firstMs: number;
  readonly lastMs: number;
  readonly isRefused: boolean;
  /** No listing reached its end so far. */
  readonly isCut: boolean;
}

/** The listing of one process, as far as it came. */
interface Listing {
  readonly pid: number;
  readonly names: Generator<string, void>;
  readonly files: { readonly fd: string; readonly node: string }[];
  isEmpty: boolean;
  /** The target of at least one file was read. */
  isSeen: boolean;
}

type Outcome = 'listed' | 'refused' | 'gone';

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
 *
 * A search is bounded in names and time, because every user decides how many files a process keeps open. The listing of one process with
 * many files goes on in the next search.
 */
export class ClientSearch {
  readonly #proc: Tree;
  readonly #pace: SearchPace;
  readonly #found = new Map<number, { readonly nodes: OpenNodes; readonly atMs: number }>();
  readonly #seen = new Map<number, ScanTimes>();
  readonly #timer: () => number;
  /** The process whose listing goes on in the next search. */
  #unfinished: Listing | undefined;
  #searchedAtMs: number | undefined;
  /** True when the last search knew the files of every process, and none was refused. */
  isComplete = false;

  /** `timer`: milliseconds that a search has taken; a clock that no one sets. */
  constructor(proc: Tree, pace: SearchPace, timer = (): number => performance.now()) {
    this.#proc = proc;
    this.#pace = pace;
    this.#timer = timer;
  }

  /** Why the open files of some process are unknown; undefined when those of each listed process are known. */
  get hidden(): string | undefined {
    const seen = [...this.#seen.values()];
    if (seen.some(({ isRefused }) => isRefused)) return 'the kernel hides the open files of processes';
    return seen.some(({ isCut }) => isCut) ? 'a process has more open files than the searches have listed so far' : undefined;
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
    const endMs = this.#timer() + LONGEST_MS;
    const outcomes = [...due].map((pid) => (this.#timer() < endMs ? this.#list(pid, nowMs, endMs) : 'listed'));
    if (isSearch && this.#unfinished !== undefined) this.#goOn(this.#unfinished, { most: MORE_NAMES, atMs: nowMs, endMs });
    if (isSearch) this.isComplete = present.size > 0 && this.#isComplete(present, outcomes.includes('gone'));
    return [...this.#found.values()].map(({ nodes }) => nodes).sort((a, b) => a.pid - b.pid);
  }

  /** Forgets the files of a process, because one of them is gone. */
  forget(pid: number): void {
    this.#found.delete(pid);
    this.#seen.delete(pid);
    if (this.#unfinished?.pid === pid) this.#close(this.#unfinished);
  }

  #close(listing: Listing): void {
    listing.names.return();
    if (this.#unfinished === listing) this.#unfinished = undefined;
  }

  /** A process that ended during the search is still in the list of names. */
  #isComplete(present: ReadonlySet<number>, hasEnded: boolean): boolean {
    for (const pid of present) {
      const seen = this.#seen.get(pid);
      if (seen === undefined ? !hasEnded || this.#proc.exists(`${pid}/fd`) : seen.isRefused || seen.isCut) return false;
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

  #list(pid: number, atMs: number, endMs: number): Outcome {
    if (this.#unfinished?.pid === pid) return 'listed';
    const listing: Listing = { pid, names: this.#proc.names(`${pid}/fd`), files: [], isEmpty: true, isSeen: false };
    return this.#goOn(listing, { most: FIRST_NAMES, atMs, endMs });
  }

  #goOn(listing: Listing, limits: { readonly most: number; readonly atMs: number; readonly endMs: number }): Outcome {
    const { pid } = listing;
    const { guard } = this.#proc;
    // As a call, because no other process can list for this reader: after a listing that hung, the next reader leaves the process out.
    if (guard?.enter(this.#proc.path(`${pid}/fd`), 'call') !== undefined) {
      this.#close(listing);
      return this.#known(listing, limits.atMs, { isCut: true });
    }
    try {
      const isWhole = this.#read(listing, limits.most, limits.endMs);
      // Root without capabilities may list the files of a process of root that has some, and learns nothing of them.
      if (!listing.isEmpty && !listing.isSeen) this.#proc.names(`${pid}/fdinfo`).next();
      if (isWhole || (this.#unfinished ?? listing) !== listing) this.#close(listing);
      else this.#unfinished = listing;
      return this.#known(listing, limits.atMs, { isCut: !isWhole });
    } catch (error) {
      this.#close(listing);
      if (isPermission(errnoName(error))) return this.#known(listing, limits.atMs, { isRefused: true });
      if (listing.isEmpty || !this.#proc.exists(`${pid}/fd`)) {
        this.forget(pid);
        return 'gone';
      }
      return this.#known(listing, limits.atMs, { isCut: true });
    } finally {
      guard?.leave();
    }
  }

  /** True when the listing reached its end. */
  #read(listing: Listing, most: number, endMs: number): boolean {
    for (let count = 1; count <= most; count += 1) {
      const { value: fd, done } = listing.names.next();
      if (done === true) return true;
      listing.isEmpty = false;
      const target = this.#proc.link(`${listing.pid}/fd/${fd}`);
      listing.isSeen ||= target !== undefined;
      const node = /^\/dev\/dri\/((?:renderD|card)\d{1,6})$/.exec(target ?? '')?.[1];
      if (node !== undefined && listing.files.length < MOST_FILES) listing.files.push({ fd, node });
      if (count % NAMES_PER_LOOK === 0 && this.#timer() >= endMs) return false;
    }
    return false;
  }

  /** Keeps what a listing gave. One that did not reach its end adds to what is known, and ends nothing. */
  #known(listing: Listing, atMs: number, { isCut = false, isRefused = false }): Outcome {
    const { pid, files } = listing;
    const before = this.#seen.get(pid);
    const isUnknown = isCut && (before === undefined || before.isCut);
    this.#seen.set(pid, { firstMs: before?.firstMs ?? atMs, lastMs: atMs, isRefused, isCut: isUnknown });
    if (files.length > 0 && !isRefused) this.#found.set(pid, { nodes: { pid, files: [...files] }, atMs });
    else if (!isCut) this.#found.delete(pid);
    return isRefused ? 'refused' : 'listed';
  }
}

const isPermission = (error: string | undefined): boolean => error === 'EACCES' || error === 'EPERM';

/** Time since the last listing as a share of the time after which the process is due; 1 and above: it is due. */
function waitOf({ firstMs, lastMs, isCut }: ScanTimes, nowMs: number): number {
  return (nowMs - lastMs) / (isCut ? SOONEST_MS : Math.min(Math.max(lastMs - firstMs, SOONEST_MS), LATEST_MS));
}

/** A client of a card. `key`: the same for each of its descriptors. */
export interface CardClient<C> {
  readonly pid: number;
  readonly client: C;
  readonly key: string;
}

export interface ClientScan<C> {
  readonly clients: readonly CardClient<C>[];
  /** A client could not be read. */
  readonly isPartial: boolean;
  /** A read hangs, and ended the reads of this card: its path. */
  readonly hung?: string;
}

/**
 * Reads the clients of some nodes, each client once: a descriptor may be copied, and a child inherits it. `card` is unique for the nodes.
 * `address`: a client that names another card is none of this one, because the number of the node may belong to another card by now.
 */
export function readClients<C extends DrmIdentity>(
  proc: Tree,
  search: ClientSearch,
  open: readonly OpenNodes[],
  { card, nodes, address }: { readonly card: string; readonly nodes: readonly string[]; readonly address?: string },
  parse: (text: string) => C | undefined,
): ClientScan<C> {
  const clients = new Map<string, CardClient<C>>();
  let isPartial = false;
  for (const { pid, files } of open) {
    for (const { fd, node } of files) {
      if (!nodes.includes(node)) continue;
      const path = `${pid}/fdinfo/${fd}`;
      const { text, error } = proc.read(path);
      if (error === 'EHUNG') return { clients: [...clients.values()], isPartial: true, hung: path };
      if (error === 'ENOENT' || error === 'ENOTDIR' || error === 'ESRCH') search.forget(pid);
      else if (error !== undefined) isPartial = true;
      const client = parse(text ?? '');
      if (client === undefined || (address !== undefined && client.pdev !== undefined && client.pdev !== address)) continue;
      // Without an id, only one client of each process counts.
      const key = client.id === undefined ? `${card}/pid ${pid}` : `${card}/${client.id}`;
      if (!clients.has(key)) clients.set(key, { pid, client, key });
    }
  }
  return { clients: [...clients.values()], isPartial };
}
