// The build under test: `dist/`, or the directory in BENCH_DIST.
import { resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const DIST = resolve(process.env.BENCH_DIST ?? fileURLToPath(new URL('../../dist', import.meta.url)));

export function dist(path) {
  return import(pathToFileURL(`${DIST}/${path}`).href);
}
