import type { Allocation } from '../model/allocation.ts';
import type { DeviceReport } from '../model/collection.ts';
import { type Device, isOtherDevice } from '../model/device.ts';
import { formatDuration, millis } from '../model/duration.ts';
import type { HealthEvent } from '../model/events.ts';
import type { HealthState, Verdict } from '../model/health.ts';
import { type Evidence, type StepTime, stepConditions } from './conditions.ts';
import { conditionEvent, endingEvents, stateEvent } from './event-text.ts';
import { type EvidenceOutput, evidenceOf, mergeEvidence, nothingKnown } from './evidence.ts';
import { stepFlapping } from './flapping.ts';
import { asKept, levelsOf } from './levels.ts';
import type { ConditionState, DeviceMemory } from './memory.ts';
import { DEVICE_MISSING, DEVICE_NOT_READ, FLAPPING } from './own-conditions.ts';
import { type ConditionPolicy, conditionPolicy, type HealthPolicy } from './policy.ts';
import { judgeVerdict } from './verdict.ts';

/** One device as it is brought before the engine. */
export interface JudgedDevice {
  /** `family/id`. */
  readonly key: string;
  /** The last report there is, however old. */
  readonly report: Pick<DeviceReport, 'device' | 'findings'>;
  /** Wall clock of the read that the report comes from; absent when it was never read. */
  readonly readAtMs?: number;
  /** Monotonic clock of that read, which tells its age when the wall clock was set since. */
  readonly readMonotonicMs?: number | undefined;
  /** Present when this run of the agent, which began then, has not read it yet: what an earlier run read is no older than that. */
  readonly awaitedSinceMs?: number;
  /** Present when a complete reading of its family no longer had it. */
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

type ConditionName = { readonly type: string; readonly instance?: string };

/** Judges one device: what was remembered and what was read now, by the policy, at one time. Pure. */
export function judgeDevice(
  remembered: DeviceMemory | undefined,
  input: JudgedDevice,
  policy: HealthPolicy,
  time: StepTime,
): DeviceJudgement {
  const { device } = input.report;
  const isOther = remembered !== undefined && isOtherDevice(remembered.device, device);
  const previous = isOther ? ofNameAlone(remembered, device) : remembered;
  const policyOf = (name: ConditionName): ConditionPolicy => conditionPolicy(policy, device.family, name.type, name.instance);
  const presence = presenceOf(input, previous, policy, time.nowMs);
  const facts = readFacts(previous, input, presence, policyOf, time.nowMs);
  const before = withoutFlapping(previous?.conditions ?? {});
  const step = stepConditions(before, mergeEvidence([...facts.evidence, ...presence.evidence]), policyOf, time);
  const flaps = stepFlapping(previous, step, presence.silent, policyOf, policy.flapping, time);
  const conditions = { ...step.states, ...flaps.states };
  const changes = [...step.changes, ...flaps.changes];
  const judged = judgeVerdict({
    device,
    states: Object.values(conditions),
    blind: presence.blind,
    ...(previous === undefined ? {} : { previous: previous.verdict }),
    policy,
    nowMs: time.nowMs,
  });
  const { transitions, from } = transition(previous, judged.verdict);
  const verdict = { ...judged.verdict, transitions };
  const context = { key: input.key, device, holders: input.holders, policy, policyOf, nowMs: time.nowMs };
  const ended = isOther ? endingEvents(context, remembered.conditions, 'its name stands for another device now') : [];
  const events = [...ended, ...changes.map(({ change, state }) => conditionEvent(context, change, state))];
  if (from !== undefined) events.push(stateEvent(context, from, verdict));
  const memory: DeviceMemory = {
    device,
    listedAtMs: time.nowMs,
    ...readAt(input, previous),
    ...(input.missingSinceMs === undefined ? {} : { missingSinceMs: previous?.missingSinceMs ?? time.nowMs }),
    verdict: { state: verdict.state, sinceMs: verdict.sinceMs },
    transitions,
    conditions,
    rates: facts.rates,
    ...asKept(facts.levels),
    activations: flaps.activations,
  };
  return { memory, verdict, events, ...earliest(step.dueMs, flaps.dueMs, judged.dueMs, presence.dueMs) };
}

/** What stays when the name has come to stand for another device: its history is its own. A card that moved to another slot keeps its levels. */
function ofNameAlone({ device, listedAtMs, verdict, transitions, levels }: DeviceMemory, { uuid }: Device): DeviceMemory {
  const kept = levels === undefined || uuid === undefined ? {} : { levels };
  return { device, listedAtMs, verdict, transitions, conditions: {}, rates: {}, ...kept, activations: {} };
}

interface Presence {
  readonly evidence: readonly Evidence[];
  /** Nothing fresh to judge by: keep what is known. */
  readonly silent: boolean;
  /** Not there, or not read for so long that what was read says nothing about now. */
  readonly blind: boolean;
  readonly dueMs?: number;
}

function readAt(input: JudgedDevice, previous: DeviceMemory | undefined): { readonly readAtMs?: number } {
  const readAtMs = input.readAtMs ?? previous?.readAtMs;
  return readAtMs === undefined ? {} : { readAtMs };
}

/** Whether the device is there and was read lately, as evidence for the conditions that say so. */
function presenceOf(input: JudgedDevice, previous: DeviceMemory | undefined, policy: HealthPolicy, nowMs: number): Presence {
  const { readAtMs } = readAt(input, previous);
  const missing = input.missingSinceMs !== undefined;
  const staleAt = readAtMs === undefined ? undefined : Math.max(readAtMs, input.awaitedSinceMs ?? readAtMs) + policy.staleAfterMs;
  const unread = staleAt === undefined || nowMs >= staleAt;
  const unseen = unread || input.readAtMs === undefined;
  const evidence = [missingEvidence(missing, unseen), notReadEvidence(unread && !missing, readAtMs, nowMs)];
  const silent = missing || unseen;
  const blind = missing || unread;
  return { evidence, silent, blind, ...(blind || staleAt === undefined ? {} : { dueMs: staleAt }) };
}

/** A device that nobody has seen is not back. */
function missingEvidence(missing: boolean, unseen: boolean): Evidence {
  const message = 'was there before, and a complete reading of its family no longer has it';
  return { type: DEVICE_MISSING, status: missing ? true : unseen ? 'unknown' : false, reason: 'NotListed', message };
}

function notReadEvidence(status: boolean, readAtMs: number | undefined, nowMs: number): Evidence {
  const never = { type: DEVICE_NOT_READ, status, reason: 'NeverRead', message: 'was never read' };
  if (readAtMs === undefined) return never;
  const age = formatDuration(millis(Math.max(0, Math.floor((nowMs - readAtMs) / 1000)) * 1000));
  return { ...never, reason: 'Stale', message: `last reading is ${age} old` };
}

function readFacts(
  previous: DeviceMemory | undefined,
  input: JudgedDevice,
  presence: Presence,
  policyOf: (name: ConditionName) => ConditionPolicy,
  nowMs: number,
): EvidenceOutput {
  const conditions = withoutOwn(previous?.conditions ?? {});
  const rates = previous?.rates ?? {};
  const levels = levelsOf(previous?.levels, input.report.device);
  if (presence.silent || input.readAtMs === undefined) return { evidence: nothingKnown(conditions), rates, levels };
  return evidenceOf({ findings: input.report.findings, conditions, rates, levels, readAtMs: input.readAtMs, nowMs, policyOf });
}

type States = Readonly<Record<string, ConditionState>>;

const OWN: ReadonlySet<string> = new Set([DEVICE_MISSING, DEVICE_NOT_READ, FLAPPING]);
const withoutOwn = (states: States): States => filterStates(states, (state) => !OWN.has(state.type));
const withoutFlapping = (states: States): States => filterStates(states, (state) => state.type !== FLAPPING);

function filterStates(states: States, keep: (state: ConditionState) => boolean): States {
  return Object.fromEntries(Object.entries(states).filter(([, state]) => keep(state)));
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
