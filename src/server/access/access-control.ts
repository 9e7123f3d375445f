import { atEach, type Clock } from '../../host/clock.ts';
import type { Logger } from '../../log/logger.ts';
import type { WebConfigStats } from '../../model/agent-stats.ts';
import { seconds } from '../../model/duration.ts';
import type { Access, AccessReading, AccessSource } from './access.ts';

const RELOAD_MS = seconds(5);
/** Reads until two in a row are equal, because a rotation can exchange certificate and key between two reads. */
const MOST_READS = 4;

/** Keeps the current access. It reads the files again every five seconds; a wrong file leaves the earlier access in place. */
export class AccessControl {
  readonly #source: AccessSource;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #subscribers = new Set<(access: Access) => void>();
  #access: Access;
  #fingerprint: string;
  #isSuccessful = true;
  #lastSuccessMs: number;
  #isReading = false;
  #stop: (() => void) | undefined;

  /** Throws a {@link UserError} when the files cannot be used. */
  static async open(source: AccessSource, logger: Logger, clock: Clock): Promise<AccessControl> {
    const reading = await settled(source);
    if (reading.problem !== undefined) throw reading.problem;
    return new AccessControl(source, logger, clock, reading.access, reading.fingerprint);
  }

  private constructor(source: AccessSource, logger: Logger, clock: Clock, access: Access, fingerprint: string) {
    this.#source = source;
    this.#logger = logger;
    this.#clock = clock;
    this.#access = access;
    this.#fingerprint = fingerprint;
    this.#lastSuccessMs = clock.now();
  }

  get current(): Access {
    return this.#access;
  }

  subscribe(apply: (access: Access) => void): void {
    this.#subscribers.add(apply);
  }

  stats(): WebConfigStats {
    return { isSuccessful: this.#isSuccessful, lastSuccessMs: this.#lastSuccessMs };
  }

  watch(): void {
    this.#stop = atEach(
      this.#clock,
      () => RELOAD_MS,
      () => void this.reload(),
    );
  }

  close(): void {
    this.#stop?.();
  }

  /** Reads the files. Applies and logs only what has changed since the last read. */
  async reload(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    const reading = await settled(this.#source, this.#fingerprint);
    this.#isReading = false;
    if (reading.fingerprint === this.#fingerprint) return;
    this.#fingerprint = reading.fingerprint;
    const { file } = this.#source;
    if (reading.problem !== undefined) {
      const { message, remedy } = reading.problem;
      return this.#refuse(message, remedy);
    }
    if ((reading.access.tls === undefined) !== (this.#access.tls === undefined)) {
      const now = reading.access.tls === undefined ? 'off' : 'on';
      return this.#refuse(`${file} switches TLS ${now}, which needs a restart`, 'Restart the agent, or undo the change.');
    }
    this.#access = reading.access;
    this.#isSuccessful = true;
    this.#lastSuccessMs = this.#clock.now();
    for (const apply of this.#subscribers) apply(this.#access);
    this.#logger.info('web configuration reloaded', { file, users: this.#access.users.size, tls: this.#access.tls !== undefined });
  }

  #refuse(problem: string, remedy: string): void {
    this.#isSuccessful = false;
    this.#logger.error('web configuration not reloaded; the earlier one stays in use', { problem, remedy });
  }
}

async function settled(source: AccessSource, known?: string): Promise<AccessReading> {
  let last = await source.read();
  for (let reads = 1; reads < MOST_READS && last.fingerprint !== known; reads += 1) {
    const next = await source.read();
    if (next.fingerprint === last.fingerprint) return next;
    last = next;
  }
  return last;
}
