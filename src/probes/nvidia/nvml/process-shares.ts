import { CODE } from './codes.ts';
import { PROCESS_SAMPLE, PROCESS_SHARE, PROCESS_SHARES } from './layouts.ts';
import type { Handle, Library } from './library.ts';
import type { Memory } from './memory.ts';

/** Share of its time that each engine spent on a process. */
type Ratios = Readonly<Record<string, number>>;

/** What the driver spent on the processes of a GPU since it was last asked. */
export interface Shares {
  readonly byPid: ReadonlyMap<number, Ratios>;
  /** The latest sample, in microseconds of the driver. */
  readonly atUs: number;
}

const FIRST_CAPACITY = 512;
const LIST = PROCESS_SHARES.size;
/** The driver gives nonsense above now and then. */
const MOST_PERCENT = 100;

type Layout = typeof PROCESS_SAMPLE | typeof PROCESS_SHARE;

/** Asks by the newest function that the driver has; the older one does not tell of all engines. */
export class ProcessShares {
  readonly #library: Library;
  #isOld = false;
  #memory: Memory;

  constructor(library: Library) {
    this.#library = library;
    this.#memory = library.memory(LIST + FIRST_CAPACITY * PROCESS_SHARE.size);
  }

  /**
   * Undefined where the driver does not tell, as of GPUs that are split. `sinceUs`: of the answer before, or 0. The driver leaves out
   * processes on which it spent nothing: those of `pids` that it leaves out have zeros.
   */
  read(gpu: Handle, sinceUs: number, pids: readonly number[]): Shares | undefined {
    let code = this.#ask(gpu, sinceUs);
    if (!this.#isOld && (code === CODE.functionNotFound || code === CODE.versionMismatch)) {
      this.#isOld = true;
      code = this.#ask(gpu, sinceUs);
    }
    const layout = this.#isOld ? PROCESS_SAMPLE : PROCESS_SHARE;
    const idle = pids.map((pid) => [pid, atZero(layout)] as const);
    if (code === CODE.notFound) return { byPid: new Map(idle), atUs: sinceUs };
    if (code !== CODE.success) return undefined;
    const { byPid, atUs } = this.#told(layout, sinceUs);
    return { byPid: new Map([...idle, ...byPid]), atUs };
  }

  #ask(gpu: Handle, sinceUs: number): number {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const code = this.#isOld ? this.#askOlder(gpu, sinceUs) : this.#askNewer(gpu, sinceUs);
      if (code !== CODE.insufficientSize) return code;
      const wanted = Math.min(this.#memory.u32(PROCESS_SHARES.count), 100_000) + FIRST_CAPACITY;
      this.#memory = this.#library.memory(LIST + wanted * PROCESS_SHARE.size);
    }
    return CODE.insufficientSize;
  }

  #askNewer(gpu: Handle, sinceUs: number): number {
    const memory = this.#memory;
    memory.setU32(0, PROCESS_SHARES.version);
    memory.setU32(PROCESS_SHARES.count, this.#capacity());
    memory.setPointer(PROCESS_SHARES.since, sinceUs);
    memory.setPointer(PROCESS_SHARES.list, memory.address + LIST);
    return this.#library.call('nvmlDeviceGetProcessesUtilizationInfo', 'hp', gpu, memory.address);
  }

  #askOlder(gpu: Handle, sinceUs: number): number {
    const memory = this.#memory;
    memory.setU32(PROCESS_SHARES.count, this.#capacity());
    const [list, count] = [memory.address + LIST, memory.address + PROCESS_SHARES.count];
    return this.#library.call('nvmlDeviceGetProcessUtilization', 'hppq', gpu, list, count, sinceUs);
  }

  #capacity(): number {
    return Math.floor((this.#memory.size - LIST) / PROCESS_SHARE.size);
  }

  /** A process may have several samples: their mean. */
  #told(layout: Layout, sinceUs: number): Shares {
    const sums = new Map<number, { readonly percents: Record<string, number>; samples: number }>();
    let atUs = sinceUs;
    const count = Math.min(this.#memory.u32(PROCESS_SHARES.count), this.#capacity());
    for (let index = 0; index < count; index += 1) {
      const at = LIST + index * layout.size;
      const pid = this.#memory.u32(at + layout.pid);
      const sum = sums.get(pid) ?? { percents: {}, samples: 0 };
      if (!this.#add(sum.percents, at, layout)) continue;
      atUs = Math.max(atUs, this.#memory.u64(at + layout.timestamp));
      sum.samples += 1;
      sums.set(pid, sum);
    }
    const means = [...sums].map(([pid, { percents, samples }]) => [pid, meanOf(percents, samples)] as const);
    return { byPid: new Map(means), atUs };
  }

  /** False for a sample that cannot be. */
  #add(sums: Record<string, number>, at: number, { engines }: Layout): boolean {
    const percents = Object.entries(engines).map(([engine, offset]) => [engine, this.#memory.u32(at + offset)] as const);
    if (percents.some(([, percent]) => percent > MOST_PERCENT)) return false;
    for (const [engine, percent] of percents) sums[engine] = (sums[engine] ?? 0) + percent;
    return true;
  }
}

const meanOf = (percents: Readonly<Record<string, number>>, samples: number): Ratios =>
  Object.fromEntries(Object.entries(percents).map(([engine, sum]) => [engine, sum / samples / 100]));
const atZero = ({ engines }: Layout): Ratios => Object.fromEntries(Object.keys(engines).map((engine) => [engine, 0]));
