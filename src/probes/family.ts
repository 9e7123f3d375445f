import type { Host } from '../host/host.ts';
import type { DeviceAccess } from '../model/access.ts';
import type { Resolve } from '../model/allocation.ts';
import type { ClaimForms, ClaimName } from '../model/claim-hardware.ts';
import type { Collection, DeviceReport, ProblemSpec } from '../model/collection.ts';
import type { DeviceRole } from '../model/container-locality.ts';
import type {
  ActivitySpec,
  BusHardware,
  CapturedSources,
  HostNeed,
  ListedHardware,
  Origin,
  PartSums,
  ProgressSpec,
} from '../model/declaration.ts';
import type { Device } from '../model/device.ts';
import type { ConditionSpec } from '../model/health.ts';
import type { Vocabulary } from '../model/known-text.ts';
import type { MetricSpec } from '../model/metric.ts';
import type { OptionSpecs, OptionValues } from '../model/options.ts';
import type { Release } from '../model/release.ts';
import type { PageReadings } from '../model/shared-metrics.ts';
import type { LogRow } from './kit/log-row.ts';

/**
 * The contract of a device family. A family is one folder below `src/probes`. Its `index.ts` exports a constant `family` of
 * this type. All functions but `createProbe` take and return plain data.
 */
export interface DeviceFamily<S extends OptionSpecs = OptionSpecs> {
  /** Equals the name of the folder. */
  readonly name: string;
  /** Names the hardware in one line, for `--help` and the reference. */
  readonly summary: string;
  /** Name of its devices for people, where it differs from `name`. */
  readonly title?: string;
  /** What the family was checked against, when that is less than hardware. */
  readonly proven?: string;
  /** The probe uses a library or a program of the vendor. It gets a reader of its own when they are slow, hang or end their process. */
  readonly canBeSlow?: boolean;
  /** The data that a declared family is made of. Its reader builds the family from it, and loads the folder of a family in code. */
  readonly declared?: object;
  /** Who decides what a declared family says. Default: `code`. */
  readonly origin?: Origin;
  /** The family is read only when the configuration enables it. */
  readonly isOffByDefault?: boolean;
  /** All values of `Device.kind`. */
  readonly kinds?: readonly string[];
  /** Kinds that are always parts of other devices, also where the other is not visible. `expect` does not count them. */
  readonly partKinds?: readonly string[];
  /** Kinds of parts that drivers make for a container and destroy after it. One that ends without a holder is not missing. */
  readonly passingKinds?: readonly string[];
  /** What its devices are for the transfers between devices. Without it, the family has no part in the locality of a container. */
  readonly role?: DeviceRole;
  /** What the values of a parent include of its parts, for the reference of metrics. */
  readonly partSums?: readonly PartSums[];
  /** What hardware is that the driver does not show, for the page of the conditions. */
  readonly listing?: readonly ListedHardware[];
  readonly metrics: readonly MetricSpec[];
  readonly conditions: readonly ConditionSpec[];
  readonly problems: readonly ProblemSpec[];
  /** Lines of its drivers in the kernel log, which the probe follows by `RowLog`. */
  readonly logRows?: readonly LogRow[];
  /** What some of its checks need of the host beyond `/sys` and `/proc`. */
  readonly needs?: readonly HostNeed[];
  /**
   * Returns false when a probe would find no device of the family. The caller calls it at each refresh until the family has a device.
   * It therefore only lists a few directories and reads ids of PCI functions, which the kernel has in memory. Without this function the caller assumes true.
   */
  isPresent?(host: Host, options?: OptionValues<S>): boolean;
  /** Its hardware on the PCI bus, with or without a driver. */
  readonly bus?: readonly BusHardware[];
  /** Each option is available as `--probe.<name>.<option>`. */
  readonly options: S;
  /** The probe keeps the driver open, and closes it on request: see {@link Probe.release}. */
  readonly canRelease?: true;
  createProbe(host: Host, options: OptionValues<S>): Probe;
  /** Needed only when an allocated id can be something else than the id or an alias of a device. */
  readonly resolve?: Resolve;
  /** Whether ids of a resource may be bare numbers that {@link resolve} knows. Without it, a bare number names no device. */
  ownsNumbers?(resource: string): boolean;
  /** Returns the names that known DRA drivers use for a device, the most likely name first. It is the inverse of `resolve`. */
  claimNames?(device: Device): readonly ClaimName[];
  /** The protocol with which the vendor's device plugin asks for the health of devices. */
  readonly askedBy?: 'metricssvc' | 'xpumd';
  /** Drivers of claims, and resources, of the vendor that stand for no hardware. */
  readonly withoutHardware?: readonly string[];
  /** How drivers of claims describe the devices in their files. */
  readonly claimForms?: ClaimForms;
  /** Names of the vendor's programs that may use devices without holding them: they are in the default of `usage.allowed-processes`. */
  readonly programs?: readonly string[];
  /** Ids of plugins whose scheduler chooses the device by itself: they are in the default of `usage.delegated-ids`. */
  readonly delegatedIds?: readonly string[];
  /** What shows that a device works. Without it, the use of the family's devices is never observed. */
  readonly activity?: ActivitySpec;
  /** What shows whether work on a device moves on. Without it, the family's devices are never said to wait. */
  readonly progress?: ProgressSpec;
  /** What page and terminal show first of each kind of device. Of a kind that is absent, they choose from the shared metrics. */
  readonly shows?: PageReadings;
  /** Needed only when the companion plugin can serve the devices. */
  access?(device: Device): DeviceAccess;
  /**
   * Options with which the probe reads a captured machine and nothing of the machine of the replay. Needed when it has other sources than
   * files of `path.sysfs`, `path.procfs` and `path.dev`, programs (options `…-path`) and the kernel log.
   */
  replayOptions?(captured: CapturedSources): Readonly<Record<string, string>>;
  /** What the family understands of its sources. A capture with replaced names keeps this and nothing else. */
  readonly known?: Vocabulary;
}

/** Reads the hardware of one family. It runs in a reader, a process that the agent kills when it hangs, so it may block. */
export interface Probe {
  /**
   * Reads all devices and returns plain data. The caller never calls it while an earlier call is pending. Missing hardware
   * gives an empty list. A failed read gives a problem. An exception means a bug.
   */
  collect(): Collection | Promise<Collection>;
  /**
   * Reads some devices of the last collection alone, for their new holders. Undefined when that is not enough: a device is gone, has changed
   * or cannot be read. Needed only where a node can have hundreds of devices.
   */
  readAgain?(ids: ReadonlySet<string>): readonly DeviceReport[] | undefined;
  /** Calls `wake`, without data, when an event should start the next `collect` sooner. Returns a function that stops the watch. */
  watch?(wake: () => void): () => void;
  /** Drops what it keeps of earlier collections, because the last one ran out of file descriptors. The next one reads everything. */
  forget?(): void;
  /**
   * Closes the driver at the next `collect` until the release ends. Undefined ends it. The devices are unknown meanwhile. Needed only for a
   * driver that the probe keeps open.
   */
  release?(release: Release | undefined): void;
  close?(): void | Promise<void>;
}

/** Checks the type of a family and keeps its literal types. */
export function defineFamily<S extends OptionSpecs>(family: DeviceFamily<S>): DeviceFamily<S> {
  return family;
}
