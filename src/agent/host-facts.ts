import { fileURLToPath } from 'node:url';
import type { Clock } from '../host/clock.ts';
import type { ChildRegistry } from '../host/host.ts';
import { runCommand } from '../host/process/command.ts';
import type { HostFacts } from '../model/host-facts.ts';

const DEADLINE_MS = 30_000;
/** The first snapshot goes first. */
const FIRST_AFTER_MS = 1_000;
/** When the calendar could not be asked either. */
const AGAIN_AFTER_MS = 6 * 3_600_000;
/** Whatever the wall clock does meanwhile. */
const SHORTEST_WAIT_MS = 60_000;
const MOST_BYTES = 65_536;

interface Answer {
  readonly facts: HostFacts;
  /** Wall clock of the next time in the calendar. */
  readonly dueAtMs: number;
}

/**
 * Reads host facts once in a process that ends afterwards: the libraries that it takes, and what
 * they bring into memory, would stay in this one for good. Undefined when that fails or takes too long.
 */
export async function askHostFacts(sysfs: string, children?: ChildRegistry): Promise<HostFacts | undefined> {
  return (await ask(sysfs, children))?.facts;
}

async function ask(sysfs: string, children: ChildRegistry | undefined): Promise<Answer | undefined> {
  // Compiled and bundled builds have .js files; a runtime that strips types runs the sources.
  const isSource = import.meta.url.endsWith('.ts');
  const entry = fileURLToPath(new URL(isSource ? './facts-process.ts' : './facts-process.js', import.meta.url));
  const { exitCode, stdout } = await runCommand(process.execPath, [...(isSource ? process.execArgv : []), entry, sysfs], {
    deadlineMs: DEADLINE_MS,
    maxOutputBytes: MOST_BYTES,
    ...(children === undefined ? {} : { children }),
  });
  if (exitCode !== 0) return undefined;
  try {
    return JSON.parse(stdout) as Answer;
  } catch {
    return undefined;
  }
}

/** Keeps host facts: read soon after the start and then by the calendar. */
export class HostFactsKeeper {
  readonly #sysfs: string;
  readonly #clock: Clock;
  readonly #running = new Set<number>();
  #cancel: () => void;
  #facts: HostFacts = {};
  #stopped = false;

  constructor(sysfs: string, clock: Clock) {
    this.#sysfs = sysfs;
    this.#clock = clock;
    this.#cancel = clock.after(FIRST_AFTER_MS, () => void this.#refresh());
  }

  facts(): HostFacts {
    return this.#facts;
  }

  stop(): void {
    this.#stopped = true;
    this.#cancel();
    for (const pid of this.#running) {
      try {
        process.kill(-pid, 'SIGKILL');
      } catch {
        // It ended by itself.
      }
    }
  }

  async #refresh(): Promise<void> {
    const answer = await ask(this.#sysfs, {
      started: (pid) => void this.#running.add(pid),
      ended: (pid) => void this.#running.delete(pid),
    });
    if (this.#stopped) return;
    this.#facts = answer?.facts ?? this.#facts;
    const dueInMs = answer === undefined ? AGAIN_AFTER_MS : answer.dueAtMs - this.#clock.now();
    const waitMs = Math.min(Math.max(dueInMs, SHORTEST_WAIT_MS), AGAIN_AFTER_MS);
    this.#cancel = this.#clock.after(waitMs, () => void this.#refresh());
  }
}
