import type { Tree } from '../host/fs/tree.ts';
import { parseCgroup } from '../host/process/cgroup.ts';
import { parseProcessStat } from '../host/process/stat.ts';
import type { DeviceProcess } from '../model/collection.ts';
import { oneLine } from '../model/one-line.ts';

type ProcessFacts = Pick<DeviceProcess, 'name' | 'isStuck' | 'podUid' | 'containerId'>;

/** Length of a name in the kernel: TASK_COMM_LEN without the end of the string. */
const NAME_LENGTH = 15;

/** A process counts as stuck from this many consecutive reads in state D on, because a healthy process waits for moments. */
const STUCK_READS = 2;

/** Reads what the kernel says about processes, once in a collection however many GPUs a process uses. */
export class ProcessFactsReader {
  readonly #proc: Tree;
  #facts = new Map<number, ProcessFacts>();
  #stuck = new Map<string, number>();
  #stuckBefore: ReadonlyMap<string, number> = new Map();

  constructor(proc: Tree) {
    this.#proc = proc;
  }

  /** Begins a new collection. */
  renew(): void {
    this.#facts = new Map();
    this.#stuckBefore = this.#stuck;
    this.#stuck = new Map();
  }

  of(pid: number): ProcessFacts {
    const known = this.#facts.get(pid);
    if (known !== undefined) return known;
    const facts = this.#read(pid);
    this.#facts.set(pid, facts);
    return facts;
  }

  #read(pid: number): ProcessFacts {
    const owner = parseCgroup(this.#proc.text(`${pid}/cgroup`) ?? '');
    const stat = parseProcessStat(this.#proc.text(`${pid}/stat`) ?? '');
    if (stat === undefined) return owner;
    const name = [...oneLine(stat.name)].slice(0, NAME_LENGTH).join('');
    const key = `${pid} ${stat.startTicks}`;
    const reads = stat.state === 'D' ? (this.#stuckBefore.get(key) ?? 0) + 1 : 0;
    if (reads > 0) this.#stuck.set(key, reads);
    return { ...(name !== '' && { name }), ...(reads >= STUCK_READS && { isStuck: true as const }), ...owner };
  }
}
