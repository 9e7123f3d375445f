import cron from 'node-cron';
import type { Clock } from '../host/clock.ts';
import { readHostFacts } from '../host/facts.ts';
import { Tree } from '../host/fs/tree.ts';
import type { HostFacts } from '../model/host-facts.ts';

/** Memory and kernel change only at a reboot or by hot plug. */
const CALENDAR = '17 */6 * * *';

/** Reads the host facts at the start and then by {@link CALENDAR}, in the background. */
export class HostFactsCache {
  readonly #sys: Tree;
  readonly #clock: Clock;
  readonly #task = cron.schedule(CALENDAR, () => void this.#refresh(), { unref: true, suppressMissedWarning: true });
  #facts: HostFacts = {};

  constructor(sysfs: string, clock: Clock) {
    this.#sys = new Tree(sysfs);
    this.#clock = clock;
    void this.#refresh();
  }

  facts(): HostFacts {
    return this.#facts;
  }

  stop(): void {
    void this.#task.destroy();
  }

  async #refresh(): Promise<void> {
    this.#facts = await readHostFacts(this.#sys, this.#clock).catch(() => this.#facts);
  }
}
