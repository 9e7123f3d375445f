import type { DisplayState } from '../board/device-view.ts';
import type { Remedy, Severity } from '../model/health.ts';

/**
 * What a fleet is at one moment, as Prometheus knows it. Plain data that is the same as JSON; times are RFC 3339 in UTC. What Prometheus does not
 * know is absent, and never counts as well.
 */
export interface Fleet {
  /** Time that the queries were evaluated for, by the clock of Prometheus's server. */
  readonly at: string;
  /** Nodes, worst first, then by name. A node under two instances is one node. */
  readonly nodes: readonly FleetNode[];
  /** Faults of the same kind, worst first, then by number of devices. */
  readonly faults: readonly FleetFault[];
  readonly capacity: readonly ModelCapacity[];
  /** By namespace, the most idle first. */
  readonly namespaces: readonly NamespaceUse[];
  /** Devices that are worse than their twins. */
  readonly outliers: readonly Outlier[];
  /** What could not be read or is not to be believed: a question without its answer, warnings of Prometheus, samples that are too old. */
  readonly problems: readonly FleetProblem[];
}

/** `silent`: its agent does not answer. `old`: Prometheus has samples, but none new enough. Both are never well. */
export type NodeState = DisplayState | 'silent' | 'old';

export interface FleetNode {
  readonly cluster?: string;
  readonly name: string;
  readonly state: NodeState;
  /** When it was last heard, of a node that is silent or old. */
  readonly seenAt?: string;
  /** Group on the map: zone, rack or pool. */
  readonly group?: string;
  /** Devices that can be held, by state: parts in place of their whole. */
  readonly devices: Readonly<Partial<Record<DisplayState, number>>>;
  readonly families: readonly string[];
  readonly models: readonly string[];
  /** Namespaces whose pods hold its devices now. */
  readonly namespaces: readonly string[];
  readonly held?: number;
  /** 0 to 1, mean over its devices that report it. */
  readonly utilizationRatio?: number;
  /** Conditions that count, worst first. */
  readonly faults: readonly NodeFault[];
  /** Address of its own page, where the agent tells its external address. */
  readonly pageUrl?: string;
}

/** One fault of one device. */
export interface NodeFault {
  readonly family: string;
  /** Id of the hardware. */
  readonly device: string;
  /** Short name for people with its model: `GPU 3`. */
  readonly name: string;
  readonly model?: string;
  readonly driver?: string;
  readonly firmware?: string;
  readonly condition: string;
  /** The part of the device that has the fault, such as a port. */
  readonly part?: string;
  readonly reason: string;
  readonly severity: Severity;
  readonly remedy?: Remedy;
  readonly since?: string;
  /** `namespace/pod` of its holders now, or of those that held it in the last hour. */
  readonly hit: readonly string[];
}

/** Faults of one kind on several devices. `shared`: what most of them have in common: `7 of 9 are driver 580.105`. */
export interface FleetFault {
  readonly family: string;
  readonly condition: string;
  readonly reason: string;
  readonly severity: Severity;
  readonly devices: number;
  readonly nodes: readonly string[];
  readonly hit: readonly string[];
  readonly shared: readonly {
    readonly fact: 'model' | 'driver' | 'firmware' | 'group';
    readonly value: string;
    readonly devices: number;
  }[];
}

export interface ModelCapacity {
  readonly family: string;
  readonly kind: string;
  readonly model: string;
  readonly devices: number;
  readonly held: number;
  readonly free: number;
  readonly outOfService: number;
  /** Of devices whose agent is silent, or that nothing is known of. */
  readonly unknown: number;
  /** Pods that wait for such a device, where the agent tells it. */
  readonly waiting?: number;
}

export interface NamespaceUse {
  readonly cluster?: string;
  readonly namespace: string;
  /** Device hours of the last day. */
  readonly heldHours?: number;
  readonly idleHours?: number;
  readonly idleCost?: number;
  readonly currency?: string;
  readonly devicesNow?: number;
}

export interface Outlier {
  readonly node: string;
  readonly family: string;
  readonly device: string;
  readonly model: string;
  readonly what: 'clock' | 'temperature' | 'link errors';
  readonly value: number;
  /** Median of its twins. */
  readonly twins: number;
}

export interface FleetProblem {
  /** What was asked: `health of devices`. */
  readonly question: string;
  readonly message: string;
}
