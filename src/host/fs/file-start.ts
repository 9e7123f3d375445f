import { closeSync, openSync, readSync } from 'node:fs';

/** So many bytes, or all that there are: of a file, a pipe or a device that never ends. `stat` is not asked, since pseudo files lie. */
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
