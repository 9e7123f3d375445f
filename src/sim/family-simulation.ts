import type { PoolRule } from '../model/allocation.ts';
import type { PluginResource } from '../model/plugin-resource.ts';

/** A family of which the simulated node has devices. */
export interface SimulatedFamily {
  /** Equals the name of the probe's family. */
  readonly name: string;
  readonly simulation: FamilySimulation;
}

/**
 * The part of a family in the simulated node of `device-agent demo`: files that its probe reads like those of real hardware. Tests use the
 * same files. A family without it works, but the demo has no device of it.
 */
export interface FamilySimulation {
  /** What `--sim.devices` can count. The first has the name of the family, each other one `<family>.<part>`. */
  readonly sizes: readonly SimulatedSize[];
  /** Returns the family's part of the node at one moment. */
  simulate(scenario: Scenario): SimulatedHardware;
  /** Faults that {@link simulate} can show. They change only files, programs and kernel log lines of the simulated node. */
  readonly faults: readonly FaultSpec[];
  /** Typical pods that hold its devices, the most typical one first. The node mixes those of all families. */
  readonly workloads: readonly SimulatedWorkload[];
}

/** Something of which a simulated node has a number. */
export interface SimulatedSize {
  /** Lower case letters, digits and dashes; a part follows its family and a dot: `family.part`. */
  readonly name: string;
  /** One of them in a few words: `network adapter`. Several get an `s` at the end. */
  readonly about: string;
  /** Number in the demo when `--sim.devices` does not give another. */
  readonly default: number;
  /** Largest number that can be simulated. */
  readonly most: number;
}

/** A kind of pod. */
export interface SimulatedWorkload {
  readonly namespace: string;
  /** Beginning of the name of its pods. */
  readonly name: string;
  readonly container: string;
  /** Devices: the beginning of the name of a resource, and how many of it. A pod goes without those that are not free. */
  readonly wants: readonly (readonly [resource: string, amount: number])[];
  /** Number of devices that it holds and does not use. */
  readonly unused?: number;
}

/** Size and elapsed time of a simulated node. Plain data: the same input gives the same hardware. */
export interface Scenario {
  /** Keyed by the name of a {@link SimulatedSize}; a name that is absent has 0. */
  readonly counts: Readonly<Record<string, number>>;
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
  /** Values of `Device.kind` that can have it. Empty: it concerns all devices of the family. */
  readonly kinds: readonly string[];
  /** The device is of no use to a pod, as a device plugin would tell the kubelet: new pods wait. */
  readonly isFatal?: true;
  /** Its part in the story of the demo: how long it lasts, and how long the verdict then needs to be healthy again. Absent: no part. */
  readonly story?: { readonly lastsMs: number; readonly recoversMs: number };
}

/** A fault of a simulated device, with times since the node's start. */
export interface SimulatedFault {
  readonly name: string;
  /** Id of the device; absent for a fault of all devices of the family. */
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
  /** What the drivers wrote to the kernel log. At a later moment it has the same lines and later ones. Absent: nothing. */
  readonly kernelLog?: readonly KernelLine[];
  /** Device ids that a plugin would serve for the hardware, per resource. */
  readonly resources: readonly SimulatedResource[];
  /** Ids of resources on which no program can work now. Absent: none. */
  readonly stoppedIds?: readonly string[];
  /** Devices that can have faults. Absent: none. */
  readonly targets?: readonly FaultTarget[];
  /** Options of the family for this hardware; `{root}` is replaced by the node's root. */
  readonly options?: Readonly<Record<string, string>>;
  /** What the configuration file of the node must say about this hardware, in the form of that file. Absent: nothing. */
  readonly configuration?: {
    /** Entries of `join.rules`. */
    readonly rules?: readonly PoolRule[];
    /** Entries of `plugin.resources`. */
    readonly pluginResources?: readonly PluginResource[];
    /** Entries of `usage.prices`. */
    readonly prices?: Readonly<Record<string, number>>;
  };
}

/** A line of the kernel log, with its time since the boot. */
export interface KernelLine {
  readonly atMs: number;
  readonly text: string;
  /** Severity, 0 to 7. Default: 4, a warning. */
  readonly level?: number;
}

/** A resource of the simulated node. */
export interface SimulatedResource {
  readonly resource: string;
  readonly deviceIds: readonly string[];
  /** One for each id. */
  readonly numaNodes?: readonly (number | undefined)[];
  /** The agent's own device plugin serves it, by an entry of `configuration.pluginResources`. */
  readonly isServed?: true;
}
