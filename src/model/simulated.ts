/** Size and elapsed time of a simulated node. Plain data: the same input gives the same hardware. */
export interface Scenario {
  readonly gpus: number;
  readonly hcas: number;
  /** Total number of virtual functions, spread over the HCAs. */
  readonly vfs: number;
  readonly fpgas: number;
  /** Number of devices of the families that have no size of their own, keyed by family. A family that is absent has none. */
  readonly counts?: Readonly<Record<string, number>>;
  /** Time since the node's start; counters and scripted faults depend on it. */
  readonly elapsedMs: number;
  /** Use of each device that was held at least once, keyed by the id of its resource. Absent: each device works all the time. */
  readonly use?: Readonly<Record<string, SimulatedUse>>;
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
  /** Options of the family for this hardware; `{root}` is replaced by the node's root. */
  readonly options?: Readonly<Record<string, string>>;
}
