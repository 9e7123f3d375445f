import type { Allocation } from '../model/allocation.ts';
import type { Device } from '../model/device.ts';
import type { HeldRecord } from '../model/device-record.ts';
import type { Reading } from '../model/metric.ts';
import type { ContainerReadings } from '../model/snapshot.ts';

/** The part of a device's record that the accounts use. */
export type UsedDevice = Pick<HeldRecord, 'key' | 'device' | 'holders' | 'readings' | 'processes' | 'strangers' | 'current'>;

/** What the accounts take from one snapshot. */
export interface UsageInput {
  readonly nowMs: number;
  readonly monotonicMs: number;
  /** All devices that are known, missing ones too. */
  readonly devices: readonly UsedDevice[];
  readonly containerReadings: readonly ContainerReadings[];
  /** Wall clock of the kubelet's last answer; absent before the first. A new answer has another value. */
  readonly answeredAtMs?: number | undefined;
  /** UID of the pod that has an allocation. Undefined while it is not known. */
  uidOf(allocation: Allocation): string | undefined;
  /** What was counted of the faults of one container on a device. Absent where faults are not counted. */
  faultsOf?(device: Device, holder: string, uid: string | undefined): readonly Reading[];
}
