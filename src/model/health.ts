/** `fatal` takes the device out of service, `degraded` reports without taking it out, `info` is for the record. */
export type Severity = 'fatal' | 'degraded' | 'info';

/**
 * How a condition begins and ends:
 * `latched` stays until an operator acts, `self-clearing` follows a live level, `rate` judges the growth of a counter,
 * `in-progress` is normal until a deadline, `no-data` means that nothing could be read.
 */
export type ConditionClass = 'latched' | 'self-clearing' | 'rate' | 'in-progress' | 'no-data';

/** What the person on call should do next. */
export type Remedy =
  | 'none'
  | 'reset'
  | 'reboot'
  | 'replace'
  | 'check-cable'
  | 'check-cooling'
  | 'check-power'
  | 'restart-workload'
  | 'reload-driver'
  | 'reseat'
  | 'inspect';

/** Declaration of one condition of a family: the default policy for it and the text of its reference entry. */
export interface ConditionSpec {
  /** CamelCase, unique within the family: `PortDown`. */
  readonly type: string;
  readonly class: ConditionClass;
  readonly severity: Severity;
  /** Closed vocabulary of reasons, CamelCase. */
  readonly reasons: readonly string[];
  readonly meaning: string;
  readonly remedy: Remedy;
  /** Where rule and figures come from. */
  readonly source: string;
  /** How long it must hold before it counts. Default 0. */
  readonly forMs?: number;
  /** Quiet time before it is withdrawn. Default 0. */
  readonly recoveryMs?: number;
  /** For class `rate`: growth above which it holds, per `windowMs`. */
  readonly threshold?: { readonly growth: number; readonly windowMs: number };
}

/**
 * What a probe saw regarding one condition in one read. Facts only: when it counts, and whether it takes the device out,
 * is the policy's business.
 */
export interface Finding {
  /** `type` of a declared {@link ConditionSpec}. */
  readonly type: string;
  /** Which part of the device, when several can have it: a port number, an Xid. */
  readonly instance?: string;
  readonly reason: string;
  /** With the figure that led to it. */
  readonly message: string;
  /** Judged by the family. Absent for a counter, which the policy judges. */
  readonly status?: boolean | 'unknown';
  /** Absolute counter value, for class `rate`. */
  readonly count?: number;
  /** Value at which that counter sticks: from there on its growth says nothing. */
  readonly ceiling?: number;
  /** Replaces the declared severity where the finding itself decides it (Xid tables, the driver's own word). */
  readonly severity?: Severity;
  readonly remedy?: Remedy;
}

export type HealthState = 'healthy' | 'degraded' | 'unhealthy' | 'unknown';
export const HEALTH_STATES: readonly HealthState[] = ['healthy', 'degraded', 'unhealthy', 'unknown'];

/** A condition that holds now. */
export interface ActiveCondition {
  readonly type: string;
  readonly instance?: string;
  readonly severity: Severity;
  readonly reason: string;
  readonly message: string;
  readonly remedy: Remedy;
  readonly sinceMs: number;
}

/** The one judgement on a device, read alike by metrics, plugin, API and page. */
export interface Verdict {
  readonly state: HealthState;
  readonly sinceMs: number;
  readonly conditions: readonly ActiveCondition[];
}
