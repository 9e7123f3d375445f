import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { ReadAnswer, ReadOrder } from './isolated-reads.ts';

/**
 * The program of the process that reads files for threads which must not hang. Each read runs in a thread of Node's pool. One that
 * hangs keeps its pool thread, some ten kilobytes, and nothing else waits for it.
 */

async function read({ path, limit }: ReadOrder): Promise<Buffer> {
  const file = await open(path, constants.O_RDONLY);
  try {
    const bytes = Buffer.alloc(limit);
    let length = 0;
    for (let count = -1; count !== 0 && length < limit; length += count) {
      count = (await file.read(bytes, length, limit - length, null)).bytesRead;
    }
    return bytes.subarray(0, length);
  } finally {
    await file.close();
  }
}

const send = (answer: ReadAnswer): void => void process.send?.(answer, undefined, {}, () => {});

process.on('message', (order: ReadOrder) => {
  read(order).then(
    (bytes) => send({ id: order.id, bytes }),
    (error: NodeJS.ErrnoException) => send({ id: order.id, error: error.code ?? 'EUNKNOWN' }),
  );
});
// The owner has gone, however it ended. An orderly exit would wait for the reads that hang.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
// A terminal sends its signals to this process too; the owner decides when it ends.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
