import type { EventHolder, FaultBlame } from './events.ts';
import type { Remedy, Severity } from './health.ts';
import type { Labels } from './metric.ts';

/** Process that a source names as the one that met the fault. */
export interface FaultProcess {
  /** In the host's PID namespace. */
  readonly pid: number;
  readonly name?: string;
  /** From `/proc/<pid>/cgroup` at the time of the fault; absent when the process had already ended. */
  readonly podUid?: string;
  readonly containerId?: string;
}

/** Place of a fault in its source. The places of one source grow, also over restarts of the agent within one boot. */
export interface FaultPlace {
  /** Number of the record. */
  readonly seq: number;
  /** Microseconds on the source's own clock. */
  readonly usec: number;
}

/**
 * A fault that a source tells once: an error of a program, of the driver or of the hardware. It is an occurrence, unlike a condition, which
 * is a state. Plain data, which does not change once it is reported.
 */
export interface Fault {
  /** `log`: lines of the kernel log. `events`: events of a library, which have no places that outlast a thread. */
  readonly witness: 'log' | 'events';
  /** Monotonic clock at which the thread began that counted events, as text. Empty for the log. */
  readonly epoch: string;
  /** Place of its first record, and of the first record of the latest repeat. */
  readonly first: FaultPlace;
  readonly last: FaultPlace;
  /** An event whose record the log lost, although the log leads. */
  readonly isLost?: true;
  /** What the family calls it, with the number: `Hang`, `31`. */
  readonly type: string;
  readonly code: string;
  readonly reason: string;
  readonly severity: Severity;
  readonly remedy: Remedy;
  /** What it means, with process and leading line. */
  readonly message: string;
  /** Wall clock of the first and of the latest repeat; absent when unknown. */
  readonly timeMs?: number;
  readonly lastMs?: number;
  /** Monotonic clock of the latest repeat; absent when unknown. */
  readonly lastMonotonicMs?: number;
  /** How often it came, 1 or more. */
  readonly count: number;
  /** So many others of its kind came lately that it counts as a repeat of the latest one. */
  readonly isRepeat?: true;
  /** Its distinct lines, the leading one first, at most {@link MOST_FAULT_LINES}. */
  readonly lines: readonly string[];
  readonly process?: FaultProcess;
  /** The source names a process, and any other process of the device may have met it. */
  readonly isAnyProcess?: true;
  /** Parts of the device that it concerns, as ids; absent when it concerns all of the device. */
  readonly parts?: readonly string[];
  /** Conditions that hold when such a fault comes again and again. */
  readonly repeats?: readonly FaultRepeat[];
  /** Counter of the family that counts it. */
  readonly counter: { readonly metric: string; readonly labels: Labels };
}

/** What a fault counts for: a condition of class `rate` that the family declares with `ofFaults`. Its threshold says how many are too many. */
export interface FaultRepeat {
  readonly type: string;
  /** What must be the same each time: the part of the device that the line names, or the number of the error. */
  readonly instance?: string;
  readonly reason: string;
  readonly message: string;
  readonly remedy?: Remedy;
  /** Only faults that differ in it count: the program. */
  readonly distinct?: string;
  /** Faults that follow each other within this time are one. */
  readonly burstMs?: number;
}

/** How often such a fault came. Plain data, saved over restarts. */
export interface SavedRepeat extends Pick<FaultRepeat, 'type' | 'instance' | 'reason' | 'message' | 'remedy'> {
  /** Wall clock of each, oldest first, with what it differs in. */
  readonly seen: readonly (readonly [atMs: number, distinct: string])[];
}

export const MOST_FAULT_LINES = 8;

/** A fault with its device and its holders at that time. Repeats are added to it. Plain data, saved over restarts. */
export interface SavedFault {
  /** Unique on the node. */
  readonly id: string;
  /** Key of the device, `family/id`. */
  readonly device: string;
  readonly type: string;
  readonly code: string;
  readonly reason: string;
  readonly severity: Severity;
  readonly remedy: Remedy;
  readonly message: string;
  /** Wall clock of the first and of the latest repeat. */
  readonly timeMs: number;
  readonly lastMs: number;
  readonly count: number;
  readonly lines: readonly string[];
  readonly process?: FaultProcess;
  readonly blame: FaultBlame;
  readonly holders: readonly EventHolder[];
  /** The count that the last event told. */
  readonly toldCount: number;
}

/** A container with a device, over the time for which it may have held it. Wall clock. Plain data, saved over restarts. */
export interface FaultHolder {
  readonly holder: EventHolder;
  readonly uid?: string;
  /** The last answer of the kubelet without it, or the first one of all. */
  readonly fromMs: number;
  /** The first answer without it; absent while it holds the device. */
  readonly untilMs?: number;
}

/** Number of faults of one owner, keyed by metric and labels. */
export type FaultCounts = Readonly<Record<string, number>>;

/** What the agent knows of faults beside the list of them. Plain data, saved over restarts. */
export interface SavedFaults {
  /** What was counted of the log, keyed by family. */
  readonly marks: Readonly<Record<string, FaultMark>>;
  /** The times in which events were counted instead of the log, keyed by family. Wall clock. */
  readonly byEvents: Readonly<Record<string, readonly (readonly [number, number])[]>>;
  /** Of devices, keyed by hardware. */
  readonly totals: Readonly<Record<string, FaultCounts>>;
  /** Of containers, keyed by hardware and holder. */
  readonly own: Readonly<Record<string, FaultCounts>>;
  /** Who held each device, keyed by hardware. */
  readonly held: Readonly<Record<string, readonly FaultHolder[]>>;
  /** How often faults came, keyed by hardware. */
  readonly repeats?: Readonly<Record<string, readonly SavedRepeat[]>>;
  /** Wall clock of the latest answer of the kubelet that was taken. */
  readonly answeredAtMs?: number;
  /** How far the wall clock, on which all of these times are, is ahead of the monotonic one. */
  readonly aheadMs?: number;
}

/** What was counted of a source. Faults up to it are known. */
export type FaultMark = FaultPlace;

export const NO_MARK: FaultMark = { seq: -1, usec: -1 };

/** Records of several processors are not in the exact order of their times. */
const UNORDERED_USEC = 1_000_000;

/** Whether a place is after a mark. A log that a person wrote may begin again at a lower number, at a later time. */
export const isAfter = ({ seq, usec }: FaultPlace, mark: FaultMark): boolean => seq > mark.seq || usec > mark.usec + UNORDERED_USEC;

export const laterMark = (a: FaultMark, b: FaultPlace): FaultMark => ({ seq: Math.max(a.seq, b.seq), usec: Math.max(a.usec, b.usec) });
