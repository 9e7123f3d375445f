import { defined } from '../../model/defined.ts';
import { type Device, deviceKey } from '../../model/device.ts';
import type { DeviceRecord, HeldRecord, SourceFindings, UsedRecord } from '../../model/device-record.ts';
import { durationText } from '../../model/duration.ts';
import type { HealthEvent } from '../../model/events.ts';
import type { Finding, HealthState, Verdict } from '../../model/health.ts';
import { conditionEvent, type EventContext, eventHolders, renamedEvent, stateEvent } from '../journal/event-text.ts';
import { NO_LEVELS, storedLevels } from '../policy/levels.ts';
import { DEVICE_MISSING, DEVICE_NOT_READ, FLAPPING } from '../policy/own-conditions.ts';
import { type ConditionPolicy, conditionPolicy, type HealthPolicy } from '../policy/policy.ts';
import { type Evidence, isEmpty, type StepTime, stepConditions } from './conditions.ts';
import { type EvidenceOutput, evidenceOf, mergeEvidence } from './evidence.ts';
import { uncheckedAfter, wasRead } from './first-read.ts';
import { stepFlapping, withOriginals } from './flapping.ts';
import type { ConditionState, DeviceMemory } from './memory.ts';
import { judgeVerdict } from './verdict.ts';

/** The part of a device's record that the engine judges by. A record of the journal has no more, and no `occupancy`. */
export interface HealthInput
  extends Pick<DeviceRecord, 'key' | 'device' | 'missingSinceMs'>,
    Pick<HeldRecord, 'holders'>,
    Partial<Pick<UsedRecord, 'isUnread' | 'awaitedSinceMs' | 'use' | 'lastHolders' | 'occupancy'>> {
  readonly read?: SourceFindings | undefined;
  readonly outOfBand?: SourceFindings | undefined;
  readonly repeats?: SourceFindings | undefined;
}

export interface DeviceJudgement {
  readonly memory: DeviceMemory;
  readonly verdict: Verdict;
  /** Events without ids; the engine assigns the ids. */
  readonly events: readonly Omit<HealthEvent, 'id'>[];
  /** Wall clock at which the verdict can change by time alone. */
  readonly dueMs?: number;
}

type ConditionName = Pick<Evidence, 'type' | 'instance'>;
type States = Readonly<Record<string, ConditionState>>;
type Source = 'read' | 'outOfBand' | 'use' | 'repeats';

/**
 * Judges one device from the memory of its hardware, its input and the policy. Pure function. `told`: last state of other hardware that had
 * its name until now.
 */
export function judgeDevice(
  previous: DeviceMemory | undefined,
  input: HealthInput,
  policy: HealthPolicy,
  time: StepTime,
  told?: HealthState,
): DeviceJudgement {
  const { device } = input;
  const policyOf = (name: ConditionName): ConditionPolicy => conditionPolicy(policy, device.family, name.type, name.instance);
  const sight = freshnessOf(input, previous, policy, time.nowMs);
  const facts = factsOf(input, previous, sight, policy, policyOf, time.nowMs);
  const unchecked = sight.isRead
    ? uncheckedAfter(previous, [...(input.read as SourceFindings).findings, ...(input.outOfBand?.findings ?? [])], policyOf)
    : (previous?.unchecked ?? []);
  const remembered = withoutFlapping(known(previous?.conditions ?? NO_STATES, device, policy));
  const before = filterStates(remembered, (state) => !isLeft(state, input));
  const evidence = mergeEvidence([...facts.evidence, ...sight.evidence]);
  const step = stepConditions(before, evidence, policyOf, time);
  const flaps = stepFlapping(previous, step, evidence, policyOf, policy.flapping, time);
  const conditions = { ...step.states, ...flaps.states };
  const changes = [...step.changes, ...flaps.changes];
  const judged = judgeVerdict({
    device,
    states: Object.values(conditions),
    isBlind: sight.isBlind,
    isRead: sight.isRead,
    wasRead: wasRead(previous),
    unchecked,
    ...defined({ previous: previous?.verdict }),
    policy,
    nowMs: time.nowMs,
  });
  const { transitions, from } = transition(previous, judged.verdict, told);
  const verdict = { ...judged.verdict, transitions };
  const context = { key: input.key, device, holders: input.holders, policy, policyOf, nowMs: time.nowMs };
  const ended = Object.values(remembered).filter((state) => state.phase !== 'pending' && isLeft(state, input));
  const events = [
    ...returnEvents(context, previous),
    ...ended.map((state) => conditionEvent(context, 'cleared', state, 'the pod that it was about no longer holds the device')),
    ...changes.map(({ change, state }) => conditionEvent(context, change, state)),
  ];
  if (from !== undefined) events.push(stateEvent(context, from, verdict));
  const readAtMs = input.read?.readAtMs ?? previous?.readAtMs;
  const user = input.lastHolders ?? previous?.user;
  const memory: DeviceMemory = {
    device,
    listedAtMs: time.nowMs,
    ...defined({ readAtMs }),
    ...(input.missingSinceMs === undefined ? {} : { missingSinceMs: previous?.missingSinceMs ?? time.nowMs }),
    verdict: { state: verdict.state, sinceMs: verdict.sinceMs },
    transitions,
    conditions,
    rates: facts.rates,
    ...storedLevels(facts.levels),
    ...defined({ user }),
    wasRead: judged.wasRead,
    ...(unchecked.length === 0 ? {} : { unchecked }),
    activations: flaps.activations,
  };
  return {
    memory,
    verdict,
    events,
    ...earliest(step.dueMs, flaps.dueMs, judged.dueMs, sight.dueMs),
  };
}

/** Events of hardware that has another name than before. When nobody had seen it for a while, its conditions had ended under that name. */
function returnEvents(context: EventContext, previous: DeviceMemory | undefined): readonly Omit<HealthEvent, 'id'>[] {
  if (previous === undefined) return [];
  const was = deviceKey(previous.device);
  const renamed = was === context.key ? [] : [renamedEvent(context, was)];
  const counting = previous.isDisplaced === true ? Object.values(previous.conditions).filter(({ phase }) => phase !== 'pending') : [];
  return [...renamed, ...counting.map((state) => conditionEvent(context, 'raised', state))];
}

/** The condition was about pods of which none holds the device now. */
function isLeft({ holders: then }: ConditionState, { holders: now, occupancy }: HealthInput): boolean {
  if (then === undefined || then.length === 0 || occupancy?.areHoldersKnown !== true) return false;
  return !now.some((one) => then.some(({ namespace, pod }) => namespace === one.namespace && pod === one.pod));
}

/** Keeps only declared conditions. A condition that only an older version of the agent declared ends without an event. */
function known(states: States, { family }: Device, policy: HealthPolicy): States {
  const declared = policy.specs.get(family);
  return declared === undefined ? states : filterStates(states, ({ type }) => declared.has(type));
}

/** Presence of the device and age of its last read, with the evidence on the conditions for them. */
interface ReadFreshness {
  readonly evidence: readonly Evidence[];
  /** The latest collection read the device within the stale age. */
  readonly isRead: boolean;
  /** The device is missing, or its last read is older than the stale age. */
  readonly isBlind: boolean;
  readonly dueMs?: number;
}

/** A device that was read is neither missing nor stale. Where no condition is remembered, there is nothing to end. */
const NOTHING_HOLDS: readonly Evidence[] = [];

function freshnessOf(input: HealthInput, previous: DeviceMemory | undefined, policy: HealthPolicy, nowMs: number): ReadFreshness {
  const isMissing = input.missingSinceMs !== undefined;
  const readAtMs = input.read?.readAtMs ?? previous?.readAtMs;
  // Until its first read by this run, a device that was stale at the end of the earlier run stays stale.
  const wasBlind = input.read === undefined && previous?.conditions[DEVICE_NOT_READ] !== undefined;
  const freshFromMs = input.read?.readAtMs ?? (readAtMs === undefined ? undefined : Math.max(readAtMs, input.awaitedSinceMs ?? readAtMs));
  const staleAtMs = freshFromMs === undefined ? undefined : freshFromMs + policy.staleAfterMs;
  const isStale = wasBlind || staleAtMs === undefined || nowMs >= staleAtMs;
  const isRead = input.read !== undefined && !isStale && !isMissing && input.isUnread !== true;
  const atMs = input.read?.readAtMs ?? nowMs;
  const hasConditions = !isEmpty(previous?.conditions);
  return {
    evidence:
      isRead && !hasConditions
        ? NOTHING_HOLDS
        : [missingEvidence(isMissing ? true : isRead ? false : 'unknown', atMs), notReadEvidence(input, isStale, readAtMs, nowMs)],
    isRead,
    isBlind: isMissing || isStale || input.device.identity === null,
    ...(isMissing || isStale ? {} : { dueMs: staleAtMs as number }),
  };
}

/** A device that was not read may still be missing, so `status` is then unknown. */
function missingEvidence(status: Evidence['status'], atMs: number): Evidence {
  const message = 'was listed before, but the latest complete reading of its family does not list it';
  return { type: DEVICE_MISSING, status, atMs, reason: 'NotListed', message };
}

/** False for a missing device, which cannot be read. */
function notReadEvidence(input: HealthInput, isStale: boolean, readAtMs: number | undefined, nowMs: number): Evidence {
  const isMissing = input.missingSinceMs !== undefined;
  const isUnsettled = input.read === undefined && !isMissing;
  const status: Evidence['status'] = isStale && !isMissing ? true : isUnsettled ? 'unknown' : false;
  const never = { type: DEVICE_NOT_READ, status, atMs: nowMs, reason: 'NeverRead', message: 'was never read' };
  if (readAtMs === undefined) return never;
  const age = durationText(Math.floor((nowMs - readAtMs) / 1_000) * 1_000);
  return { ...never, reason: 'Stale', message: `last reading is ${age} old` };
}

/** Evidence from the device and from other sources. Each source gives evidence only on its own conditions. */
function factsOf(
  input: HealthInput,
  previous: DeviceMemory | undefined,
  { isRead }: ReadFreshness,
  policy: HealthPolicy,
  policyOf: (name: ConditionName) => ConditionPolicy,
  nowMs: number,
): EvidenceOutput {
  const remembered = filterStates(withOriginals(previous?.conditions ?? NO_STATES), (state) => !OWN.has(state.type));
  let facts: EvidenceOutput = {
    evidence: [],
    rates: previous?.rates ?? {},
    levels: previous?.levels ?? NO_LEVELS,
  };
  const sourceOf = ({ isOutOfBand, isUse, isOfFaults }: ConditionPolicy): Source =>
    isUse ? 'use' : isOfFaults ? 'repeats' : isOutOfBand ? 'outOfBand' : 'read';
  const withHolders = (item: Evidence): Evidence =>
    item.status === true && policyOf(item).isOfHolder ? { ...item, holders: eventHolders(input.holders) } : item;
  const take = (source: Source, { findings, readAtMs: atMs, monotonicMs }: SourceFindings): void => {
    const isOfSource = (name: ConditionName): boolean => sourceOf(policyOf(name)) === source;
    const conditions = filterStates(remembered, isOfSource);
    const { rates, levels } = facts;
    const next = evidenceOf({ findings, conditions, rates, levels, atMs, monotonicMs, isOfSource, policyOf });
    const evidence = source === 'use' ? next.evidence.map(withHolders) : next.evidence;
    facts = { ...next, evidence: facts.evidence.length === 0 ? evidence : [...facts.evidence, ...evidence] };
  };
  const isHeld = input.holders.length > 0;
  const ofHolders = (finding: Finding): Finding =>
    finding.status === undefined || (finding.ifHeld ?? isHeld) === isHeld ? finding : { ...finding, status: false };
  if (isRead && input.read !== undefined) take('read', { ...input.read, findings: input.read.findings.map(ofHolders) });
  for (const source of ['outOfBand', 'use', 'repeats'] as const) {
    const told = input[source];
    if (told !== undefined && nowMs < told.readAtMs + policy.staleAfterMs) take(source, told);
  }
  return facts;
}

const NO_STATES: States = {};
const OWN: ReadonlySet<string> = new Set([DEVICE_MISSING, DEVICE_NOT_READ, FLAPPING]);
const withoutFlapping = (states: States): States => filterStates(states, (state) => state.type !== FLAPPING);

function filterStates(states: States, keep: (state: ConditionState) => boolean): States {
  for (const key in states) {
    if (!keep(states[key] as ConditionState)) return Object.fromEntries(Object.entries(states).filter(([, state]) => keep(state)));
  }
  return states;
}

/** The first verdict `healthy` of a new device is not a transition. */
function transition(
  previous: DeviceMemory | undefined,
  verdict: Verdict,
  told: HealthState | undefined,
): { readonly transitions: DeviceMemory['transitions']; readonly from?: HealthState } {
  const before = previous?.transitions ?? {};
  const from = told ?? previous?.verdict.state ?? (verdict.state === 'healthy' ? 'healthy' : 'unknown');
  if (from === verdict.state) return { transitions: before };
  return { transitions: { ...before, [verdict.state]: (before[verdict.state] ?? 0) + 1 }, from };
}

function earliest(...times: readonly (number | undefined)[]): { readonly dueMs?: number } {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? {} : { dueMs: Math.min(...known) };
}
