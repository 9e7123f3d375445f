import { readlinkSync } from 'node:fs';
import { setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { compareSync } from 'bcryptjs';

/** A comparison that the thread shall make. */
export interface Comparison {
  readonly password: string;
  readonly hash: string;
}

const LOWEST_PRIORITY = 19;

/** On a busy node the agent gets little CPU. Wrong passwords must not take it from scrapes and probes. */
function yieldToOthers(): void {
  try {
    // The link is `<process>/task/<thread>`. Linux has a priority for each thread.
    setPriority(Number(readlinkSync('/proc/thread-self').split('/').at(-1)), LOWEST_PRIORITY);
  } catch {
    // Without /proc the thread keeps the usual priority.
  }
}

yieldToOthers();
parentPort?.on('message', ({ password, hash }: Comparison) => parentPort?.postMessage(compareSync(password, hash)));
