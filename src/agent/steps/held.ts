import { isAllowed } from '../../health/occupancy/explained.ts';
import type { FaultLedger } from '../../incidents/fault-ledger.ts';
import { strangersAmong, type UidOf } from '../../join/processes.ts';
import type { Owners } from '../../join/resolve.ts';
import type { Allocation } from '../../model/allocation.ts';
import { wallClockOf } from '../../model/clock-step.ts';
import { defined } from '../../model/defined.ts';
import type { DeviceRecord, HeldRecord, ReadTimes } from '../../model/device-record.ts';
import type { UseLimits } from '../../model/device-use.ts';
import type { HardwareKeys } from '../../model/hardware.ts';
import { joinedReadings, Readings } from '../../model/readings.ts';
import type { Moment } from '../known-devices.ts';

const NOBODY: readonly Allocation[] = [];

interface RecordInputs {
  /** The first snapshot of this run. */
  readonly begun: Moment;
  readonly now: Moment;
  readonly staleAfterMs: number;
  /** What was counted of the faults of devices, and their keys in it. */
  readonly faults: Pick<FaultLedger, 'readingsOf' | 'findingsOf'>;
  readonly keys: HardwareKeys;
  readonly limits: UseLimits;
  readonly uidOf: UidOf;
}

/** Adds the holders, and the readings that are not too old. */
export function heldRecords(records: readonly DeviceRecord[], holders: Owners['holders'], facts: RecordInputs): readonly HeldRecord[] {
  return records.map((record) => {
    const held = heldRecord(record, holders.get(record.key) ?? NOBODY, facts);
    const users = held.processes.filter((process) => !isAllowed(process, facts.limits));
    const strangers = strangersAmong(users, held.holders, facts.uidOf);
    return strangers.length === 0 ? held : Object.assign(held, { strangers });
  });
}

function heldRecord(record: DeviceRecord, holders: readonly Allocation[], facts: RecordInputs): HeldRecord {
  const { begun, now, staleAfterMs } = facts;
  const key = facts.keys.of(record.device);
  const { read, outOfBand, readBeforeMs, wasHung } = record;
  // A reading of an earlier run is old because no agent ran. The stale age counts from the start of this run instead.
  const isStale = (times: { readonly monotonicMs: number } | undefined): boolean =>
    now.monotonicMs - (times ?? begun).monotonicMs >= staleAfterMs;
  const isPresent = record.missingSinceMs === undefined;
  const stale = isStale(read);
  const current = stale || !isPresent ? undefined : read;
  const faults = isPresent ? facts.faults.readingsOf(key) : Readings.NONE;
  const own = current?.readings ?? Readings.NONE;
  const sideReadings = outOfBand === undefined || isStale(outOfBand) || !isPresent ? faults : joinedReadings(outOfBand.readings, faults);
  // A device that hung gets no new grace time at each start. Otherwise an agent that restarts often would report it as healthy forever.
  const isAwaited = read === undefined && readBeforeMs !== undefined && wasHung === undefined;
  // The number of recent faults decreases with time. While their source is not read, new ones may be missing.
  const repeats = outOfBand?.areFaultsRead === true ? facts.faults.findingsOf(key) : [];
  const times = read ?? readBefore(record, begun);
  return Object.assign(record, {
    holders,
    ...(outOfBand !== undefined &&
      repeats.length > 0 && { repeats: { findings: repeats, readAtMs: outOfBand.readAtMs, monotonicMs: outOfBand.monotonicMs } }),
    current,
    readings: joinedReadings(own, sideReadings),
    processes: current?.processes ?? NO_PROCESSES,
    readAtMs: wallClockOf(times.readAtMs, times.monotonicMs, now),
    ...defined({ monotonicMs: read?.monotonicMs }),
    stale,
    awaitedSinceMs: isAwaited ? begun.nowMs : undefined,
  });
}

const NO_PROCESSES: HeldRecord['processes'] = [];

/**
 * The monotonic times of an earlier run are unknown, so the wall clock at the start of this run gives the age. A time in the future means
 * that the wall clock was set back.
 */
function readBefore({ readBeforeMs: beforeMs = 0 }: DeviceRecord, begun: Moment): Pick<ReadTimes, 'readAtMs' | 'monotonicMs'> {
  const readBeforeMs = Math.min(beforeMs, begun.nowMs);
  return { readAtMs: readBeforeMs, monotonicMs: begun.monotonicMs - (begun.nowMs - readBeforeMs) };
}
