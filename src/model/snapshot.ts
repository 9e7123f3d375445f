import type { Allocation } from './allocation.ts';
import type { DeviceProcess, Problem } from './collection.ts';
import type { Device } from './device.ts';
import type { DurationCounts } from './duration-counts.ts';
import type { Verdict } from './health.ts';
import type { Reading } from './metric.ts';
import type { PodResources } from './pod-resources.ts';

/** One device as every output sees it. */
export interface DeviceState {
  /** {@link deviceKey} of `device`. */
  readonly key: string;
  readonly device: Device;
  /** Empty when the device is missing or its last reading is too old to be told. */
  readonly readings: readonly Reading[];
  readonly processes: readonly DeviceProcess[];
  readonly verdict: Verdict;
  /** Who holds it: one entry per allocation that resolves to it. */
  readonly holders: readonly Allocation[];
  /** Wall clock of the read that these readings come from. */
  readonly readAtMs: number;
  /** Present once a complete collection no longer had it. */
  readonly missingSinceMs?: number;
  /** True when its family has not answered for longer than the stale age. */
  readonly stale: boolean;
}

/** Why an allocation has no device. Closed set: value of the label `reason`. */
export type UnresolvedReason = 'no-device' | 'ambiguous' | 'missing-device';

export interface AllocationState {
  readonly allocation: Allocation;
  /** Keys of the devices it stands for; several for a pool. */
  readonly devices: readonly string[];
  readonly unresolved?: UnresolvedReason;
  /** Kept although the kubelet's last answer did not have it. */
  readonly held: boolean;
}

/** Readings of one device that belong to one container: of a device it alone holds, or its own part of a shared one. */
export interface ContainerReadings {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly resource: string;
  /** {@link Device.id}. */
  readonly device: string;
  readonly readings: readonly Reading[];
}

/** How one family's probe is doing. */
export interface FamilyState {
  readonly family: string;
  /** Undefined until the first run ended. */
  readonly succeeded?: boolean;
  readonly lastSuccessMs?: number;
  /** Of the latest run that came to an end. */
  readonly durationMs?: number;
  /** Of all runs that came to an end; absent before the first. */
  readonly durations?: DurationCounts;
  readonly problems: readonly Problem[];
  readonly runs: number;
  readonly failures: number;
  /** Runs that passed their deadline and were given up. */
  readonly abandoned: number;
  /** True while a run is past its deadline and has not come back. */
  readonly hung: boolean;
}

/** Everything known at one time. Immutable; every output reads the same one. */
export interface Snapshot {
  /** Grows by one with each snapshot of this process. */
  readonly sequence: number;
  readonly takenAtMs: number;
  readonly devices: readonly DeviceState[];
  readonly allocations: readonly AllocationState[];
  /** Once for each container and device. */
  readonly containerReadings: readonly ContainerReadings[];
  readonly families: readonly FamilyState[];
  readonly podResources: PodResources;
}
