import type { Device } from './device.ts';
import type { Finding } from './health.ts';
import type { Reading } from './metric.ts';

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

/** What a device itself told in one look. Nothing but this makes its readings younger. */
export interface DeviceRead {
  readonly readings: readonly Reading[];
  readonly findings: readonly Finding[];
  readonly processes?: readonly DeviceProcess[];
}

/** What others tell of a device: the kernel log, the state of its driver. Its findings are of conditions declared with `aside`. */
export interface SideReport {
  readonly readings: readonly Reading[];
  readonly findings: readonly Finding[];
}

/** All that one look told about one device. */
export interface DeviceReport {
  readonly device: Device;
  /** Absent when nothing was read from the device: its readings and its verdict grow older. */
  readonly read?: DeviceRead;
  readonly aside?: SideReport;
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

/** A read of a file, or a call of a vendor's library, that does not come back. Plain data, kept over restarts. */
export interface HungStep {
  readonly kind: 'file' | 'call';
  /** Of the file; for a call the place of the device and the name of the function. */
  readonly path: string;
}

/**
 * How much one look says about which devices there are.
 *
 * `complete`: what is not listed is not there. `partial`: the look could not reach everything, so what is not listed may be there.
 * `absent`: the machine shows no trace of the family (no class directory, no driver), so that there was nothing to look at.
 */
export type Listing = 'complete' | 'partial' | 'absent';

/** What one look at one family told. Plain data. */
export interface Collection {
  readonly reports: readonly DeviceReport[];
  readonly problems: readonly Problem[];
  readonly listing: Listing;
  /** By which of several ways it was read, in a few words for people: `nvidia-smi`. Absent where there is one way. */
  readonly source?: string;
}
