import type { Collection, DeviceReport } from '../model/collection.ts';
import { deviceKey } from '../model/device.ts';
import type { FamilyState } from '../model/snapshot.ts';

/** The last collection of one family, however old. */
export interface Latest {
  readonly collection: Collection;
  /** Wall clock of the end of the read. */
  readonly readAtMs: number;
  /** The same moment by the monotonic clock; absent: as the wall clock. */
  readonly monotonicMs?: number;
}

export interface FamilyInput {
  readonly state: FamilyState;
  readonly latest?: Latest | undefined;
}

/** What is remembered of one device. */
export interface Remembered {
  report: DeviceReport;
  readAtMs: number;
  /** Monotonic clock of that read, by which it ages: the wall clock may be set. Undefined: an earlier run of the agent made it. */
  monotonicMs: number | undefined;
  readonly missingSinceMs?: number;
  /** Monotonic clock of that moment. Absent: an earlier run of the agent missed it first. */
  readonly missingFromMs?: number;
}

/** A device that was not told of: as it is when it is not missing, and undefined once the retention is over. Both clocks tell now. */
export function whileRetained(known: Remembered, retentionMs: number, nowMs: number, monotonicMs: number): Remembered | undefined {
  const { missingSinceMs } = known;
  if (missingSinceMs === undefined) return known;
  const missingFromMs = known.missingFromMs ?? monotonicMs - Math.max(0, nowMs - missingSinceMs);
  return monotonicMs - missingFromMs < retentionMs ? { ...known, missingFromMs } : undefined;
}

/**
 * Where the reports of each family's devices are remembered, in the order of its collection: as long as the same devices come, which
 * is nearly always, what is remembered of them is brought up to date in its place.
 */
export class Seating {
  #rows: readonly (readonly Remembered[])[] = [];

  /** False when a device came, went, changed or is missing: then nothing was done. */
  renew(families: readonly FamilyInput[]): boolean {
    const isSame =
      this.#rows.length === families.length && families.every((family, at) => isSeated(family, this.#rows[at] as Remembered[]));
    if (!isSame) return false;
    for (let at = 0; at < families.length; at += 1) {
      const { latest } = families[at] as FamilyInput;
      if (latest === undefined) continue;
      const [row, { reports }] = [this.#rows[at] as readonly Remembered[], latest.collection];
      const monotonicMs = latest.monotonicMs ?? latest.readAtMs;
      for (let place = 0; place < row.length; place += 1) {
        const seat = row[place] as Remembered;
        seat.report = reports[place] as DeviceReport;
        seat.readAtMs = latest.readAtMs;
        seat.monotonicMs = monotonicMs;
      }
    }
    return true;
  }

  arrange(families: readonly FamilyInput[], known: ReadonlyMap<string, Remembered>): void {
    const rows = families.map(({ latest }) =>
      (latest?.collection.reports ?? []).map(({ device }) => known.get(deviceKey(device)) as Remembered),
    );
    // With one that is remembered though nobody told of it, time has its part.
    const seated = new Set(rows.flat()).size;
    this.#rows = seated === known.size ? rows : [];
  }
}

function isSeated({ latest }: FamilyInput, row: readonly Remembered[]): boolean {
  const reports = latest?.collection.reports ?? NO_REPORTS;
  if (reports.length !== row.length) return false;
  for (let place = 0; place < row.length; place += 1) if (row[place]?.report.device !== reports[place]?.device) return false;
  return true;
}

const NO_REPORTS: readonly DeviceReport[] = [];
