import { readFileSync } from 'node:fs';
import type { IsolatedReader } from '../../src/host/fs/step-record.ts';

/** Reads as another process does for a thread, but at once; what lies below `hung` hangs. */
export function isolatedReader(hung: string): IsolatedReader & { readonly asked: readonly string[] } {
  const asked: string[] = [];
  const read = (path: string, limit: number): Buffer | string => {
    asked.push(path);
    if (path.startsWith(`${hung}/`)) return 'EHUNG';
    try {
      return readFileSync(path).subarray(0, limit);
    } catch (error) {
      return (error as NodeJS.ErrnoException).code ?? 'EUNKNOWN';
    }
  };
  return { asked, read };
}
