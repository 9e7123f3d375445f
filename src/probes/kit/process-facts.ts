import type { Tree } from '../../host/fs/tree.ts';
import { type CgroupOwner, parseCgroup } from '../../host/process/cgroup.ts';
import { parseProcessStat } from '../../host/process/stat.ts';
import { oneLine } from '../../model/one-line.ts';

/** Facts of the kernel about one process. */
export interface ProcessFacts {
  readonly owner: CgroupOwner;
  /** Absent when `/proc` does not show the process. */
  readonly own?: OwnFacts;
}

export interface OwnFacts {
  readonly pid: number;
  /** Distinguishes the process from a later one with the same PID. */
  readonly key: string;
  /** One line, 15 characters at most. */
  readonly name: string;
  /** It waits in the kernel and cannot be killed (state D). */
  readonly isStuck: boolean;
}

/** Length of a name in the kernel: TASK_COMM_LEN without the end of the string. */
const NAME_LENGTH = 15;

/** Reads the files of processes once in a collection, however many GPUs they use. */
export class ProcessFactsReader {
  readonly #proc: Tree;
  #facts = new Map<number, ProcessFacts>();

  constructor(proc: Tree) {
    this.#proc = proc;
  }

  /** Begins a new collection. */
  renew(): void {
    this.#facts = new Map();
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
    // This file also has the name, so one read is enough.
    const stat = parseProcessStat(this.#proc.text(`${pid}/stat`) ?? '');
    if (stat === undefined) return { owner };
    const name = [...oneLine(stat.name)].slice(0, NAME_LENGTH).join('');
    return { owner, own: { pid, key: `${pid} ${stat.startTicks}`, name, isStuck: stat.state === 'D' } };
  }
}
