import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await pause(5);
}

/** In place of a file, if there is one. Who reads it hangs in the kernel. */
export function makeFifo(path: string): void {
  rmSync(path, { force: true });
  execFileSync('mkfifo', [path]);
}

/** Opens for writing once somebody is in the kernel to read, who goes on hanging: gives the descriptor. */
export async function heldOpen(fifo: string): Promise<number> {
  for (;;) {
    try {
      return openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch {
      await pause(5);
    }
  }
}

/** Reads come back, and find a plain file from then on. */
export function release(fifo: string, writer: number, text: string): void {
  writeFileSync(`${fifo}.new`, text);
  renameSync(`${fifo}.new`, fifo);
  closeSync(writer);
}
