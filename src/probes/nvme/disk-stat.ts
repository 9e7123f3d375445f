import { plainText } from '../kit/text.ts';

/** Bytes of a sector in `stat` and `size`, whatever the drive's own block size is. Linux Documentation/block/stat.rst. */
export const SECTOR_BYTES = 512n;

/** Operations of one kind since the disk appeared. */
export interface OperationCounts {
  readonly completed: bigint;
  /** 512-byte sectors; a flush has none. */
  readonly sectors?: bigint;
  readonly milliseconds: bigint;
}

/** Content of `/sys/block/<disk>/stat`. Kernels before 4.18 tell no discards, and kernels before 5.5 no flushes. */
export interface DiskStat {
  readonly read: OperationCounts;
  readonly write: OperationCounts;
  readonly discard?: OperationCounts;
  readonly flush?: OperationCounts;
  /** Operations that the disk has now. */
  readonly inFlight: bigint;
  /** Time with at least one operation. */
  readonly busyMilliseconds: bigint;
  /** Sum of the times of all operations. */
  readonly queuedMilliseconds: bigint;
}

/** Numbers in the file: at least 11. */
const FEWEST = 11;
const [WITH_DISCARDS, WITH_FLUSHES] = [15, 17];

/** Parses the numbers of the file; undefined for other text. The fields are those of Linux Documentation/block/stat.rst. */
export function parseDiskStat(text: string): DiskStat | undefined {
  const words = plainText(text).split(/\s+/);
  if (words.length < FEWEST || !words.every((word) => /^\d{1,20}$/.test(word))) return undefined;
  const at = (index: number): bigint => BigInt(words[index] as string);
  const operations = (first: number): OperationCounts => ({ completed: at(first), sectors: at(first + 2), milliseconds: at(first + 3) });
  return {
    read: operations(0),
    write: operations(4),
    inFlight: at(8),
    busyMilliseconds: at(9),
    queuedMilliseconds: at(10),
    ...(words.length >= WITH_DISCARDS && { discard: operations(11) }),
    ...(words.length >= WITH_FLUSHES && { flush: { completed: at(15), milliseconds: at(16) } }),
  };
}
