import { closeSync, openSync, readSync } from 'node:fs';

/** Reads at most `most` bytes of a file, a pipe or an endless device. It does not use `stat`, because pseudo files report a wrong size. */
export function readStart(path: string, most: number): Buffer {
  const bytes = Buffer.alloc(most);
  const descriptor = openSync(path, 'r');
  try {
    let length = 0;
    for (let count = -1; count !== 0 && length < most; length += count) count = readSync(descriptor, bytes, length, most - length, null);
    return bytes.subarray(0, length);
  } finally {
    closeSync(descriptor);
  }
}
