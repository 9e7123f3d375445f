import { constants } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import type { ReadAnswer, ReadOrder } from './isolated-reads.ts';

/** Largest size that a tree requests in one read. */
const CAPACITY = 65_536;

/**
 * Entry point of the process that reads files for threads that must not hang. Each read runs in a thread of Node's pool. A read that
 * hangs keeps its pool thread, about ten kilobytes, and delays no other read.
 */

/** Free buffers. Without reuse, buffers would be freed late and add up. A read that hangs keeps its buffer. */
const spare: Buffer[] = [];

async function read({ id, path, limit, except }: ReadOrder): Promise<Buffer> {
  if (except !== undefined) await identify(id, path, except);
  const file = await open(path, constants.O_RDONLY);
  const memory = spare.pop() ?? Buffer.allocUnsafeSlow(CAPACITY);
  try {
    const most = Math.min(limit, CAPACITY);
    let length = 0;
    for (let count = -1; count !== 0 && length < most; length += count) {
      count = (await file.read(memory, length, most - length, null)).bytesRead;
    }
    return Buffer.from(memory.subarray(0, length));
  } finally {
    spare.push(memory);
    await file.close();
  }
}

/** A file that an earlier process cannot leave would take this process, too. Asking which file it is opens nothing. */
async function identify(id: number, path: string, except: string): Promise<void> {
  const { dev, ino } = await stat(path);
  if (`${dev}:${ino}` === except) throw Object.assign(new Error('still hangs'), { code: 'EHUNG' });
  send({ id, file: `${dev}:${ino}` });
}

const send = (answer: ReadAnswer): void => void process.send?.(answer, undefined, {}, () => {});

process.on('message', (order: ReadOrder) => {
  read(order).then(
    (bytes) => send({ id: order.id, bytes }),
    (error: NodeJS.ErrnoException) => send({ id: order.id, error: error.code ?? 'EUNKNOWN' }),
  );
});
// The owner has ended. A normal exit would wait for the reads that hang.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
// A terminal sends its signals to this process too; the owner decides when it ends. SIGUSR1 would open Node's inspector.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGUSR1'] as const) process.on(signal, () => {});
