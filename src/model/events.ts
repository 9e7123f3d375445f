import type { HealthState, Remedy, Severity } from './health.ts';

/** Holder of a device at the time of an event. */
export interface EventHolder {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly resource: string;
  readonly deviceId: string;
}

/**
 * How the holders of a fault were found. `process`: the process belongs to this pod. `only`: the one container that held the device at that
 * time. `one-of`: several held it, and one of them met the fault. `outside`: the process belongs to no holder. `unknown`: nobody is known
 * to have held the device.
 */
export type FaultBlame = 'process' | 'only' | 'one-of' | 'outside' | 'unknown';

/**
 * `raised` and `cleared`: a condition starts or stops counting. `state`: the verdict changes. `renamed`: known hardware has another name.
 * `replaced`: the name belongs to other hardware than before. `accepted`: a person ended a condition that no reading could confirm.
 * `fault`: an error came once, or again.
 */
export type Transition = 'raised' | 'cleared' | 'state' | 'renamed' | 'replaced' | 'accepted' | 'fault';

/** One transition of one device. Plain data. */
export interface HealthEvent {
  /** Grows by one with each event of this boot. */
  readonly id: number;
  readonly timeMs: number;
  /** Key of the device, `family/id`. */
  readonly device: string;
  readonly family: string;
  readonly transition: Transition;
  /** Earlier key of the device, for `renamed`. */
  readonly was?: string;
  /** Condition of a `raised`, `cleared` or `accepted` event; for `state` the condition that leads the new verdict, absent when none counts. */
  readonly condition?: string;
  readonly instance?: string;
  readonly severity?: Severity;
  /** States before and after, for `state`. */
  readonly from?: HealthState;
  readonly to?: HealthState;
  readonly reason: string;
  /** For `cleared`: text in the past tense with the last message of the condition. */
  readonly message: string;
  readonly remedy: Remedy;
  readonly holders: readonly EventHolder[];
  /** For `fault`: how often it came so far, and how its holders were found. */
  readonly count?: number;
  readonly blame?: FaultBlame;
  /** True when the operator's ignore rule covers the condition. */
  readonly ignored?: true;
}
