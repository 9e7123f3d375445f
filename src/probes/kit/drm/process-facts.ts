import type { Tree } from '../../../host/fs/tree.ts';
import type { DeviceProcess } from '../../../model/collection.ts';
import { type ProcessFacts, ProcessFactsReader } from '../process-facts.ts';

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
