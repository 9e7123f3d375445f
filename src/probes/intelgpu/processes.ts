import type { Tree } from '../../host/fs/tree.ts';
import type { Host } from '../../host/host.ts';
import type { DeviceProcess } from '../../model/collection.ts';
import {
  ClientSearch,
  type DrmIdentity,
  DrmProcessFactsReader,
  drmBytes,
  drmIdentity,
  drmValues,
  type OpenNodes,
  readClients,
} from '../kit/drm/clients.ts';
import type { Pace } from '../kit/pace.ts';
import { countOf } from '../kit/text.ts';

/** Work of one client on one class of engines. */
interface EngineWork {
  /** Nanoseconds (i915) or cycles (xe) that the engines worked for the client. */
  readonly busy: bigint;
  /** Cycles that passed for the class, on xe. It is a clock of the class, and not of the client. */
  readonly total?: bigint;
  /** Number of engines of the class. */
  readonly capacity: number;
}

/** One client of the driver: an open file of a card, as `/proc/<pid>/fdinfo/<fd>` shows it. */
interface DrmClient extends DrmIdentity {
  /** Memory of the card. Absent on integrated GPUs, which use the memory of the host. */
  readonly memoryBytes?: number;
  /** Keyed by {@link engineOf}. */
  readonly engines: ReadonlyMap<string, EngineWork>;
}

const CLASSES: Readonly<Record<string, string>> = {
  rcs: 'render',
  bcs: 'copy',
  vcs: 'video',
  vecs: 'video_enhance',
  ccs: 'compute',
  'video-enhance': 'video_enhance',
};

/** Name of a class of engines as in `device_utilization_ratio`: `rcs` and `render` are `render`. */
export const engineOf = (name: string): string => CLASSES[name] ?? name.replaceAll('-', '_');

const MOST_ENGINES = 16;
const MOST_REGIONS = 16;

/** Parses a client of i915 or xe; undefined for another driver or file. Unknown keys are skipped. */
export function parseDrmClient(text: string): DrmClient | undefined {
  const values = drmValues(text);
  const driver = values.get('drm-driver');
  if (driver !== 'i915' && driver !== 'xe') return undefined;
  const engines = new Map<string, EngineWork>();
  for (const [key, value] of values) {
    const name = (driver === 'xe' ? /^drm-cycles-([a-z0-9-]{1,32})$/ : /^drm-engine-(?!capacity-)([a-z0-9-]{1,32})$/).exec(key)?.[1];
    if (name === undefined || engines.size >= MOST_ENGINES) continue;
    const busy = countOf(driver === 'xe' ? value : value.replace(/ ns$/, ''));
    const total = countOf(values.get(`drm-total-cycles-${name}`) ?? '');
    // Without the clock of its class a number of cycles means nothing.
    if (busy === undefined || (driver === 'xe' && total === undefined)) continue;
    engines.set(engineOf(name), {
      busy,
      capacity: capacityOf(values.get(`drm-engine-capacity-${name}`)),
      ...(driver === 'xe' && total !== undefined && { total }),
    });
  }
  const memoryBytes = memoryOf(values, 'resident') ?? memoryOf(values, 'total') ?? memoryOf(values, 'memory');
  return { ...drmIdentity(values), ...(memoryBytes !== undefined && { memoryBytes }), engines };
}

/** The key is there only for more than one engine. */
const capacityOf = (text: string | undefined): number => (/^[1-9]\d{0,2}$/.test(text ?? '') ? Number(text) : 1);

/** Sum over the memories of the card, one for each tile: `vram0` on xe, `local0` on i915. Undefined when one of them cannot be read. */
function memoryOf(values: ReadonlyMap<string, string>, kind: string): number | undefined {
  const regions = [...values].filter(([key]) => new RegExp(`^drm-${kind}-(?:vram|local)\\d{1,2}$`).test(key)).slice(0, MOST_REGIONS);
  const sizes = regions.map(([, value]) => drmBytes(value));
  return sizes.length === 0 || sizes.includes(undefined) ? undefined : sizes.reduce<number>((sum, size) => sum + (size ?? 0), 0);
}

/** Share of the engines of a class that worked for a client between two reads, 0 to 1; undefined when the reads do not report. */
export function shareOf(before: EngineWork | undefined, now: EngineWork, elapsedMs: number): number | undefined {
  if (before === undefined || now.busy < before.busy) return undefined;
  const busy = Number(now.busy - before.busy) / now.capacity;
  if (now.total === undefined) return elapsedMs <= 0 ? undefined : Math.min(busy / 1e6 / elapsedMs, 1);
  if (before.total === undefined || now.total <= before.total) return undefined;
  return Math.min(busy / Number(now.total - before.total), 1);
}

/** A GPU as processes see it. */
interface UsedGpu {
  readonly address: string;
  /** Names below `/dev/dri`. */
  readonly nodes: readonly string[];
  /** Classes of engines that the GPU has, as far as they are known. */
  readonly engines: readonly string[];
}

/** Use of one GPU by processes. */
export interface GpuUse {
  readonly processes: readonly DeviceProcess[];
  /** Share of each class of engines that all processes use together; absent where a process may be missing from the sum. */
  readonly engines: Readonly<Record<string, number>>;
  /** A read of a client hangs: its path. Then the processes are unknown. */
  readonly hung?: string;
}

/** Work of one client at one read. */
interface Meter {
  readonly engines: ReadonlyMap<string, EngineWork>;
  readonly atMs: number;
}

/** Share of each class; `unknown` for a class whose share could not be determined. */
type Shares = ReadonlyMap<string, number | 'unknown'>;

/**
 * Reads which processes use GPUs, from the fdinfo of their open nodes. On xe such a read wakes a sleeping card and may wait for its work, so
 * the caller passes only awake cards, and a read that hangs ends the reads of this card.
 */
export class ProcessReader {
  readonly #proc: Tree;
  readonly #search: ClientSearch;
  readonly #facts: DrmProcessFactsReader;
  readonly #mostListed: number;
  #meters = new Map<string, Meter>();
  /** Addresses of the GPUs whose clients were read last time. */
  #readBefore: ReadonlySet<string> = new Set();
  #seesHost = false;

  constructor({ proc }: Host, mostListed: number) {
    this.#proc = proc;
    this.#search = new ClientSearch(proc, { most: mostListed, everyMs: 0 });
    this.#facts = new DrmProcessFactsReader(proc);
    this.#mostListed = mostListed;
  }

  /** Why processes may be missing; undefined when the open files of all are known. */
  get hidden(): string | undefined {
    if (this.#mostListed === 0) return undefined;
    if (!this.#seesHost) return 'the processes of the host are hidden';
    return this.#search.hidden;
  }

  /** Returns the use of each GPU in the order of `gpus`; undefined where nothing shows the processes. */
  read(gpus: readonly UsedGpu[], pace: Pace): readonly (GpuUse | undefined)[] {
    const { nowMs } = pace;
    if (this.#mostListed === 0) return gpus.map(() => undefined);
    // The second process of a machine is a thread of its kernel. Another PID namespace does not have it.
    this.#seesHost ||= this.#proc.text('2/comm') === 'kthreadd';
    this.#facts.renew();
    const open = this.#search.find(pace);
    if (!this.#seesHost || this.#search.isRefused) {
      this.#meters = new Map();
      this.#readBefore = new Set();
      return gpus.map(() => undefined);
    }
    const meters = new Map<string, Meter>();
    const uses = gpus.map((gpu) => this.#useOf(gpu, open, nowMs, meters));
    this.#meters = meters;
    this.#readBefore = new Set(gpus.flatMap(({ address }, n) => (uses[n]?.hung === undefined ? [address] : [])));
    return uses;
  }

  #useOf(gpu: UsedGpu, open: readonly OpenNodes[], nowMs: number, meters: Map<string, Meter>): GpuUse | undefined {
    const { address, nodes } = gpu;
    const found = readClients(this.#proc, this.#search, open, { card: address, nodes, address }, parseDrmClient);
    if (found.hung !== undefined) return { processes: [], engines: {}, hung: found.hung };
    const byPid = new Map<number, { memoryBytes?: number; shares: Shares[] }>();
    for (const { pid, client, key } of found.clients) {
      const use = byPid.get(pid) ?? { shares: [] };
      byPid.set(pid, use);
      if (client.memoryBytes !== undefined) use.memoryBytes = (use.memoryBytes ?? 0) + client.memoryBytes;
      use.shares.push(this.#shares(client, key, nowMs, meters));
    }
    // A hidden process may be the one that uses it.
    if (byPid.size === 0 && this.#search.hidden !== undefined) return undefined;
    const all = [...byPid.values()].flatMap(({ shares }) => shares);
    const isWhole = this.#search.isComplete && !found.isPartial && this.#readBefore.has(gpu.address);
    return {
      engines: isWhole ? known(sumOf([new Map(gpu.engines.map((engine) => [engine, 0])), ...all])) : {},
      processes: [...byPid]
        .sort(([a], [b]) => a - b)
        .map(([pid, { memoryBytes, shares }]) => {
          const utilization = known(sumOf(shares));
          return {
            pid,
            ...(memoryBytes !== undefined && { memoryUsedBytes: memoryBytes }),
            ...(Object.keys(utilization).length > 0 && { utilization }),
            ...this.#facts.of(pid),
          };
        }),
    };
  }

  #shares({ engines }: DrmClient, key: string, nowMs: number, meters: Map<string, Meter>): Shares {
    const before = this.#meters.get(key);
    meters.set(key, { engines: new Map([...engines].map(([name, work]) => [name, larger(before?.engines.get(name), work)])), atMs: nowMs });
    return new Map(
      [...engines].map(([name, work]) => {
        const share = before === undefined ? undefined : shareOf(before.engines.get(name), work, nowMs - before.atMs);
        // A client that never worked had no share, whenever it came.
        return [name, share ?? (work.busy === 0n ? 0 : 'unknown')];
      }),
    );
  }
}

/** A value may step back, because the driver adds several counters without a lock. Then the larger value counts. */
const larger = (before: EngineWork | undefined, now: EngineWork): EngineWork =>
  before !== undefined && before.busy > now.busy ? { ...now, busy: before.busy } : now;

/** Adds shares, at most the whole. One unknown share makes the sum of its class unknown. */
function sumOf(all: readonly Shares[]): Shares {
  const sum = new Map<string, number | 'unknown'>();
  for (const shares of all) {
    for (const [engine, share] of shares) {
      const before = sum.get(engine) ?? 0;
      sum.set(engine, before === 'unknown' || share === 'unknown' ? 'unknown' : Math.min(before + share, 1));
    }
  }
  return sum;
}

const known = (shares: Shares): Readonly<Record<string, number>> =>
  Object.fromEntries([...shares].flatMap(([engine, share]) => (share === 'unknown' ? [] : [[engine, share]])));
