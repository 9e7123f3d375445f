import type { SeriesChoice } from './metric.ts';

/** Who decides what a family says, the first one first: the code of the program, a declaration of its package, one of the administrator. */
export const ORIGINS = ['code', 'package', 'administrator'] as const;
export type Origin = (typeof ORIGINS)[number];

/** What hardware is to the agent that the driver does not show as a device. The texts are cells of the page of the family's conditions. */
export interface ListedHardware {
  /** The hardware, and its state. */
  readonly what: string;
  /** How it is listed, and with which verdict. */
  readonly is: string;
}

/** A kind of devices that contain others. The texts are cells of the reference of metrics. */
export interface PartSums {
  readonly parent: string;
  readonly parts: string;
  /** Which values of the parent include those of its parts. */
  readonly areIncluded: string;
}

/** What a replay of a captured machine offers the probe of a family in place of the machine. */
export interface CapturedSources {
  /** Options of the family on the captured machine; those that had their default may be absent. */
  readonly options: Readonly<Record<string, string>>;
  /** Whether a library of the vendor answered on the captured machine. */
  readonly hasAnswers: boolean;
  /** File with its recorded answers, which changes while the replay goes on. Without answers it does not exist. */
  readonly answersFile: string;
}

/** PCI functions that are hardware of a family, and what its drivers make of them. Source of the codes: PCI ID repository. */
export interface BusHardware {
  /** Display name: `Acme accelerator`. */
  readonly what: string;
  /** `0x10de`, lower case. Absent: any. */
  readonly vendor?: string;
  /** Name of the vendor, for a device that only the bus shows. */
  readonly maker?: string;
  /** Prefixes of the class code, without `0x`. Absent: any. */
  readonly classes?: readonly string[];
  /** PCI device ids; needed when the vendor makes other hardware of the same class. */
  readonly devices?: readonly string[];
  /** Kind of the device that a function is. */
  readonly kind: string;
  /** Drivers that make a device of the function. Absent: any that is not made to hand it over. */
  readonly drivers?: readonly string[];
  /** Drivers of users make a device of it, too. */
  readonly hasOtherDrivers?: true;
  /** A machine has this hardware only to use it: without a driver it is faulty, also where nothing shows that somebody wants it. */
  readonly isAlwaysWanted?: true;
  /** Number of device nodes that the driver makes for each function. */
  readonly nodes?: number;
  /** A function that the family does not list is listed only when its start failed, or when it worked before. */
  readonly isListedByFault?: true;
}

/**
 * What a family needs of the host beyond `/sys` and `/proc`, for some of its checks.
 *
 * `device-nodes`: a listing of the host's `/dev`. `kernel-log`: reads of `/dev/kmsg`. `process-files`: the open files of all processes.
 * `process-ids`: the PID namespace. `network`: the network namespace. `admin-commands`: device nodes that may be opened, and SYS_ADMIN.
 */
export type HostPart = 'device-nodes' | 'kernel-log' | 'process-files' | 'process-ids' | 'network' | 'admin-commands';

/** The value of the chart that gives each part. A test compares it with the pods that the chart makes. */
export const CHART_VALUES: Readonly<Record<HostPart, string>> = {
  'device-nodes': 'dev.enabled',
  'kernel-log': 'kmsg.enabled',
  'process-files': 'processes.enabled',
  'process-ids': 'hostPID',
  network: 'hostNetwork',
  'admin-commands': 'nvme.smart.enabled',
};

/** Declares checks of a family that need a part of the host. */
export interface HostNeed {
  /** kebab-case, closed set: value of the label `check`. */
  readonly check: string;
  readonly part: HostPart;
  /** Codes of problems of the family that say that the part is not given. Empty: no read shows it. */
  readonly problems: readonly string[];
}

/** A check that the agent cannot make, because a part of the host is not given to it. */
export interface DisabledCheck {
  readonly check: string;
  /** Code of the problem that says so. */
  readonly reason: string;
}

/** The checks that the present problems of a family disable. */
export function disabledChecks(needs: readonly HostNeed[], problems: readonly { readonly code: string }[]): readonly DisabledCheck[] {
  const codes = new Set(problems.map(({ code }) => code));
  return needs.flatMap(({ check, problems: own }) => own.filter((code) => codes.has(code)).map((reason) => ({ check, reason })));
}

/** What shows that a device of a family works. A family without it has no idle and no busy time: its use is unknown. */
export interface ActivitySpec {
  /** Engines of `device_utilization_ratio`. The device is busy while one of them is above the threshold. */
  readonly utilization?: {
    /** Default of the option: share of time, 0 to 1. */
    readonly above: number;
    /** Engines that count. All engines when absent. */
    readonly engines?: readonly string[];
    /**
     * Means over the time since the read before, keyed by engine. Where such a mean was read, it counts instead of the utilization of that
     * engine, which is a sample of the driver's last fraction of a second: one sample for ten seconds makes short steps whole or nothing.
     */
    readonly means?: Readonly<Record<string, SeriesChoice>>;
    readonly doubted?: DoubtedUtilization;
  };
  /** Counters of bytes. The device is busy while their sum grows faster than the threshold. */
  readonly traffic?: {
    /** Names of declared counters; all series of each are added. */
    readonly metrics: readonly string[];
    /** Default of the option: bytes per second. */
    readonly above: number;
  };
  /**
   * True when only processes of the holder have business on the device, as on a GPU. False when the host uses it too: the network of
   * the node runs over its adapters.
   */
  readonly isForHoldersOnly: boolean;
}

/**
 * An engine whose utilization some drivers hold at 100 % while the device rests. It does not count when no process uses the device, and clock, power and another
 * engine say that it rests: all of them, each of them read.
 */
export interface DoubtedUtilization {
  readonly engine: string;
  /** Engine that is at 0. */
  readonly still: string;
  /** Clock, and the share of its maximum up to which it rests. */
  readonly clock: string;
  readonly clockShare: number;
  /** Sensors and limits of the power, the best first, and the share of the limit up to which the device rests. */
  readonly power: ProgressSpec['power'];
  readonly powerShare: number;
}

/** Thresholds that the configuration sets, keyed by family. */
export type IdleThresholds = Readonly<Record<string, { readonly utilization?: number; readonly 'bytes-per-second'?: number }>>;

/** Bytes over one kind of link of a device. The counters count where they are read, otherwise the rates. */
export interface ByteSource {
  readonly name: string;
  /** Counters of all ports of this kind: `port` is this word, alone or with a number. */
  readonly counters?: { readonly metrics: readonly string[]; readonly port: string };
  /** Means since the read before, in bytes per second. A sample of a shorter time is no mean. */
  readonly rates?: SeriesChoice;
}

/** A pipe of a device. */
export interface Pipe extends SeriesChoice {
  /** Part of its activity that counts, 0 to 1: less than 1 for a pipe that a spinning kernel uses a little. 1 when absent. */
  readonly weight?: number;
}

/** What shows whether the work on a device moves on. Without it, a device of the family is never said to wait. */
export interface ProgressSpec {
  /** Engine of `device_utilization_ratio` that is busy while a kernel runs, also while the kernel only spins. */
  readonly engine: string;
  /** Shares of time of all pipes that can do work. A spinning kernel leaves them near 0. A device need not report each of them. */
  readonly pipes: readonly Pipe[];
  /** Sensor of `device_power_watts` and limit of `device_power_limit_watts`, the best first. */
  readonly power: { readonly sensors: readonly string[]; readonly limits: readonly string[] };
  readonly bytes: readonly ByteSource[];
  /** Models whose utilization is known to be wrong, as a part of the name of the model, with the source. They are never judged. */
  readonly unreliable?: readonly { readonly model: string; readonly source: string }[];
}
