import type { Allocation } from '../../model/allocation.ts';
import { type Device, isOtherDevice } from '../../model/device.ts';
import { formatDuration, millis } from '../../model/duration.ts';
import type { HealthEvent } from '../../model/events.ts';
import type { Finding, HealthState, Verdict } from '../../model/health.ts';
import { conditionEvent, endingEvents, stateEvent } from '../journal/event-text.ts';
import { asKept, levelsOf } from '../policy/levels.ts';
import { DEVICE_MISSING, DEVICE_NOT_READ, FLAPPING } from '../policy/own-conditions.ts';
import { type ConditionPolicy, conditionPolicy, type HealthPolicy } from '../policy/policy.ts';
import { type Evidence, type StepTime, stepConditions } from './conditions.ts';
import { type EvidenceOutput, evidenceOf, mergeEvidence } from './evidence.ts';
import { stepFlapping } from './flapping.ts';
import type { ConditionState, DeviceMemory } from './memory.ts';
import { judgeVerdict } from './verdict.ts';

/** What one source told of a device, and when. */
export interface SourceFindings {
  readonly findings: readonly Finding[];
  /** Wall clock of the look that told it. */
  readonly atMs: number;
  /** Monotonic clock of that look, which tells its age when the wall clock was set since. */
  readonly monotonicMs?: number;
}

/** One device as it is brought before the engine. */
export interface JudgedDevice {
  /** `family/id`. */
  readonly key: string;
  readonly device: Device;
  /** The last read of the device itself by this run of the agent, however old; absent before the first. */
  readonly read?: SourceFindings;
  /** What other sources told last. */
  readonly aside?: SourceFindings;
  /** The latest look at the family did not read the device: what was read before says nothing about now. */
  readonly isUnread?: boolean;
  /** Wall clock of the start of this run of the agent. A device that an earlier run read is given time from then on. */
  readonly awaitedSinceMs?: number;
  /** Present when a complete look at its family no longer had it. */
  readonly missingSinceMs?: number;
  readonly holders: readonly Allocation[];
}

export interface DeviceJudgement {
  readonly memory: DeviceMemory;
  readonly verdict: Verdict;
  /** Without their ids, which the engine gives. */
  readonly events: readonly Omit<HealthEvent, 'id'>[];
  /** When the verdict can change by time alone. */
  readonly dueMs?: number;
}

type ConditionName = Pick<Evidence, 'type' | 'instance'>;
type States = Readonly<Record<string, ConditionState>>;

/** Judges one device: what was remembered and what was told now, by the policy, at one time. Pure. */
export function judgeDevice(
  remembered: DeviceMemory | undefined,
  input: JudgedDevice,
  policy: HealthPolicy,
  time: StepTime,
): DeviceJudgement {
  const { device } = input;
  const isOther = remembered !== undefined && isOtherDevice(remembered.device, device);
  const previous = isOther ? ofNameAlone(remembered, device) : remembered;
  const policyOf = (name: ConditionName): ConditionPolicy => conditionPolicy(policy, device.family, name.type, name.instance);
  const sight = sightOf(input, previous, policy, time.nowMs);
  const facts = factsOf(input, previous, sight, policy, policyOf, time.nowMs);
  const before = withoutFlapping(known(previous?.conditions ?? {}, device, policy));
  const step = stepConditions(before, mergeEvidence([...facts.evidence, ...sight.evidence]), policyOf, time);
  const flaps = stepFlapping(
    previous,
    step,
    sight.isRead ? (input.read as SourceFindings).atMs : undefined,
    policyOf,
    policy.flapping,
    time,
  );
  const conditions = { ...step.states, ...flaps.states };
  const changes = [...step.changes, ...flaps.changes];
  const judged = judgeVerdict({
    device,
    states: Object.values(conditions),
    isBlind: sight.isBlind,
    ...(previous === undefined ? {} : { previous: previous.verdict }),
    policy,
    nowMs: time.nowMs,
  });
  const { transitions, from } = transition(previous, judged.verdict);
  const verdict = { ...judged.verdict, transitions };
  const context = { key: input.key, device, holders: input.holders, policy, policyOf, nowMs: time.nowMs };
  const ended = isOther ? endingEvents(context, remembered.conditions, 'the name went to another device') : [];
  const events = [...ended, ...changes.map(({ change, state }) => conditionEvent(context, change, state))];
  if (from !== undefined) events.push(stateEvent(context, from, verdict));
  const readAtMs = input.read?.atMs ?? previous?.readAtMs;
  const memory: DeviceMemory = {
    device,
    listedAtMs: time.nowMs,
    ...(readAtMs === undefined ? {} : { readAtMs }),
    ...(input.missingSinceMs === undefined ? {} : { missingSinceMs: previous?.missingSinceMs ?? time.nowMs }),
    verdict: { state: verdict.state, sinceMs: verdict.sinceMs },
    transitions,
    conditions,
    rates: facts.rates,
    ...asKept(facts.levels),
    activations: flaps.activations,
  };
  return { memory, verdict, events, ...earliest(step.dueMs, flaps.dueMs, judged.dueMs, sight.dueMs) };
}

/** What stays when the name has come to stand for another device: its history is its own. A card that moved to another slot keeps its levels. */
function ofNameAlone({ device, listedAtMs, verdict, transitions, levels }: DeviceMemory, { uuid }: Device): DeviceMemory {
  const kept = levels === undefined || uuid === undefined ? {} : { levels };
  return { device, listedAtMs, verdict, transitions, conditions: {}, rates: {}, ...kept, activations: {} };
}

/** Conditions that are declared. What an older version of the agent remembered under another name ends without a word. */
function known(states: States, { family }: Device, policy: HealthPolicy): States {
  const declared = policy.specs.get(family);
  return declared === undefined ? states : filterStates(states, ({ type }) => declared.has(type));
}

/** Whether the device is there and was read lately, and the evidence on the conditions that say so. */
interface Sight {
  readonly evidence: readonly Evidence[];
  /** The latest look read the device, not long ago. */
  readonly isRead: boolean;
  /** Not there, or not read for so long that what was read says nothing about now. */
  readonly isBlind: boolean;
  readonly dueMs?: number;
}

function sightOf(input: JudgedDevice, previous: DeviceMemory | undefined, policy: HealthPolicy, nowMs: number): Sight {
  const isMissing = input.missingSinceMs !== undefined;
  const readAtMs = input.read?.atMs ?? previous?.readAtMs;
  // Before its first read a device is as blind as the run of the agent before left it.
  const wasBlind = input.read === undefined && previous?.conditions[DEVICE_NOT_READ] !== undefined;
  const freshFromMs = input.read?.atMs ?? (readAtMs === undefined ? undefined : Math.max(readAtMs, input.awaitedSinceMs ?? readAtMs));
  const staleAtMs = freshFromMs === undefined ? undefined : freshFromMs + policy.staleAfterMs;
  const isStale = wasBlind || staleAtMs === undefined || nowMs >= staleAtMs;
  const isRead = input.read !== undefined && !isStale && !isMissing && input.isUnread !== true;
  const atMs = input.read?.atMs ?? nowMs;
  return {
    evidence: [missingEvidence(isMissing ? true : isRead ? false : 'unknown', atMs), notReadEvidence(input, isStale, readAtMs, nowMs)],
    isRead,
    isBlind: isMissing || isStale,
    ...(isMissing || isStale ? {} : { dueMs: staleAtMs as number }),
  };
}

/** A device that nobody has seen is not back. */
function missingEvidence(status: Evidence['status'], atMs: number): Evidence {
  const message = 'was there before, and a complete look at its family no longer has it';
  return { type: DEVICE_MISSING, status, atMs, reason: 'NotListed', message };
}

/** A missing device is not there to be read. */
function notReadEvidence(input: JudgedDevice, isStale: boolean, readAtMs: number | undefined, nowMs: number): Evidence {
  const isMissing = input.missingSinceMs !== undefined;
  const isUnsettled = input.read === undefined && !isMissing;
  const status: Evidence['status'] = isStale && !isMissing ? true : isUnsettled ? 'unknown' : false;
  const never = { type: DEVICE_NOT_READ, status, atMs: nowMs, reason: 'NeverRead', message: 'was never read' };
  if (readAtMs === undefined) return never;
  const age = formatDuration(millis(Math.max(0, Math.floor((nowMs - readAtMs) / 1000)) * 1000));
  return { ...never, reason: 'Stale', message: `last reading is ${age} old` };
}

/** What the device and other sources say of its conditions, each of its own. */
function factsOf(
  input: JudgedDevice,
  previous: DeviceMemory | undefined,
  { isRead }: Sight,
  policy: HealthPolicy,
  policyOf: (name: ConditionName) => ConditionPolicy,
  nowMs: number,
): EvidenceOutput {
  const remembered = filterStates(previous?.conditions ?? {}, (state) => !OWN.has(state.type));
  let facts: EvidenceOutput = {
    evidence: [],
    rates: previous?.rates ?? {},
    levels: levelsOf(previous?.levels, input.device),
  };
  const take = ({ findings, atMs }: SourceFindings, isAside: boolean): void => {
    const isTold = ({ type }: ConditionName): boolean => policyOf({ type }).isAside === isAside;
    const conditions = filterStates(remembered, isTold);
    const next = evidenceOf({ ...facts, findings: findings.filter(isTold), conditions, atMs, policyOf });
    facts = { ...next, evidence: [...facts.evidence, ...next.evidence] };
  };
  if (isRead && input.read !== undefined) take(input.read, false);
  if (input.aside !== undefined && nowMs < input.aside.atMs + policy.staleAfterMs) take(input.aside, true);
  return facts;
}

const OWN: ReadonlySet<string> = new Set([DEVICE_MISSING, DEVICE_NOT_READ, FLAPPING]);
const withoutFlapping = (states: States): States => filterStates(states, (state) => state.type !== FLAPPING);

function filterStates(states: States, keep: (state: ConditionState) => boolean): States {
  const entries = Object.entries(states);
  const kept = entries.filter(([, state]) => keep(state));
  return kept.length === entries.length ? states : Object.fromEntries(kept);
}

/** The first sight of a device in good order is no transition. */
function transition(
  previous: DeviceMemory | undefined,
  verdict: Verdict,
): { readonly transitions: DeviceMemory['transitions']; readonly from?: HealthState } {
  const before = previous?.transitions ?? {};
  const from = previous?.verdict.state ?? (verdict.state === 'healthy' ? 'healthy' : 'unknown');
  if (from === verdict.state) return { transitions: before };
  return { transitions: { ...before, [verdict.state]: (before[verdict.state] ?? 0) + 1 }, from };
}

function earliest(...times: readonly (number | undefined)[]): { readonly dueMs?: number } {
  const known = times.filter((time) => time !== undefined);
  return known.length === 0 ? {} : { dueMs: Math.min(...known) };
}
