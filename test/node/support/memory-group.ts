import { execFileSync } from 'node:child_process';
import { existsSync, openSync, readdirSync, readFileSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const MIB = 2 ** 20;
/** Files of both versions of cgroups, as `admin-guide/cgroup-v1/memory.rst` and `admin-guide/cgroup-v2.rst` of Linux document them. */
const VERSION_1 = {
  root: '/sys/fs/cgroup/memory',
  limit: 'memory.limit_in_bytes',
  peak: 'memory.max_usage_in_bytes',
  events: 'memory.oom_control',
};
const VERSION_2 = { root: '/sys/fs/cgroup', limit: 'memory.max', peak: 'memory.peak', events: 'memory.events' };

/** The memory of one pod as the kernel charges it: all its containers, and every program that was started in them. */
export class MemoryGroup {
  readonly #files = existsSync(VERSION_1.root) ? VERSION_1 : VERSION_2;
  readonly #directory: string;
  readonly #peak: number;

  /** Throws unless this machine runs the pod, and its kernel can reset the highest use: in version 2 since Linux 6.12. */
  constructor(podUid: string) {
    const found = execFileSync('find', [this.#files.root, '-type', 'd', '-name', `pod${podUid}`], { encoding: 'utf8' });
    this.#directory = found.trim();
    // Version 2 resets the highest use for the readers of one descriptor: the one that was written to.
    this.#peak = openSync(join(this.#directory, this.#files.peak), 'r+');
  }

  /** Limit of all containers together, in MiB. */
  limitMib(): number {
    return Number(readFileSync(join(this.#directory, this.#files.limit), 'utf8')) / MIB;
  }

  /** From now on {@link peakMib} counts anew. */
  reset(): void {
    writeSync(this.#peak, '0');
  }

  /** Highest use since the last {@link reset}, in MiB. It has the pages of files that programs of the pod were the first to read. */
  peakMib(): number {
    const bytes = Buffer.alloc(32);
    const length = readSync(this.#peak, bytes, 0, bytes.length, 0);
    return Number(bytes.toString('latin1', 0, length)) / MIB;
  }

  /** How many processes of the pod the kernel killed for want of memory. */
  kills(): number {
    // Version 1 counts the processes of each cgroup alone, version 2 also those of the cgroups below.
    const isAlone = this.#files === VERSION_1;
    const below = isAlone ? readdirSync(this.#directory, { withFileTypes: true }).filter((entry) => entry.isDirectory()) : [];
    return ['.', ...below.map(({ name }) => name)]
      .map((name) => readFileSync(join(this.#directory, name, this.#files.events), 'utf8'))
      .map((text) => Number(/^oom_kill (\d+)$/m.exec(text)?.[1]))
      .reduce((sum, count) => sum + count);
  }
}
