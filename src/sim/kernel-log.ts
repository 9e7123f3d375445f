import type { KernelLine } from './family-simulation.ts';

/** The lines of all families as records of `/dev/kmsg`, in the order of their times. Source: Linux Documentation/ABI/testing/dev-kmsg. */
export function kernelLogText(lines: readonly KernelLine[], bootRestMs = 0): string {
  const sorted = lines.toSorted((a, b) => a.atMs - b.atMs);
  return sorted.map(({ atMs, text, level = 4 }, n) => `${level},${n + 1},${Math.round((atMs + bootRestMs) * 1_000)},-;${text}\n`).join('');
}
