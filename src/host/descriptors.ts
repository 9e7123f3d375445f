import { closeSync, readFileSync } from 'node:fs';

/** Descriptors that files kept open leave to sockets, threads, pipes and files that are opened for a moment. */
const RESERVE = 256;
const MOST = 65_536;

/**
 * How many files this process may keep open: half of its soft limit, and never so many that fewer than 256 are left for
 * everything else. With a limit of 256 or less that is none. Undefined limit (no procfs): as if it were 1,024.
 */
export function keepableDescriptors(limit: number | undefined = softDescriptorLimit()): number {
  const allowed = limit ?? 1_024;
  return Math.max(0, Math.min(Math.floor(allowed / 2), allowed - RESERVE, MOST));
}

/** Soft limit of open files of this process itself, whose procfs is not that of the machine in a container. */
function softDescriptorLimit(): number | undefined {
  try {
    return parseSoftLimit(readFileSync('/proc/self/limits', 'utf8'));
  } catch {
    return undefined;
  }
}

/** Of the text of `/proc/<pid>/limits`; undefined where it has no such line. */
export function parseSoftLimit(text: string): number | undefined {
  const word = /^Max open files\s+(\S+)/m.exec(text)?.[1];
  if (word === 'unlimited') return MOST * 2;
  return word !== undefined && /^\d+$/.test(word) ? Number(word) : undefined;
}

/** Closes a descriptor that the kernel may have taken back already. */
export function closeQuietly(fd: number): void {
  try {
    closeSync(fd);
  } catch {
    // It has.
  }
}
