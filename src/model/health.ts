import { seconds } from './duration.ts';
import { areSameFields } from './readings.ts';

/** `fatal` takes the device out of service, `degraded` reports without taking it out, `info` is for the record. */
export type Severity = 'fatal' | 'degraded' | 'info';

/**
 * How a condition begins and ends:
 * `latched` usually stays until an operator acts, `self-clearing` follows a live value, `rate` judges the growth of a counter,
 * `in-progress` is normal until a deadline, `no-data` means that nothing could be read.
 */
export type ConditionClass = 'latched' | 'self-clearing' | 'rate' | 'in-progress' | 'no-data';

/** What the person on call should do next. */
export type Remedy =
  | 'none'
  | 'reset'
  | 'reboot'
  /** Power off and on. A reboot does not reset the state of the card. */
  | 'power-cycle'
  | 'replace'
  | 'check-cable'
  | 'enable-port'
  | 'check-subnet-manager'
  | 'check-cooling'
  | 'check-power'
  | 'restart-workload'
  | 'reload-driver'
  | 'reseat'
  | 'inspect'
  /** For a condition that was seen and that no reading confirms now. */
  | 'verify';

/** Declares one condition of a family: its default policy and the text of its reference entry. */
export interface ConditionSpec {
  /** CamelCase, unique within the family: `PortDown`. */
  readonly type: string;
  readonly class: ConditionClass;
  readonly severity: Severity;
  /** Closed vocabulary of reasons, CamelCase. */
  readonly reasons: readonly string[];
  readonly meaning: string;
  readonly remedy: Remedy;
  /** Source of the rule and its numbers. */
  readonly source: string;
  /** Time for which the condition must hold before it counts. Default 0. */
  readonly forMs?: number;
  /** Quiet time before the condition is cleared. Default 0. */
  readonly recoveryMs?: number;
  /** For class `rate`: growth per `windowMs` above which the condition holds. */
  readonly threshold?: { readonly growth: number; readonly windowMs: number };
  /**
   * Conditions that the same fault raises too, as `Type` or `Type/instance`. While both count, this one is their cause, and alerts only
   * report the cause.
   */
  readonly consequences?: readonly string[];
  /**
   * Findings come from another source than the device itself: the kernel log, the state of the driver. They are in the part `outOfBand`
   * of a report, and that part contains only findings of such conditions.
   */
  readonly outOfBand?: true;
  /**
   * Findings come from the agent, which compares what the device does with who holds it. No probe reports them.
   */
  readonly use?: true;
  /** It is about the pods that hold the device, not about the device: it ends with them, and begins anew for the next ones. */
  readonly ofHolder?: true;
  /** Findings come from the faults that the agent counted: see `repeats` of a fault. No probe reports them. For class `rate`. They are judged only while `areFaultsRead`. */
  readonly ofFaults?: true;
  /** Counts only where the configuration enables it. */
  readonly isOffByDefault?: true;
}

/** Common fields of all findings. */
interface FindingBase {
  /** `type` of a declared {@link ConditionSpec}. */
  readonly type: string;
  /** Part of the device, when several parts can have the condition: the number of a port, the code of an error. */
  readonly instance?: string;
  readonly reason: string;
  /** Includes the value that led to the finding. */
  readonly message: string;
  /** Replaces the declared severity when the finding determines it (tables of error codes, driver messages). */
  readonly severity?: Severity;
  readonly remedy?: Remedy;
  /** Id of the device of the same family whose fault is the source of this one. */
  readonly causedBy?: string;
  /** Monotonic clock of the read that showed it, when that was an earlier read than the device's: see `readMs` of a reading. */
  readonly readMs?: number;
  /** A status that is so only while a container holds the device (true), or while none does (false). Otherwise the condition does not hold. */
  readonly ifHeld?: boolean;
}

/** The family judges: the condition holds, does not hold, or is unknown. */
export interface StatusFinding extends FindingBase {
  /** `false` without `instance` also denies every instance that has no finding in the report. */
  readonly status: boolean | 'unknown';
  readonly count?: undefined;
  readonly level?: undefined;
  readonly times?: undefined;
}

/** For class `rate`: the policy judges the growth of an absolute counter. */
export interface CountFinding extends FindingBase {
  readonly count: number;
  /** Largest value of the counter. At this value its growth is unknown. */
  readonly ceiling?: number;
  /** Monotonic clock of the latest growths by one, the oldest first, where the source dates them: they count for an agent that starts later. */
  readonly grewMs?: readonly number[];
  readonly status?: undefined;
  readonly level?: undefined;
  readonly times?: undefined;
}

/** For class `rate`: the policy judges how often something came. */
export interface TimesFinding extends FindingBase {
  /** Wall clock of each, oldest first. */
  readonly times: readonly number[];
  readonly status?: undefined;
  readonly count?: undefined;
  readonly level?: undefined;
}

/**
 * A level that never falls on a healthy part, such as the rate or the state of a link. The condition holds while the level is below the
 * highest level seen on this device since the machine booted.
 */
export interface LevelFinding extends FindingBase {
  readonly level: number | boolean;
  /** Required level, even if it was never seen. */
  readonly atLeast?: number | boolean;
  /** Adds the highest level to the message while the condition holds. */
  readonly tellsHighest?: true;
  readonly status?: undefined;
  readonly count?: undefined;
  readonly times?: undefined;
}

/**
 * Result of one collection for one condition. Facts only: the policy decides when the condition counts and whether it takes the device
 * out of service. A condition without a finding is unknown after that collection: if it was raised, it stays raised.
 */
export type Finding = StatusFinding | CountFinding | LevelFinding | TimesFinding;

/** Whether two reports found the same. */
export const areSameFindings = (a: readonly Finding[] | undefined, b: readonly Finding[] | undefined): boolean =>
  a === b || (a !== undefined && a.length === b?.length && a.every((one, at) => areSameFields(one, b[at])));

export type HealthState = 'healthy' | 'degraded' | 'unhealthy' | 'unknown';
export const HEALTH_STATES: readonly HealthState[] = ['healthy', 'degraded', 'unhealthy', 'unknown'];

/** A condition that counts now. */
export interface ActiveCondition {
  readonly type: string;
  readonly instance?: string;
  readonly class: ConditionClass;
  readonly severity: Severity;
  readonly reason: string;
  readonly message: string;
  readonly remedy: Remedy;
  readonly sinceMs: number;
  /** Type of the condition that counts too and is the cause of this one; see {@link ConditionSpec.consequences}. */
  readonly cause?: string;
  /** Id of the device of the same family whose fault is the source of this one; the message names it, too. */
  readonly causedBy?: string;
  /** Wall clock since which its status is unknown; absent while the status is known. */
  readonly unverifiedSinceMs?: number;
  /** Present while the source is quiet and the condition is not yet cleared. */
  readonly recovering?: Recovering;
}

/** Times of a condition that no longer holds but still counts until the quiet time is over. */
export interface Recovering {
  /** Wall clock of the first reading that found it quiet. */
  readonly sinceMs: number;
  /** Wall clock at which it is cleared if it stays quiet. */
  readonly untilMs: number;
}

/** A condition that holds but does not count yet. */
export interface PendingCondition extends Omit<ActiveCondition, 'recovering'> {
  /** Wall clock at which it counts if it still holds. */
  readonly countsAtMs: number;
}

/** A condition that does not count on this device because of an ignore rule of the operator. */
export interface IgnoredCondition extends ActiveCondition {
  /** Reason text of the ignore rule. */
  readonly ignoreReason: string;
  /** Wall clock from which it counts again. */
  readonly ignoredUntilMs: number;
}

/** Judgement on a device. Metrics, plugin, API and page all use the same one. */
export interface Verdict {
  readonly state: HealthState;
  readonly sinceMs: number;
  /** Conditions that count, worst first. */
  readonly conditions: readonly ActiveCondition[];
  /** Conditions that do not count yet, ordered by the time at which they count; absent when there are none. */
  readonly pending?: readonly PendingCondition[];
  /** Conditions that an ignore rule covers; absent when there are none. */
  readonly ignored?: readonly IgnoredCondition[];
  /**
   * Fatal conditions that the device can have and that no read could judge so far, as `Type` or `Type/instance`; absent when there are none.
   */
  readonly unchecked?: readonly string[];
  /** How often each state was entered since the machine booted; a state never entered is absent. */
  readonly transitions?: Readonly<Partial<Record<HealthState, number>>>;
}

/** Remedy that applies now: `none` for a condition that ended, but `verify` when no reading shows whether it came back. */
export function remedyNow({
  remedy,
  recovering,
  unverifiedSinceMs,
}: Pick<ActiveCondition, 'remedy' | 'unverifiedSinceMs'> & { readonly recovering?: object }): Remedy {
  if (recovering === undefined || remedy === 'none') return remedy;
  return unverifiedSinceMs === undefined ? 'none' : 'verify';
}

/** Pending conditions that will change the state of the device. A condition with severity `info` never does. */
export function pendingTrouble<C extends Pick<PendingCondition, 'severity'>>({
  pending = [],
}: {
  readonly pending?: readonly C[];
}): readonly C[] {
  return pending.filter(({ severity }) => severity !== 'info');
}

/** Conditions that begin within this time tell one fault: a device reports an error, and then is gone. */
export const ONE_FAULT_MS = seconds(60);

/** Begin of the fault that leads: the first of the conditions that tell it. `conditions`: the worst first. */
export function faultSince(conditions: readonly { readonly severity: Severity; readonly since?: string }[]): string | undefined {
  const begins = conditions.flatMap(({ severity, since }) => (severity === 'info' || since === undefined ? [] : [since]));
  const leadMs = Date.parse(begins[0] ?? '');
  return begins.filter((since) => Math.abs(Date.parse(since) - leadMs) <= ONE_FAULT_MS).toSorted()[0];
}
