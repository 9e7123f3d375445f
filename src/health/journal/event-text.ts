import type { Allocation } from '../../model/allocation.ts';
import type { Device } from '../../model/device.ts';
import { formatDuration, millis } from '../../model/duration.ts';
import type { EventHolder, HealthEvent } from '../../model/events.ts';
import type { ActiveCondition, HealthState, Verdict } from '../../model/health.ts';
import { remedyNow } from '../../model/standing.ts';
import type { ConditionState } from '../engine/memory.ts';
import { effectiveSeverity } from '../engine/verdict.ts';
import { matchingIgnore } from '../policy/ignore.ts';
import { DEVICE_MISSING } from '../policy/own-conditions.ts';
import type { ConditionPolicy, HealthPolicy } from '../policy/policy.ts';

type Unnumbered = Omit<HealthEvent, 'id'>;

/** What every event of one judgement shares. */
export interface EventContext {
  readonly key: string;
  readonly device: Device;
  readonly holders: readonly Allocation[];
  readonly policy: HealthPolicy;
  readonly nowMs: number;
  policyOf(condition: { readonly type: string; readonly instance?: string | undefined }): ConditionPolicy;
}

/** A condition that begins or ends to count. `cause`: why it ends, where no look found it over. */
export function conditionEvent(context: EventContext, transition: 'raised' | 'cleared', state: ConditionState, cause?: string): Unnumbered {
  const policy = context.policyOf(state);
  const isIgnored = matchingIgnore(context.policy.ignore, context.device, state.type, state.instance, context.nowMs) !== undefined;
  return {
    ...common(context),
    transition,
    condition: state.type,
    ...(state.instance === undefined ? {} : { instance: state.instance }),
    severity: effectiveSeverity(state, policy),
    reason: state.reason,
    message: transition === 'cleared' ? withdrawn(state, context.nowMs, cause) : state.message,
    remedy: transition === 'cleared' ? 'none' : (state.remedy ?? policy.remedy),
    ...(isIgnored ? { ignored: true as const } : {}),
  };
}

/** The message of a condition was written while it held, in the present tense: it is quoted as what was. */
function withdrawn({ sinceMs, message }: ConditionState, nowMs: number, cause: string | undefined): string {
  const age = formatDuration(millis(Math.max(0, Math.floor((nowMs - sinceMs) / 1_000)) * 1_000));
  const why = cause === undefined ? '' : `, because ${cause}`;
  return `it was withdrawn ${age} after it began${why}; its last message was '${message}'`;
}

/** Ends whatever counts of a device that is not there any more. */
export function endingEvents(
  context: EventContext,
  conditions: Readonly<Record<string, ConditionState>>,
  cause: string,
): readonly Unnumbered[] {
  return Object.values(conditions)
    .filter((state) => state.phase !== 'pending')
    .map((state) => conditionEvent(context, 'cleared', state, cause));
}

/** A verdict that changes, told by the condition that leads the new one. */
export function stateEvent(context: EventContext, from: HealthState, verdict: Verdict): Unnumbered {
  const base = { ...common(context), transition: 'state' as const, from, to: verdict.state };
  const leader = leadingCondition(context, verdict);
  if (leader === undefined) {
    return verdict.state === 'unknown'
      ? { ...base, reason: 'NotRead', message: 'it is not there, or nothing was read from it lately', remedy: 'inspect' }
      : { ...base, reason: 'NoConditionCounts', message: 'no condition takes anything from it any more', remedy: 'none' };
  }
  const { type, instance, severity, reason } = leader;
  const remedy = remedyNow(leader);
  return { ...base, condition: type, ...(instance === undefined ? {} : { instance }), severity, reason, message: toldOf(leader), remedy };
}

/** One that ended leads the verdict until it is withdrawn. */
function toldOf({ message, recovering }: ActiveCondition): string {
  return recovering === undefined ? message : `it ended and waits to be withdrawn; its last message was '${message}'`;
}

/** The worst one; for `unknown` the one that says why nothing is known. */
function leadingCondition(context: EventContext, verdict: Verdict): ActiveCondition | undefined {
  if (verdict.state === 'healthy') return undefined;
  if (verdict.state !== 'unknown') return verdict.conditions[0];
  return verdict.conditions.find((condition) => condition.type === DEVICE_MISSING || context.policyOf(condition).class === 'no-data');
}

function common({ key, device, holders, nowMs }: EventContext): Pick<HealthEvent, 'timeMs' | 'device' | 'family' | 'holders'> {
  return { timeMs: nowMs, device: key, family: device.family, holders: holders.map(holder) };
}

function holder({ namespace, pod, container, resource, deviceId }: Allocation): EventHolder {
  return { namespace, pod, container, resource, deviceId };
}
