import type { Allocation } from './allocation.ts';
import type { DeviceProcess, DeviceRead, SideReport } from './collection.ts';
import type { Device } from './device.ts';
import type { DeviceUse, DeviceUser, LastHolders } from './device-use.ts';
import type { Fault } from './fault.ts';
import type { Finding, Verdict } from './health.ts';
import type { Readings } from './readings.ts';

/** Begin and end of the reading that gave a report. */
export interface ReadTimes {
  /** Monotonic clock of its start: no reading in it is older. */
  readonly startedMs: number;
  /** Wall and monotonic clock of its end. */
  readonly readAtMs: number;
  readonly monotonicMs: number;
}

/** Findings of one source on a device, with their time. */
export interface SourceFindings {
  readonly findings: readonly Finding[];
  /** Wall clock of the reading. */
  readonly readAtMs: number;
  /** Monotonic clock of the reading. It gives the age after a step of the wall clock. */
  readonly monotonicMs?: number;
}

/**
 * One known device with the latest report of each source. Each snapshot makes one such object for a device, and its steps add to it:
 * {@link HeldRecord}, {@link UsedRecord}, {@link JudgedRecord}. No step changes what an earlier one wrote, and nothing changes the object
 * after the last step. Plain data.
 */
export interface DeviceRecord {
  /** `family/id`. */
  readonly key: string;
  readonly device: Device;
  /** Last report of the device itself; absent while this run of the agent has not read it. */
  readonly read?: (DeviceRead<Readings> & ReadTimes) | undefined;
  /** Last report of other sources. */
  readonly outOfBand?: (SideReport<Readings> & ReadTimes) | undefined;
  /** Faults in the latest collection. */
  readonly faults?: readonly Fault[] | undefined;
  /** The latest reading of the family did not read this device, so `read` says nothing about the present. */
  readonly isUnread: boolean;
  /** Monotonic clock at the end of the first reading of this run that had the device. */
  readonly firstReadMs?: number | undefined;
  /** Wall clock of the last read by an earlier run of the agent. */
  readonly readBeforeMs?: number | undefined;
  /** A read of it hung when an earlier run of the agent ended. */
  readonly wasHung?: true | undefined;
  /** Wall clock of the moment when the device went missing: a complete collection no longer listed it. */
  readonly missingSinceMs?: number;
  /** Monotonic clock of `missingSinceMs`, because the wall clock may be set. Before the start if an earlier run already missed it. */
  readonly missingFromMs?: number;
}

/** A record after the join: it has the holders, and the readings that are not too old. */
export interface HeldRecord extends DeviceRecord {
  /** Allocations that resolve to the device. */
  readonly holders: readonly Allocation[];
  /** How often faults of the device occurred. Absent without faults that can repeat, and while their source is not read. */
  readonly repeats?: SourceFindings | undefined;
  /** `read`, while the device is neither missing nor stale. */
  readonly current: (DeviceRead<Readings> & ReadTimes) | undefined;
  /** Empty when the device is missing or its last reading is stale. */
  readonly readings: Readings;
  readonly processes: readonly DeviceProcess[];
  /** Those of them whose pod certainly does not hold the device, without the programs that may use it: users and who is not known yet. Absent: none. */
  readonly strangers?: readonly DeviceProcess[] | undefined;
  /** Time of the read that gave these readings, on the wall clock as it is set now. A reading can have an earlier one of its own. */
  readonly readAtMs: number;
  /** Monotonic clock of that read; absent while this run of the agent has not read the device. */
  readonly monotonicMs?: number;
  /** True when the device was not read for longer than the stale age. */
  readonly stale: boolean;
  /** Pods that certainly use it without holding it. Absent: none. */
  readonly users?: readonly DeviceUser[] | undefined;
  /** Those of its holders that hold it for its users. Absent: none. */
  readonly delegating?: readonly Allocation[] | undefined;
  /** Wall clock of the start of this run. The stale age of a device that an earlier run read counts from here. */
  readonly awaitedSinceMs: number | undefined;
}

/** A record after the use of the device was compared with its holders. */
export interface UsedRecord extends HeldRecord {
  /** Its present or last holders, which are remembered over a restart. */
  readonly lastHolders: LastHolders | undefined;
  /** What the device did, compared with who holds it. Undefined when the latest reading did not read the device. */
  readonly occupancy: DeviceUse | undefined;
  /** The findings on `occupancy`. */
  readonly use: SourceFindings | undefined;
}

/** The complete record. */
export interface JudgedRecord extends UsedRecord {
  readonly verdict: Verdict;
}

/** Records of devices, keyed by device key. */
export type RecordsByKey = ReadonlyMap<string, DeviceRecord>;
