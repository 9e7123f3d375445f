import type { HealthState, Remedy, Severity } from './health.ts';

/** Holder of a device at the time of an event. */
export interface EventHolder {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly resource: string;
  readonly deviceId: string;
}

/** One transition of one device: a condition starts or stops counting, or the verdict changes. Plain data. */
export interface HealthEvent {
  /** Grows by one with each event of this boot. */
  readonly id: number;
  readonly timeMs: number;
  /** Key of the device, `family/id`. */
  readonly device: string;
  readonly family: string;
  readonly transition: 'raised' | 'cleared' | 'state';
  /** Condition of a `raised` or `cleared` event; for `state` the condition that leads the new verdict, absent when none counts. */
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
  /** True when the operator's ignore rule covers the condition. */
  readonly ignored?: true;
}
