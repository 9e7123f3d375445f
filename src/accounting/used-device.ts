import type { Allocation } from '../model/allocation.ts';
import type { DeviceProcess } from '../model/collection.ts';
import type { Device } from '../model/device.ts';
import type { Reading } from '../model/metric.ts';
import type { ContainerReadings } from '../model/snapshot.ts';

/** One device, as one snapshot has it. */
export interface UsedDevice {
  readonly key: string;
  readonly device: Device;
  readonly holders: readonly Allocation[];
  readonly readings: readonly Reading[];
  readonly processes: readonly DeviceProcess[];
  /** Begin and end of the read that gave the readings, on the monotonic clock. Absent while the device is missing, stale or never read. */
  readonly read?: { readonly fromMs: number; readonly toMs: number };
}

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
}
