import type { Tree } from '../../host/fs/tree.ts';
import { type CgroupOwner, parseCgroup } from '../../host/process/cgroup.ts';
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

/** The part of `/proc/<pid>/stat` that identifies a process and shows whether it runs. */
interface ProcessStat {
  /** Name that the process has now, as in `/proc/<pid>/comm`. The process chooses it, so it may contain any character. */
  readonly name: string;
  /** One letter: `R` runs, `S` sleeps, `D` waits in the kernel and cannot be killed. */
  readonly state: string;
  /** Ticks since boot. With the PID they distinguish a process from a later one with the same PID. */
  readonly startTicks: string;
}

/** Number of the fields from the state to the start time, both included: fields 3 and 22 of proc_pid_stat(5). */
const FIELDS = 20;
const ESCAPES: Readonly<Record<string, string>> = { '\\n': '\n', '\\\\': '\\' };

/** Parses the text of `/proc/<pid>/stat`; undefined when it has another form. The name ends at the last bracket, because it may contain one. */
function parseProcessStat(text: string): ProcessStat | undefined {
  const [opening, closing] = [text.indexOf('('), text.lastIndexOf(')')];
  if (opening < 0 || closing < opening) return undefined;
  const fields = text
    .slice(closing + 1)
    .trim()
    .split(' ');
  const [state, startTicks] = [fields[0], fields[FIELDS - 1]];
  if (state === undefined || !/^[A-Za-z]$/.test(state) || startTicks === undefined || !/^\d+$/.test(startTicks)) return undefined;
  // The kernel writes a line feed and a backslash of a name as two characters.
  const name = text.slice(opening + 1, closing).replace(/\\[n\\]/g, (pair) => ESCAPES[pair] ?? pair);
  return { name, state, startTicks };
}
