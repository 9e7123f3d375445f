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
  /**
   * For what a probe knows only from its own memory (a log line it read, a port that was up before): one that was started
   * anew is silent about it. The condition from before is then kept until a finding says `status: false` or the machine
   * boots, however long the silence.
   */
  readonly outlivesProbe?: true;
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
  /**
   * Judged by the family. Absent for a counter, which the policy judges, and for a level. A finding left out of a report means false;
   * `false` without `instance` withdraws every instance of the type; `unknown` keeps what was known.
   */
  readonly status?: boolean | 'unknown';
  /** Absolute counter value, for class `rate`. */
  readonly count?: number;
  /** Value at which that counter sticks: from there on its growth says nothing. */
  readonly ceiling?: number;
  /**
   * What a sound part keeps once it has had it, such as the rate of a link: the condition holds while it is below the highest
   * seen of this device since the machine booted.
   */
  readonly level?: number;
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

/** A condition that holds and that the operator chose not to count on this device. */
export interface IgnoredCondition extends ActiveCondition {
  /** The operator's words. */
  readonly ignoreReason: string;
  /** Wall clock from which it counts again. */
  readonly ignoredUntilMs: number;
}

/** The one judgement on a device, read alike by metrics, plugin, API and page. */
export interface Verdict {
  readonly state: HealthState;
  readonly sinceMs: number;
  /** Those that count, worst first. */
  readonly conditions: readonly ActiveCondition[];
  /** Those that do not count by the operator's word; absent when there are none. */
  readonly ignored?: readonly IgnoredCondition[];
  /** How often each state was entered since the machine booted; a state never entered is absent. */
  readonly transitions?: Readonly<Partial<Record<HealthState, number>>>;
}
