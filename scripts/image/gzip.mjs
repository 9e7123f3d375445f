// Compresses by the program gzip, which gives the same bytes on each machine. Node's zlib does not: distributions link Node to their own
// zlib, and its bytes differ from those of Node's.
import { spawnSync } from 'node:child_process';

export function gzipOf(content) {
  const { error, status, stdout } = spawnSync('gzip', ['--no-name', '-6'], { input: content, maxBuffer: 2 ** 31 });
  if (error?.code === 'ENOENT') throw new Error('there is no gzip');
  if (error !== undefined || status !== 0) throw error ?? new Error(`gzip ended with ${status}`);
  return stdout;
}
