import type { Clock } from '../../host/clock.ts';
import { JobThread, moduleBeside } from '../../host/job-thread.ts';
import { seconds } from '../../model/duration.ts';
import type { Comparison } from './password-worker.ts';

/** Compares passwords with bcrypt hashes in a thread, because one comparison takes a tenth of a second of CPU and more. */
export class PasswordThread {
  readonly #thread: JobThread<Comparison, boolean>;

  constructor(clock: Clock) {
    this.#thread = new JobThread({
      name: 'passwords',
      entry: moduleBeside(import.meta.url, 'password-worker'),
      clock,
      memoryMib: 32,
      // A thread takes some MiB, and a scraper's password is known after its first scrape.
      idleMs: seconds(30),
    });
  }

  /** Rejects when the comparison could not be made. */
  async compare(password: string, hash: string): Promise<boolean> {
    const made = await this.#thread.ask({ password, hash });
    if ('answer' in made) return made.answer;
    throw new Error(`passwords cannot be compared: ${made.reason}`);
  }

  close(): void {
    this.#thread.close();
  }
}
