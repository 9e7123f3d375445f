/** Size and elapsed time of a simulated node. Plain data: the same input gives the same hardware. */
export interface Scenario {
  readonly gpus: number;
  readonly hcas: number;
  /** Total number of virtual functions, spread over the HCAs. */
  readonly vfs: number;
  readonly fpgas: number;
  /** Number of devices of the families that have no size of their own, keyed by family. A family that is absent has none. */
  readonly counts?: Readonly<Record<string, number>>;
  /** Time since the node's start; counters depend on it. */
  readonly elapsedMs: number;
  /** All faults that the family had until now, those that ended included, in the order of their beginning. Absent: none. */
  readonly faults?: readonly SimulatedFault[];
  /** Use of each device that was held at least once, keyed by the id of its resource. Absent: each device works all the time. */
  readonly use?: Readonly<Record<string, SimulatedUse>>;
}

/** A fault that simulated devices of a family can have. */
export interface FaultSpec {
  /** Unique in the family: lower case letters, digits and dashes. */
  readonly name: string;
  /** What happens to the hardware, in one line. */
  readonly about: string;
  /** Values of `Device.kind` that can have it. Empty: it concerns the whole family and needs no device. */
  readonly kinds: readonly string[];
  /** Its part in the story of the demo: how long it lasts, and how long the verdict then needs to be healthy again. Absent: no part. */
  readonly story?: { readonly lastsMs: number; readonly recoversMs: number };
}

/** A fault of a simulated device, with times since the node's start. */
export interface SimulatedFault {
  readonly name: string;
  /** Id of the device; absent for a fault of the whole family. */
  readonly device?: string;
  readonly fromMs: number;
  /** Absent while it lasts. */
  readonly untilMs?: number;
}

/** A simulated device that can have faults. */
export interface FaultTarget {
  /** Equals `Device.id`. */
  readonly id: string;
  readonly kind: string;
  /** Other names by which people know it, such as its PCI address. */
  readonly names?: readonly string[];
  /** Faults of its kind that this device cannot have. */
  readonly lacks?: readonly string[];
}

/** How pods use one simulated device. */
export interface SimulatedUse {
  /** Total time for which it worked for pods, now and before. */
  readonly activeMs: number;
  /** Absent while no pod holds it. */
  readonly holder?: SimulatedHolder;
}

export interface SimulatedHolder {
  readonly podUid: string;
  /** Name of its process: 15 characters at most. */
  readonly program: string;
  /** True when it holds the device and does nothing on it. */
  readonly isIdle: boolean;
}

/**
 * Hardware of one family as files: paths are relative to the node's root and start with `sys/`, `proc/`, `dev/` or `bin/`.
 * Files under `bin/` are executable.
 */
export interface SimulatedHardware {
  readonly files: Readonly<Record<string, string>>;
  /** Symbolic links, path to target. */
  readonly links: Readonly<Record<string, string>>;
  /** Device ids that a plugin would serve for the hardware, per resource. */
  readonly resources: readonly {
    readonly resource: string;
    readonly deviceIds: readonly string[];
    readonly numaNodes?: readonly (number | undefined)[];
  }[];
  /** Devices that can have faults. Absent: none. */
  readonly targets?: readonly FaultTarget[];
  /** Options of the family for this hardware; `{root}` is replaced by the node's root. */
  readonly options?: Readonly<Record<string, string>>;
}
