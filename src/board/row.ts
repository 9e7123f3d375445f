import type { ConditionPhase, HealthState, Recovering, Remedy, Severity, Verdict } from '../model/health.ts';

/** State of a device as people see it: the verdict, or `missing` when the hardware no longer lists the device. */
export type RowState = HealthState | 'missing';

/**
 * Use of a device. `held`: a container holds it. `held by parts`: no container holds it, but containers hold parts of it, so that it cannot
 * be allocated itself. `free`: the kubelet says that no container holds it. `unknown`: the kubelet did not say it.
 */
export type RowUse = 'held' | 'held by parts' | 'free' | 'unknown';
export const ROW_USES: readonly RowUse[] = ['held', 'held by parts', 'free', 'unknown'];

/** One device in the form in which the page, the event stream and the terminal show it. Plain data. Times are wall clock in milliseconds. */
export interface BoardRow {
  /** `family/id`. */
  readonly key: string;
  readonly family: string;
  readonly id: string;
  /** Short name for people: `GPU 0`, `eth0`. It may change at a reboot; `id` does not. */
  readonly name: string;
  readonly kind: string;
  /** Another name of it: its network interface, or its name in the kernel. */
  readonly also?: string;
  /** Its model, or what else is known of its maker: vendor and driver. */
  readonly model?: string;
  /** Key of the device that contains it. */
  readonly parent?: string;
  readonly numaNode?: number;
  readonly pciAddress?: string;
  /** Path of its PCI bridges, from the root. */
  readonly pciPath?: string;
  readonly state: RowState;
  /** Time at which it took the state; absent while unknown. */
  readonly sinceMs?: number;
  /** Time of the read that the readings come from. */
  readonly readAtMs: number;
  /** True when the last read is too old to be shown. */
  readonly isStale?: true;
  /** Conditions that count, worst first, and then those that do not count yet. */
  readonly conditions: readonly RowCondition[];
  /** Conditions that an ignore rule covers; absent when there are none. */
  readonly ignored?: readonly { readonly name: string; readonly untilMs: number; readonly why: string }[];
  /** Fatal conditions that no read could judge so far; absent when there are none. */
  readonly unchecked?: readonly string[];
  readonly probation?: Verdict['probation'];
  readonly use: RowUse;
  /** Containers that hold the device or a part of it. */
  readonly holders: readonly RowHolder[];
  /** The farthest device that a container holds with it, and the way to it: `SYS to eth0`. */
  readonly farthest?: string;
  /** Three at most. */
  readonly readings: readonly RowReading[];
}

export interface RowCondition {
  /** `PortDown (1)`. */
  readonly name: string;
  readonly type: string;
  readonly severity: Severity;
  readonly reason: string;
  readonly message: string;
  /** Empty for a condition that counts and that the latest read found. */
  readonly standing: readonly ConditionPhase[];
  /** Remedy that applies now, and its text; the text is absent when there is nothing to do. */
  readonly remedy: Remedy;
  readonly advice?: string;
  readonly sinceMs: number;
  readonly unverifiedSinceMs?: number;
  /** Present for a condition that does not count yet. */
  readonly countsAtMs?: number;
  /** Present for a condition that ended and still counts. */
  readonly recovering?: Recovering;
  /** Name of the parent that has the same condition: its row shows the condition and the remedy. */
  readonly ofWhole?: string;
}

export interface RowHolder {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly resource: string;
  /** Name of the part that it holds, as `name` of its row; absent when it holds the device itself. */
  readonly part?: string;
}

/** A reading of a device, ready to be shown. */
export interface RowReading {
  /** `Busy`, `Memory`, `In`, … */
  readonly label: string;
  /** `87 %`, `48.1 of 79.6 GiB`, `23 Gbit/s`. */
  readonly text: string;
  /** Absent where there is no number yet: a rate needs two reads. */
  readonly value?: number;
  /** Share of the limit or the total, 0 to 1; absent when no limit is known. */
  readonly ratio?: number;
}

/** A place where something keeps the agent from seeing everything. */
export interface BoardProblem {
  /** `kubelet`, a family, or a family and a device. */
  readonly where: string;
  readonly what: string;
  readonly remedy?: string;
}

export interface BoardFamily {
  readonly family: string;
  readonly devices: number;
  readonly state: 'works' | 'fails' | 'hangs' | 'starts';
  readonly lastSuccessMs?: number;
  readonly problems: number;
}

export interface BoardKubelet {
  /** `answers`, `starts` before the first answer, otherwise why it does not answer. */
  readonly state: string;
  readonly answeredAtMs?: number;
  /** Allocations that are kept from an earlier answer. */
  readonly kept: number;
}

export interface BoardCounts {
  readonly devices: number;
  /** Devices that a container holds. */
  readonly held: number;
  readonly heldByParts: number;
  readonly states: Readonly<Record<RowState, number>>;
  /** Healthy devices with a condition that will change their state if it continues. */
  readonly pending: number;
}

/** An allocation of the kubelet that no device answers to. */
export interface BoardUnresolved extends Omit<RowHolder, 'part'> {
  readonly deviceId: string;
  readonly why: string;
}

/** All devices of a node at one time, in the order in which people see them. */
export interface Board {
  readonly node?: string;
  readonly nowMs: number;
  readonly takenAtMs: number;
  readonly sequence: number;
  readonly counts: BoardCounts;
  readonly kubelet: BoardKubelet;
  readonly families: readonly BoardFamily[];
  readonly problems: readonly BoardProblem[];
  readonly unresolved: readonly BoardUnresolved[];
  /** Faulty devices first; parts follow their parent. */
  readonly rows: readonly BoardRow[];
}
