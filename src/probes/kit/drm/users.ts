import type { Tree } from '../../../host/fs/tree.ts';
import type { Host } from '../../../host/host.ts';
import type { DeviceProcess } from '../../../model/collection.ts';
import type { Pace } from '../pace.ts';
import { ClientSearch, type DrmIdentity, DrmProcessFactsReader, type OpenNodes, readClients, type SearchPace } from './clients.ts';

/** Work of one client on one engine, or class of engines. */
export interface EngineWork {
  /** Nanoseconds, or cycles, that the engines worked for the client. */
  readonly busy: bigint;
  /** Cycles that passed for the class, where the driver counts cycles. It is a clock of the class, and not of the client. */
  readonly total?: bigint;
  /** Number of engines of the class. */
  readonly capacity: number;
}

/** One client of a driver: an open file of a card, as `/proc/<pid>/fdinfo/<fd>` shows it. */
export interface DrmClient extends DrmIdentity {
  /** Memory of the card. Absent on integrated GPUs, which use the memory of the host. */
  readonly memoryBytes?: number;
  readonly engines: ReadonlyMap<string, EngineWork>;
}

/** Share of the engines of a class that worked for a client between two reads, 0 to 1; undefined when the reads do not report. */
export function shareOf(before: EngineWork | undefined, now: EngineWork, elapsedMs: number): number | undefined {
  if (before === undefined || now.busy < before.busy) return undefined;
  const busy = Number(now.busy - before.busy) / now.capacity;
  if (now.total === undefined) return elapsedMs <= 0 ? undefined : Math.min(busy / 1e6 / elapsedMs, 1);
  if (before.total === undefined || now.total <= before.total) return undefined;
  return Math.min(busy / Number(now.total - before.total), 1);
}

/** A card as processes see it. */
interface UsedCard {
  /** Unique for its nodes. */
  readonly card: string;
  /** Names below `/dev/dri`. */
  readonly nodes: readonly string[];
  /** A client that names another address is of another card. */
  readonly address?: string;
  /** Classes of engines that the card has, as far as they are known. */
  readonly engines?: readonly string[];
}

/** Use of one card by processes. */
export interface CardUse {
  readonly processes: readonly DeviceProcess[];
  /** Share of each class of engines that all processes use together; absent where a process may be missing from the sum. */
  readonly engines: Readonly<Record<string, number>>;
  /** A read of a client hangs: its path. Then the processes are unknown. */
  readonly hung?: string;
}

interface Of {
  parse(text: string): DrmClient | undefined;
  /** Name of an engine as in `device_utilization_ratio`. Default: as the client has it. */
  engineOf?(name: string): string;
  /** Cost of the search. */
  readonly pace: SearchPace;
  /** Nothing is read in another PID namespace. */
  readonly needsHost?: true;
}

/** Work of one client at one read. */
interface Meter {
  readonly engines: DrmClient['engines'];
  readonly atMs: number;
}

/** Share of each class; `unknown` for a class whose share could not be determined. */
type Shares = readonly (readonly [engine: string, share: number | 'unknown'])[];

const NO_WORK: EngineWork = { busy: 0n, capacity: 1 };

/** Reads which processes use cards, from the fdinfo of their open nodes. A read that hangs ends the reads of its card. */
export class DrmUsers {
  readonly #proc: Tree;
  readonly #of: Of;
  readonly #search: ClientSearch;
  readonly #facts: DrmProcessFactsReader;
  #meters = new Map<string, Meter>();
  /** Cards whose clients were read last time. */
  #readBefore: ReadonlySet<string> = new Set();
  #seesHost = false;

  constructor({ proc }: Host, of: Of) {
    this.#proc = proc;
    this.#of = of;
    this.#search = new ClientSearch(proc, of.pace);
    this.#facts = new DrmProcessFactsReader(proc);
    this.#seesHost = of.needsHost !== true;
  }

  /** Why processes may be missing; undefined when none are searched, or the open files of all are known. */
  get hidden(): string | undefined {
    if (this.#of.pace.most === 0) return undefined;
    return this.#seesHost ? this.#search.hidden : 'the processes of the host are hidden';
  }

  /** The open files of processes are searched, and may be read. */
  get isSearched(): boolean {
    return this.#of.pace.most > 0 && this.#seesHost && !this.#search.isRefused;
  }

  factsOf(pid: number): Partial<DeviceProcess> {
    return this.#facts.of(pid);
  }

  /** Returns the use of each card in their order; undefined where nothing shows the processes. `known`: processes that use one of them. */
  read(cards: readonly UsedCard[], pace: Pace, known?: readonly number[]): readonly (CardUse | undefined)[] {
    // The second process of a machine is a thread of its kernel. Another PID namespace does not have it.
    this.#seesHost ||= this.#proc.text('2/comm') === 'kthreadd';
    this.#facts.renew();
    const open = this.#of.pace.most === 0 && known === undefined ? [] : this.#search.find(pace, known);
    const meters = new Map<string, Meter>();
    const isTold = this.isSearched || known !== undefined;
    const uses = cards.map((card) => (isTold ? this.#useOf(card, open, pace.nowMs, meters) : undefined));
    this.#meters = meters;
    this.#readBefore = new Set(cards.flatMap(({ card }, n) => (isTold && uses[n]?.hung === undefined ? [card] : [])));
    return uses;
  }

  #useOf(used: UsedCard, open: readonly OpenNodes[], nowMs: number, meters: Map<string, Meter>): CardUse | undefined {
    const { clients, hung, isPartial } = readClients(this.#proc, this.#search, open, used, this.#of.parse);
    if (hung !== undefined) return { processes: [], engines: {}, hung };
    const byPid = new Map<number, { memoryBytes?: number; shares: Shares[]; isMetered: boolean }>();
    for (const { pid, client, key } of clients) {
      const use = byPid.get(pid) ?? { shares: [], isMetered: false };
      byPid.set(pid, use);
      if (client.memoryBytes !== undefined) use.memoryBytes = (use.memoryBytes ?? 0) + client.memoryBytes;
      use.isMetered ||= this.#meters.has(key);
      use.shares.push(this.#sharesOf(client, key, nowMs, meters));
    }
    // A hidden process may be the one that uses it.
    if (byPid.size === 0 && this.#search.hidden !== undefined) return undefined;
    const all = [...byPid.values()].flatMap(({ shares }) => shares);
    const isWhole = this.#search.isComplete && !isPartial && this.#readBefore.has(used.card);
    return {
      engines: isWhole ? sumOf([(used.engines ?? []).map((engine) => [engine, 0]), ...all]) : {},
      processes: [...byPid]
        .sort(([a], [b]) => a - b)
        .map(([pid, { memoryBytes, shares, isMetered }]) => {
          const utilization = sumOf(shares);
          const isIdle = isMetered && shares.every(({ length }) => length === 0);
          return {
            pid,
            ...(memoryBytes !== undefined && { memoryUsedBytes: memoryBytes }),
            ...((isIdle || Object.keys(utilization).length > 0) && { utilization }),
            ...this.#facts.of(pid),
          };
        }),
    };
  }

  #sharesOf({ engines }: DrmClient, key: string, nowMs: number, meters: Map<string, Meter>): Shares {
    const before = this.#meters.get(key);
    meters.set(key, { engines: new Map([...engines].map(([name, work]) => [name, larger(before?.engines.get(name), work)])), atMs: nowMs });
    return [...engines].map(([name, work]) => {
      // Some drivers leave out an engine that never worked for the client.
      const share = before && shareOf(before.engines.get(name) ?? NO_WORK, work, nowMs - before.atMs);
      // A client that never worked had no share, whenever it came.
      return [this.#of.engineOf?.(name) ?? name, share ?? (work.busy === 0n ? 0 : 'unknown')];
    });
  }
}

/** A value may step back, because the driver adds several counters without a lock. Then the larger value counts. */
const larger = (before: EngineWork | undefined, now: EngineWork): EngineWork =>
  before !== undefined && before.busy > now.busy ? { ...now, busy: before.busy } : now;

/** Adds shares, at most the whole. One unknown share makes the sum of its class unknown, and so absent. */
function sumOf(all: readonly Shares[]): Readonly<Record<string, number>> {
  const sum = new Map<string, number>();
  for (const [engine, share] of all.flat())
    sum.set(engine, Math.min((sum.get(engine) ?? 0) + (share === 'unknown' ? Number.NaN : share), 1));
  return Object.fromEntries([...sum].filter(([, share]) => !Number.isNaN(share)));
}
