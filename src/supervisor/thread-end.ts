import type { ProbeThread } from './probe-thread.ts';

/** Waits for ending threads, then terminates them. False when one is still stuck in a system call. Takes at most twice `graceMs`. */
export async function endThreads(threads: readonly ProbeThread[], graceMs: number): Promise<boolean> {
  const exited = Promise.all(threads.map((thread) => thread.exited));
  if (!(await isWithin(exited, graceMs))) {
    for (const thread of threads) thread.terminate();
    await isWithin(exited, graceMs);
  }
  return threads.every((thread) => thread.hasExited);
}

async function isWithin(done: Promise<unknown>, graceMs: number): Promise<boolean> {
  let cancel = (): void => {};
  const late = new Promise<false>((resolve) => {
    const timer = setTimeout(() => resolve(false), graceMs);
    cancel = () => clearTimeout(timer);
  });
  const isDone = await Promise.race([done.then(() => true), late]);
  cancel();
  return isDone;
}
