import type { Device } from './device.ts';
import type { Finding } from './health.ts';
import type { Readings } from './readings.ts';

/** A process that uses a device, for telling the holders of a shared device apart. */
export interface DeviceProcess {
  /** In the host's PID namespace. */
  readonly pid: number;
  readonly memoryUsedBytes?: number;
  /** Share of the device's time, 0 to 1, that was spent on it of late, by engine as in `device_utilization_ratio`. */
  readonly utilization?: Readonly<Record<string, number>>;
  /** From `/proc/<pid>/cgroup`; absent when the process belongs to no pod or the file is not visible. */
  readonly podUid?: string;
  readonly containerId?: string;
}

/** All that one read told about one device. */
export interface DeviceReport {
  readonly device: Device;
  readonly readings: Readings;
  readonly findings: readonly Finding[];
  readonly processes?: readonly DeviceProcess[];
}

/** Declaration of one thing that can keep a family from reading, with the way out. */
export interface ProblemSpec {
  /** kebab-case, closed set: value of the label `code`. */
  readonly code: string;
  readonly meaning: string;
  readonly remedy: string;
}

/** Something in the environment prevented a read. Other devices are unaffected. */
export interface Problem {
  /** `code` of a declared {@link ProblemSpec}. */
  readonly code: string;
  /** What was tried and what came back, file or command included. No text that changes at each read. */
  readonly message: string;
  /** `id` of the device concerned; absent when the whole family is. */
  readonly device?: string;
}

/** The whole truth of one family at one time: a device that is not in it was not there. Plain data. */
export interface Collection {
  readonly reports: readonly DeviceReport[];
  readonly problems: readonly Problem[];
  /**
   * False when the probe could not look (driver gone, command hung): devices that it reported earlier are then stale,
   * not missing. Default true.
   */
  readonly complete?: boolean;
  /** By which of several ways it was read, in a few words for people: `nvidia-smi`. Absent where there is one way. */
  readonly source?: string;
}
