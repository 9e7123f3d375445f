import { execFileSync } from 'node:child_process';
import { closeSync, constants, openSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { until } from '../support/until.ts';

/** Creates a FIFO and replaces a file of that name. A read of it hangs in the kernel. */
export function makeFifo(path: string): void {
  rmSync(path, { force: true });
  execFileSync('mkfifo', [path]);
}

/** Opens the FIFO for writing once a reader hangs in the kernel; the reader keeps hanging. Returns the descriptor. */
export async function heldOpen(fifo: string): Promise<number> {
  let writer: number | undefined;
  const opens = (): boolean => {
    try {
      writer = openSync(fifo, constants.O_WRONLY | constants.O_NONBLOCK);
    } catch {
      // Nobody reads it yet.
    }
    return writer !== undefined;
  };
  await until(opens, `a reader hangs in ${fifo}`);
  return writer as number;
}

/** Lets the hanging reads return and replaces the FIFO with a plain file. */
export function release(fifo: string, writer: number, text: string): void {
  writeFileSync(`${fifo}.new`, text);
  renameSync(`${fifo}.new`, fifo);
  closeSync(writer);
}
