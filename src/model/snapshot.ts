import type { Allocation } from './allocation.ts';
import type { Problem } from './collection.ts';
import type { ContainerLocality } from './container-locality.ts';
import type { DisabledCheck } from './declaration.ts';
import type { VirtualMachine } from './device.ts';
import type { JudgedRecord } from './device-record.ts';
import type { DurationCounts } from './duration-counts.ts';
import type { ExpectedDevices } from './expected.ts';
import type { PodFactsByName, PodResources } from './pod-resources.ts';
import type { Readings } from './readings.ts';
import type { ContainerWaiting, Usage } from './usage.ts';

/** The part of a device's record that the outputs show. */
export type DeviceState = Pick<
  JudgedRecord,
  | 'key'
  | 'device'
  | 'readings'
  | 'processes'
  | 'verdict'
  | 'holders'
  | 'users'
  | 'delegating'
  | 'readAtMs'
  | 'monotonicMs'
  | 'missingSinceMs'
  | 'stale'
> &
  Partial<Pick<JudgedRecord, 'lastHolders'>>;

/** Why an allocation has no device. These are all values of the label `reason`. */
export type UnresolvedReason = 'no-device' | 'no-part' | 'unknown-part' | 'ambiguous' | 'missing-device';

/** No known device fits: another read of the hardware, or of the files of a claim, may find one. */
export const fitsNoDevice = (reason: UnresolvedReason | undefined): boolean =>
  reason === 'no-device' || reason === 'no-part' || reason === 'unknown-part';

/**
 * How a claim was joined to its devices. The most exact source comes first: the driver's metadata file, its CDI specs, the naming conventions
 * of a family, a rule of the configuration. These are all values of the label `by`.
 */
export type JoinWay = 'metadata' | 'cdi' | 'name' | 'rule';

export interface AllocationState {
  readonly allocation: Allocation;
  /** Keys of its devices; several for a pool. */
  readonly devices: readonly string[];
  /** Only for a claim that has devices. */
  readonly by?: JoinWay;
  /** What a less exact source says instead. Only for a claim. */
  readonly contradiction?: Contradiction;
  readonly unresolved?: UnresolvedReason;
  /** Key of the device of which it names a part that is not found. */
  readonly whole?: string;
  /** Keys of the devices that have its name. Only for an ambiguous one. */
  readonly candidates?: readonly string[];
  /** True when the allocation is kept although the kubelet's last answer lacks it. */
  readonly held: boolean;
}

/** Two sources that disagree on the devices of a claim. The first one counts. */
export interface Contradiction {
  readonly first: { readonly by: JoinWay; readonly devices: readonly string[] };
  readonly other: { readonly by: JoinWay; readonly devices: readonly string[] };
}

/** Gauges of one device for one container: all gauges of an exclusive device, or the container's part of a shared one. */
export interface ContainerReadings {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly resource: string;
  /** `Device.id`. */
  readonly device: string;
  readonly readings: Readings;
}

/** State of one family's probe. */
export interface FamilyState {
  readonly family: string;
  /** Undefined until the first run ended. */
  readonly succeeded?: boolean;
  readonly lastSuccessMs?: number;
  /** Duration of the latest finished run. */
  readonly durationMs?: number;
  /** Durations of all finished runs; absent before the first. */
  readonly durations?: DurationCounts;
  readonly problems: readonly Problem[];
  /** Absent when all checks are made, and for a family without devices. */
  readonly disabledChecks?: readonly DisabledCheck[];
  readonly runs: number;
  readonly failures: number;
  /** Number of runs that passed their deadline and were abandoned. */
  readonly abandoned: number;
  /** True while a run is past its deadline and has not returned. */
  readonly hung: boolean;
  /** A read that could reach all of the family has ended since the machine booted, in this run of the agent or in an earlier one. */
  readonly readCompletely?: boolean;
  /** Ids of devices that were out of service when they were last listed, and that no read has listed since; absent when there are none. */
  readonly unreturned?: readonly string[];
}

/** State of all devices and allocations at one time. Immutable; all outputs read the same snapshot. */
export interface Snapshot {
  /** Grows by one with each snapshot of this process. */
  readonly sequence: number;
  readonly takenAtMs: number;
  readonly devices: readonly DeviceState[];
  readonly allocations: readonly AllocationState[];
  /** Containers that hold a GPU and another device; absent when there is none. */
  readonly localities?: readonly ContainerLocality[];
  /** Absent when nothing tells whether the machine is virtual. */
  readonly virtual?: VirtualMachine;
  /** One entry for each container and device. */
  readonly containerReadings: readonly ContainerReadings[];
  readonly families: readonly FamilyState[];
  readonly podResources: PodResources;
  /** Families for which the configuration expects a number of devices; absent when it expects none. */
  readonly expected?: readonly ExpectedDevices[];
  /** What containers and devices used; absent in a single reading, which has no past. */
  readonly usage?: Usage;
  /** Whether the containers that hold GPUs wait; absent in a single reading, which has no past. */
  readonly waiting?: readonly ContainerWaiting[];
  /** Pods that hold or use devices; absent while the kubelet's Pods API is not asked. */
  readonly pods?: PodFactsByName;
}
