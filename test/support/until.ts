import { readFileSync } from 'node:fs';

/** Waits until a condition holds. Throws after `limitMs`, so that a test names what never came. */
export async function until(holds: () => boolean | Promise<boolean>, what = String(holds), limitMs = 40_000): Promise<void> {
  const end = performance.now() + limitMs;
  while (!(await holds())) {
    if (performance.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
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
