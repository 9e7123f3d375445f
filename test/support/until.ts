import { readFileSync } from 'node:fs';

/** How long a test waits for anything: longer than a machine that is as busy as one can be needs, so that what did not come until then does not come. */
export const DEADLINE_MS = 300_000;

/** Waits until a condition holds, and throws at the deadline. `what`: for the message, as what is seen instead. */
export async function until(holds: () => boolean | Promise<boolean>, what = String(holds), seen: () => unknown = () => ''): Promise<void> {
  const endMs = performance.now() + DEADLINE_MS;
  while (!(await holds())) {
    if (performance.now() > endMs) throw new Error(`waited in vain until ${what}\n${String(await seen())}`.trimEnd());
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Repeats what asserts until it holds, and throws its failure, which says what is seen instead, at the deadline. */
export async function eventually(asserts: () => unknown): Promise<void> {
  const endMs = performance.now() + DEADLINE_MS;
  for (;;) {
    try {
      return void (await asserts());
    } catch (error) {
      if (performance.now() > endMs) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Whether a process runs. False also for a zombie, because it has ended. */
export function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}
