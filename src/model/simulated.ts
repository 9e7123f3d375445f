/** How large a simulated node is and at which moment of its story. Plain data: the same input gives the same hardware. */
export interface Scenario {
  readonly gpus: number;
  readonly hcas: number;
  /** Virtual functions in all, spread over the HCAs. */
  readonly vfs: number;
  readonly fpgas: number;
  /** Time since the node's start; counters and stories follow it. */
  readonly elapsedMs: number;
}

/**
 * Hardware of one family as files: paths are relative to the node's root and start with `sys/`, `proc/`, `dev/` or `bin/`.
 * What is under `bin/` is made executable.
 */
export interface SimulatedHardware {
  readonly files: Readonly<Record<string, string>>;
  /** Symbolic links, path to target. */
  readonly links: Readonly<Record<string, string>>;
  /** The device ids a plugin would hand out for it, per resource. */
  readonly resources: readonly {
    readonly resource: string;
    readonly deviceIds: readonly string[];
    readonly numaNodes?: readonly (number | undefined)[];
  }[];
  /** Options of the family that point it at this hardware; `{root}` stands for the node's root. */
  readonly options?: Readonly<Record<string, string>>;
}
