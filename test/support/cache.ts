import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';

/** A folder of this checkout for what takes long to make and is the same for each run. */
export function cacheFolder(): string {
  const folder = resolve('node_modules/.cache/device-agent-tests');
  mkdirSync(folder, { recursive: true });
  return folder;
}
