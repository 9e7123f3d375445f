import type { Allocation } from '../../model/allocation.ts';
import { defined } from '../../model/defined.ts';
import type { Device } from '../../model/device.ts';
import { durationText } from '../../model/duration.ts';
import type { EventHolder, HealthEvent } from '../../model/events.ts';
import type { ActiveCondition, HealthState, Verdict } from '../../model/health.ts';
import { remedyNow } from '../../model/health.ts';
import type { ConditionState } from '../engine/memory.ts';
import { effectiveSeverity } from '../engine/verdict.ts';
import { matchingIgnore } from '../policy/ignore.ts';
import { DEVICE_MISSING } from '../policy/own-conditions.ts';
import type { ConditionPolicy, HealthPolicy } from '../policy/policy.ts';

type Unnumbered = Omit<HealthEvent, 'id'>;

/** Input that all events of one judgement share. */
export interface EventContext {
  readonly key: string;
  readonly device: Device;
  readonly holders: readonly Allocation[];
  readonly policy: HealthPolicy;
  readonly nowMs: number;
  policyOf(condition: { readonly type: string; readonly instance?: string | undefined }): ConditionPolicy;
}

/** Event for a condition that starts or stops counting. `cause`: why it ended, when no reading denied it. */
export function conditionEvent(context: EventContext, transition: 'raised' | 'cleared', state: ConditionState, cause?: string): Unnumbered {
  const policy = context.policyOf(state);
  const isIgnored = matchingIgnore(context.policy.ignore, context.device, state.type, state.instance, context.nowMs) !== undefined;
  return {
    ...common(context),
    ...(transition === 'cleared' && state.holders !== undefined ? { holders: state.holders } : {}),
    transition,
    condition: state.type,
    ...defined({ instance: state.instance }),
    severity: effectiveSeverity(state, policy),
    reason: state.reason,
    message: transition === 'cleared' ? withdrawn(state, context.nowMs, cause) : state.message,
    remedy: transition === 'cleared' ? 'none' : (state.remedy ?? policy.remedy),
    ...(isIgnored ? { ignored: true as const } : {}),
  };
}

/** Quotes the last message, because it was written in the present tense while the condition held. */
function withdrawn({ sinceMs, message }: ConditionState, nowMs: number, cause: string | undefined): string {
  const age = durationText(Math.floor((nowMs - sinceMs) / 1_000) * 1_000);
  const why = cause === undefined ? '' : `, because ${cause}`;
  return `it was withdrawn ${age} after it began${why}; its last message was '${message}'`;
}

/** Events that clear all counting conditions of a device that is no longer listed. */
export function endingEvents(
  context: EventContext,
  conditions: Readonly<Record<string, ConditionState>>,
  cause: string,
): readonly Unnumbered[] {
  return Object.values(conditions)
    .filter((state) => state.phase !== 'pending')
    .map((state) => conditionEvent(context, 'cleared', state, cause));
}

/** Event for a condition that a person ended, because no reading could confirm it. */
export function acceptedEvent(context: EventContext, state: ConditionState, why: string): Unnumbered {
  const ended = conditionEvent(context, 'cleared', state, 'a person accepted it');
  return { ...ended, transition: 'accepted', message: `${why}; ${ended.message}` };
}

/** Event for known hardware that has another name. */
export function renamedEvent(context: EventContext, was: string): Unnumbered {
  const message = `the device ${was} has this name now`;
  return { ...common(context), transition: 'renamed', was, reason: 'OtherName', message, remedy: 'none' };
}

/** Event for a name that belongs to other hardware. `next`: the hardware that has the name now. */
export function replacedEvent(context: EventContext, next: Device): Unnumbered {
  const message = `the name now belongs to another device: ${identityText(context.device)} was followed by ${identityText(next)}`;
  return { ...common(context), transition: 'replaced', reason: 'OtherHardware', message, remedy: 'none' };
}

const identityText = ({ identity, uuid, pciAddress }: Device): string => identity ?? uuid ?? pciAddress ?? 'a device without an identity';

/** Event for a changed verdict, with the text of the condition that leads the new verdict. */
export function stateEvent(context: EventContext, from: HealthState, verdict: Verdict): Unnumbered {
  const base = { ...common(context), transition: 'state' as const, from, to: verdict.state };
  const leader = leadingCondition(context, verdict);
  if (leader === undefined) {
    return verdict.state === 'unknown'
      ? { ...base, reason: 'NotRead', message: 'the device is missing, or it was not read recently', remedy: 'inspect' }
      : { ...base, reason: 'NoConditionCounts', message: 'no condition limits the device any more', remedy: 'none' };
  }
  const { type, instance, severity, reason } = leader;
  const remedy = remedyNow(leader);
  return {
    ...base,
    condition: type,
    ...defined({ instance }),
    severity,
    reason,
    message: messageOf(leader),
    remedy,
  };
}

/** A recovering condition still counts, so it can lead the verdict. */
function messageOf({ message, recovering }: ActiveCondition): string {
  return recovering === undefined ? message : `it ended and waits to be withdrawn; its last message was '${message}'`;
}

/** The worst condition; for `unknown` the condition that explains why the state is unknown. */
function leadingCondition(context: EventContext, verdict: Verdict): ActiveCondition | undefined {
  if (verdict.state === 'healthy') return undefined;
  if (verdict.state !== 'unknown') return verdict.conditions[0];
  return verdict.conditions.find((condition) => condition.type === DEVICE_MISSING || context.policyOf(condition).class === 'no-data');
}

function common({ key, device, holders, nowMs }: EventContext): Pick<HealthEvent, 'timeMs' | 'device' | 'family' | 'holders'> {
  return { timeMs: nowMs, device: key, family: device.family, holders: eventHolders(holders) };
}

export const eventHolders = (holders: readonly Allocation[]): readonly EventHolder[] =>
  holders.map(({ namespace, pod, container, resource, deviceId }) => ({ namespace, pod, container, resource, deviceId }));
