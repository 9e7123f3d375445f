import type { Host } from '../../host/host.ts';
import { type CommandResult, runCommand } from '../../host/process/command.ts';
import type { Problem } from '../../model/collection.ts';
import { childrenOf, type Element } from './document.ts';
import { instanceKeys, type MigName, type MigNames, migNames, parseListing } from './listing.ts';
import type { NvidiaOptions } from './options.ts';
import { readSmi, type SmiDocument, type SmiFailure, type SurplusFault, surplusFaults } from './smi.ts';

/** Left for `nvidia-smi -L`, however long `-q -x` took. */
const LEAST_FOR_NAMES_MS = 500;

/** The document with what is not in it: names of MIG instances, and GPUs named in the lines around it. */
export interface SmiRead {
  readonly log: Element;
  readonly names: MigNames;
  readonly faults: readonly SurplusFault[];
  readonly problems: Problem[];
  readonly problem?: undefined;
}

/** `nvidia-smi`, one at a time. */
export class SmiSource {
  readonly #host: Host;
  readonly #options: NvidiaOptions;
  /** A command that even SIGKILL did not end. */
  #unreaped: Promise<void> | undefined;
  #migNames: ReadonlyMap<string, MigName> = new Map();

  constructor(host: Host, options: NvidiaOptions) {
    this.#host = host;
    this.#options = options;
  }

  async read(): Promise<SmiRead | SmiFailure> {
    if (this.#unreaped !== undefined) {
      return { surplus: '', problem: { code: 'smi-unreaped', message: 'nvidia-smi -q -x: an earlier one sleeps in the kernel' } };
    }
    const startedMs = this.#host.clock.monotonic();
    const smi = readSmi(await this.#run(['-q', '-x'], this.#options.timeout));
    if (smi.problem !== undefined) return smi;
    return await this.#completed(smi, this.#options.timeout - (this.#host.clock.monotonic() - startedMs));
  }

  async #run(args: readonly string[], deadlineMs: number): Promise<CommandResult> {
    const result = await runCommand(this.#options['smi-path'], args, {
      deadlineMs,
      children: this.#host.children,
      clock: this.#host.clock,
    });
    if (result.stillRunning !== undefined) {
      this.#unreaped = result.stillRunning.then(() => {
        this.#unreaped = undefined;
      });
    }
    return result;
  }

  async #completed({ log, surplus, exitCode }: SmiDocument, remainingMs: number): Promise<SmiRead> {
    const problems: Problem[] = [];
    const names = await this.#instances(childrenOf(log, 'gpu'), remainingMs, problems);
    const faults = surplusFaults(surplus);
    if (exitCode === 14 && !faults.some(({ fault }) => fault === 'inforom'))
      problems.push({ code: 'inforom-corrupted', message: 'nvidia-smi -q -x: exit status 14' });
    return { log, names, faults, problems };
  }

  /**
   * Names of the MIG instances. An instance whose name was once told keeps it while the listing fails: a device that changes its
   * name would be one that went missing and another that appeared.
   */
  async #instances(gpus: readonly Element[], remainingMs: number, problems: Problem[]): Promise<MigNames> {
    const wanted = gpus.flatMap((gpu) => instanceKeys(gpu));
    if (wanted.length === 0) {
      this.#migNames = new Map();
      return this.#migNames;
    }
    const listing = await this.#run(['-L'], Math.max(LEAST_FOR_NAMES_MS, remainingMs));
    const named = migNames(gpus, parseListing(listing.stdout));
    const missing = wanted.filter((key) => !named.has(key));
    if (missing.length > 0) {
      const why = listing.failure ?? `exit status ${listing.exitCode ?? listing.signal}`;
      problems.push({ code: 'mig-names-unknown', message: `nvidia-smi -L: ${why}, no name for ${missing.length} MIG instances` });
      for (const key of missing) {
        const earlier = this.#migNames.get(key);
        if (earlier !== undefined) named.set(key, earlier);
      }
    }
    this.#migNames = named;
    return named;
  }
}
