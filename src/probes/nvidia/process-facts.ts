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

interface OwnFacts {
  /** Distinguishes the process from a later one with the same PID. */
  readonly key: string;
  /** One line, 15 characters at most. */
  readonly name: string;
  /** In how many consecutive reads the process waited in the kernel (state D); 0 when it does not wait now. */
  readonly stuckReads: number;
}

/** Length of a name in the kernel: TASK_COMM_LEN without the end of the string. */
const NAME_LENGTH = 15;

/** Reads the files of processes once in a collection, however many GPUs they use. Its memory has only processes of the latest collection. */
export class ProcessFactsReader {
  readonly #proc: Tree;
  #facts = new Map<number, ProcessFacts>();
  #stuckBefore: ReadonlyMap<string, number> = new Map();

  constructor(proc: Tree) {
    this.#proc = proc;
  }

  /** Begins a new collection. The facts of the previous one are forgotten, except how long its processes have been stuck. */
  renew(): void {
    const own = [...this.#facts.values()].flatMap((facts) => facts.own ?? []);
    this.#stuckBefore = new Map(own.map(({ key, stuckReads }) => [key, stuckReads]));
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
    const stat = parseProcessStat(this.#proc.text(`${pid}/stat`) ?? '');
    if (stat === undefined) return { owner };
    const key = `${pid} ${stat.startTicks}`;
    const stuckReads = stat.state === 'D' ? (this.#stuckBefore.get(key) ?? 0) + 1 : 0;
    return { owner, own: { key, name: [...oneLine(stat.name)].slice(0, NAME_LENGTH).join(''), stuckReads } };
  }
}
