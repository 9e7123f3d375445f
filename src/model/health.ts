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
  | 'enable-port'
  | 'check-subnet-manager'
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
   * Told by another source than the device itself: the kernel log, the state of the driver as a whole. Such a condition is told in
   * the part `aside` of a report, and that part can tell no other condition.
   */
  readonly aside?: true;
}

/** What every finding says, however it is judged. */
interface FindingBase {
  /** `type` of a declared {@link ConditionSpec}. */
  readonly type: string;
  /** Which part of the device, when several can have the condition: a port number, an Xid. */
  readonly instance?: string;
  readonly reason: string;
  /** With the figure that led to it. */
  readonly message: string;
  /** Replaces the declared severity where the finding itself decides it (Xid tables, the driver's own word). */
  readonly severity?: Severity;
  readonly remedy?: Remedy;
}

/** The family judges: the condition holds, does not hold, or could not be told. */
export interface StatusFinding extends FindingBase {
  /** `false` without `instance` withdraws every instance that the report does not name otherwise. */
  readonly status: boolean | 'unknown';
  readonly count?: undefined;
  readonly level?: undefined;
}

/** For class `rate`: the policy judges how much an absolute counter grows. */
export interface CountFinding extends FindingBase {
  readonly count: number;
  /** Value at which the counter sticks: from there on its growth says nothing. */
  readonly ceiling?: number;
  readonly status?: undefined;
  readonly level?: undefined;
}

/**
 * What a sound part keeps once it has had it: the rate of a link, or that the link is up. The condition holds while the level is below
 * the highest that was seen of this device since the machine booted.
 */
export interface LevelFinding extends FindingBase {
  readonly level: number | boolean;
  /** A level that the part should have although nobody has seen it there. */
  readonly atLeast?: number | boolean;
  /** The message is to name the highest level while the condition holds. */
  readonly tellsHighest?: true;
  readonly status?: undefined;
  readonly count?: undefined;
}

/**
 * What one look told of one condition. Facts only: when the condition counts, and whether it takes the device out, is the policy's
 * business. A condition of which a look tells nothing is not known after that look: what was raised before stays raised.
 */
export type Finding = StatusFinding | CountFinding | LevelFinding;

export type HealthState = 'healthy' | 'degraded' | 'unhealthy' | 'unknown';
export const HEALTH_STATES: readonly HealthState[] = ['healthy', 'degraded', 'unhealthy', 'unknown'];

/** A condition that counts now. */
export interface ActiveCondition {
  readonly type: string;
  readonly instance?: string;
  readonly severity: Severity;
  readonly reason: string;
  readonly message: string;
  readonly remedy: Remedy;
  readonly sinceMs: number;
  /** Wall clock since when no look could tell whether it still holds; absent while looks tell. */
  readonly unverifiedSinceMs?: number;
  /** Present while the source is quiet and the condition waits to be withdrawn. */
  readonly recovering?: Recovering;
}

/** A condition that no longer holds and still counts, until it was quiet for long enough. */
export interface Recovering {
  /** Wall clock of the first look that found it quiet. */
  readonly sinceMs: number;
  /** Wall clock at which it is withdrawn if looks go on to find it quiet. */
  readonly untilMs: number;
}

/** A condition that holds and does not count yet. */
export interface PendingCondition extends Omit<ActiveCondition, 'recovering'> {
  /** Wall clock at which it counts if it goes on. */
  readonly countsAtMs: number;
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
  /** Those that hold and do not count yet, first the one that counts first; absent when there are none. */
  readonly pending?: readonly PendingCondition[];
  /** Those that do not count by the operator's word; absent when there are none. */
  readonly ignored?: readonly IgnoredCondition[];
  /** How often each state was entered since the machine booted; a state never entered is absent. */
  readonly transitions?: Readonly<Partial<Record<HealthState, number>>>;
}
