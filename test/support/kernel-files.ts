import { lstatSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';

/** Removes a file, or a directory and all below it, as the kernel removes attributes: who has one open reads nothing of it any more. */
export function removeAsKernel(path: string): void {
  empty(path);
  rmSync(path, { recursive: true, force: true });
}

function empty(path: string): void {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats?.isFile()) truncateSync(path, 0);
  if (stats?.isDirectory()) for (const name of readdirSync(path)) empty(join(path, name));
}
