import type { Clock } from '../host/clock.ts';
import { JobThread, moduleBeside } from '../host/job-thread.ts';
import type { DeviceMarks } from './kernel-lines.ts';
import type { KernelSearch } from './kernel-worker.ts';
import type { KernelPart } from './record.ts';

/** `path`: undefined when the log is not read. */
type KernelPaths = Pick<KernelSearch, 'procfs'> & { readonly path: string | undefined };

/** Searches the kernel log in a thread, which ends after the search. Devices that fail together share one search. */
export class KernelLog {
  readonly #paths: KernelPaths;
  readonly #thread: JobThread<KernelSearch, readonly KernelPart[]>;
  #waiting: { readonly marks: DeviceMarks; resolve(part: KernelPart): void }[] = [];
  #isClosed = false;

  constructor(paths: KernelPaths, clock: Clock) {
    this.#paths = paths;
    this.#thread = new JobThread({
      ...{ name: 'kernel-log', entry: moduleBeside(import.meta.url, 'kernel-worker'), clock, memoryMib: 64 },
      // The log can only be read from its begin, so all of it is read. A usual log takes some milliseconds.
      deadlineMs: 5_000,
      idleMs: 0,
    });
  }

  /** The last lines about a device. Never rejects: a part without lines says why. */
  linesOf(marks: DeviceMarks): Promise<KernelPart> {
    if (this.#paths.path === undefined) return Promise.resolve(unread('path.kmsg is empty, so the kernel log is not read'));
    return new Promise((resolve) => {
      this.#waiting.push({ marks, resolve });
      // The other devices of this snapshot come in the same turn.
      if (this.#waiting.length === 1) queueMicrotask(() => void this.#search());
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#thread.close();
  }

  async #search(): Promise<void> {
    const asked = this.#waiting.splice(0);
    const { path = '', procfs } = this.#paths;
    const made = this.#isClosed ? undefined : await this.#thread.ask({ path, procfs, devices: asked.map(({ marks }) => marks) });
    const why =
      made === undefined || this.#isClosed
        ? 'the agent ended before it read the kernel log'
        : `reading ${path} failed: ${'reason' in made ? made.reason : 'it gave no answer'}`;
    for (const [at, { resolve }] of asked.entries()) resolve((made !== undefined && 'answer' in made && made.answer[at]) || unread(why));
  }
}

const unread = (problem: string): KernelPart => ({ lines: [], problem });
