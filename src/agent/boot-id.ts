import { Tree } from '../host/fs/tree.ts';

/** Identity of the present boot of the machine. */
export function bootIdOf(procfs: string): string {
  return new Tree(procfs).text('sys/kernel/random/boot_id') ?? 'unknown';
}
