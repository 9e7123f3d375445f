import { Worker } from 'node:worker_threads';
import cron from 'node-cron';
import type { HostFacts } from '../model/host-facts.ts';

const DEADLINE_MS = 30_000;

/** Reads host facts once in a thread that ends afterwards; undefined when that fails or takes too long. */
export function askHostFacts(sysfs: string): Promise<HostFacts | undefined> {
  return new Promise((resolve) => {
    const entry = import.meta.url.endsWith('.ts') ? './facts-worker.ts' : './facts-worker.js';
    const worker = new Worker(new URL(entry, import.meta.url), { workerData: { sysfs }, name: 'host-facts' });
    worker.unref();
    const deadline = setTimeout(() => void worker.terminate(), DEADLINE_MS);
    deadline.unref();
    worker.once('message', (facts: HostFacts) => resolve(facts));
    worker.once('error', () => resolve(undefined));
    worker.once('exit', () => {
      clearTimeout(deadline);
      resolve(undefined);
    });
  });
}

/** Keeps host facts: read at start and then by the calendar, since memory and kernel change only with a reboot or hot plug. */
export class HostFactsKeeper {
  readonly #sysfs: string;
  readonly #task: { stop(): unknown; destroy(): unknown };
  #facts: HostFacts = {};

  constructor(sysfs: string) {
    this.#sysfs = sysfs;
    this.#task = cron.schedule('17 */6 * * *', () => this.refresh(), { noOverlap: true, name: 'host-facts' });
    void this.refresh();
  }

  facts(): HostFacts {
    return this.#facts;
  }

  async refresh(): Promise<void> {
    this.#facts = (await askHostFacts(this.#sysfs)) ?? this.#facts;
  }

  stop(): void {
    this.#task.stop();
    this.#task.destroy();
  }
}
