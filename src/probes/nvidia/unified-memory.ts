import type { Tree } from '../../host/fs/tree.ts';
import type { ReadingWriter } from '../kit/reading-writer.ts';
import { metrics } from './metrics.ts';
import type { GpuSample } from './sample.ts';

/** Chips whose GPU has no memory but that of the host. The driver answers NOT_SUPPORTED for it, as it does for other reasons on other GPUs. */
const UNIFIED = /\b(?:GB10|Thor)\b/;

export function writeUnifiedMemory(writer: ReadingWriter, { identity, values, unread = [] }: GpuSample, proc: Tree): void {
  const isTold = values?.memoryTotalBytes !== undefined || unread.some(({ value }) => value === 'memoryTotalBytes');
  if (isTold || !UNIFIED.test(identity?.name ?? '')) return;
  const [, ...fields] = /^MemTotal:\s+(\d{1,12}) kB$[\s\S]*^MemAvailable:\s+(\d{1,12}) kB$/m.exec(proc.text('meminfo') ?? '') ?? [];
  const [total, available] = fields.map((kibibytes) => Number(kibibytes) * 1_024);
  writer.add(metrics.unifiedMemoryTotal.name, total);
  writer.add(metrics.unifiedMemoryAvailable.name, available);
}
