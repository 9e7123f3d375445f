import type { LineLog } from '../../host/fs/line-log.ts';

/** Some MiB of entries. */
const MAX_RECORDS = 5_000;

/** A log without a disk, for an agent that keeps nothing on disk. It has the latest records. */
export function createMemoryLog(mostRecords = MAX_RECORDS): LineLog {
  let records: readonly object[] = [];
  let dropped = 0;
  return {
    async append(added) {
      const all = [...records, ...added];
      dropped += Math.max(0, all.length - mostRecords);
      records = all.slice(-mostRecords);
      return undefined;
    },
    async read(_fromMs, take) {
      for (const record of records) take(record as Readonly<Record<string, unknown>>);
      return { damagedLines: 0, newerFiles: 0 };
    },
    get dropped() {
      return dropped;
    },
    waiting: 0,
  };
}
