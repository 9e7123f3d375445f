import type { Device } from './device.ts';
import type { Fault } from './fault.ts';
import type { Finding } from './health.ts';
import type { ReadingList } from './readings.ts';

/** A process that uses a device. It distinguishes the holders of a shared device. */
export interface DeviceProcess {
  /** In the host's PID namespace. */
  readonly pid: number;
  /** Name that the kernel has for it: 15 characters at most, one line; absent when `/proc` does not show the process. */
  readonly name?: string;
  /** Its main thread waits in the kernel and cannot be killed (state D). A healthy process does so for moments. */
  readonly isStuck?: true;
  readonly memoryUsedBytes?: number;
  /** A client of an MPS server: the driver counts the time of its kernels as the server's, and may blame it for another client's fault. */
  readonly isMpsClient?: true;
  /** Share of the device's recent time spent on the process, 0 to 1, keyed by engine as in `device_utilization_ratio`. Absent: not known. */
  readonly utilization?: Readonly<Record<string, number>>;
  /** From `/proc/<pid>/cgroup`; absent when the process belongs to no pod or the file is not visible. */
  readonly podUid?: string;
  readonly containerId?: string;
}

/** Report of the device itself in one collection. Its readings get older until the next such report. */
export interface DeviceRead<R = ReadingList> {
  readonly readings: R;
  readonly findings: readonly Finding[];
  readonly processes?: readonly DeviceProcess[];
  /** No other process uses the device. Absent when the driver may have left some out. */
  readonly hasAllProcesses?: true;
}

/** Report of other sources on a device: kernel log, state of the driver. Its findings are of conditions declared with `outOfBand`. */
export interface SideReport<R = ReadingList> {
  readonly readings: R;
  readonly findings: readonly Finding[];
  /** The source of repeated faults was read. So a fault that it does not report did not occur. */
  readonly areFaultsRead?: true;
}

/** All reports of one collection on one device. */
export interface DeviceReport<R = ReadingList> {
  readonly device: Device;
  /** Absent when the device was not read: its readings and its verdict become older. */
  readonly read?: DeviceRead<R>;
  readonly outOfBand?: SideReport<R>;
  /** Faults of the last minute at least, in the order in which they were counted. Absent when there are none. */
  readonly faults?: readonly Fault[];
}

/** Declares one problem that can prevent reads of a family, with its remedy. */
export interface ProblemSpec {
  /** kebab-case, closed set: value of the label `code`. */
  readonly code: string;
  readonly meaning: string;
  readonly remedy: string;
}

/** A problem of the environment that prevented a read. Other devices are unaffected. */
export interface Problem {
  /** `code` of a declared {@link ProblemSpec}. */
  readonly code: string;
  /** The attempted operation and its result, with the file or command. Must not change at each read. */
  readonly message: string;
  /** `id` of the affected device; absent when all devices of the family are affected. */
  readonly device?: string;
}

/** A hanging read of a file or call of a vendor library. Plain data, saved over restarts. */
export interface HungStep {
  readonly kind: 'file' | 'call';
  /** Path of the file; for a call the place of the device and the name of the function. */
  readonly path: string;
}

/**
 * Completeness of the device list of one collection.
 *
 * `complete`: a device that is not listed is missing. `partial`: the collection could not reach everything, so unlisted devices may exist.
 * `absent`: the machine shows no trace of the family (no class directory, no driver), so there was nothing to read.
 */
export type Listing = 'complete' | 'partial' | 'absent';

/** Result of one run of a family's probe. `R`: a family may make readings one by one; the agent keeps them as columns. */
export interface Collection<R = ReadingList> {
  readonly reports: readonly DeviceReport<R>[];
  /** Devices that left a complete list in the last minute: the last line of their driver may arrive with their end. They have no readings. */
  readonly left?: readonly DeviceReport<readonly never[]>[];
  readonly problems: readonly Problem[];
  readonly listing: Listing;
  /** Data source, for display: the name of a program or a library. Absent when the family has only one source. */
  readonly source?: string;
}
