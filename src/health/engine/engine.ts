import type { HealthEvent } from '../../model/events.ts';
import type { Verdict } from '../../model/health.ts';
import { endingEvents } from '../journal/event-text.ts';
import { EventRing } from '../journal/events.ts';
import { conditionPolicy, type HealthPolicy } from '../policy/policy.ts';
import { createClockKeeper } from './clock-keeper.ts';
import { type JudgedDevice, judgeDevice } from './judge-device.ts';
import { type DeviceMemory, type HealthMemory, NOTHING, notAfter, resumed } from './memory.ts';

export interface HealthEngineOptions {
  readonly policy: HealthPolicy;
  /** What an earlier run of this boot left, from the state file. */
  readonly state?: HealthMemory;
  /** Events kept in memory. Default 1,000. */
  readonly eventLimit?: number;
}

export interface JudgeInput {
  /** Every device that is listed now, missing ones included. */
  readonly devices: readonly JudgedDevice[];
  /** Of the same moment as `nowMs`; with it a wall clock that was set changes no duration. */
  readonly monotonicMs?: number;
}

export interface Judgement {
  /** By device key, one for each device given. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  /** What changed. Not visible through `eventsSince` before it is announced. */
  readonly events: readonly HealthEvent[];
  /** Devices came, went or came back. */
  readonly isOtherSet: boolean;
  /** When to judge again, with the same readings if there are no newer: then a verdict can change by time alone. */
  readonly nextCheckMs?: number;
}

/** A device of which something is remembered. Times by the wall clock. */
export type RememberedDevice = Pick<DeviceMemory, 'device' | 'readAtMs' | 'missingSinceMs'>;

/** Decides on the health of all devices. It alone remembers; everything it calls is a pure function. */
export interface HealthEngine {
  judge(input: JudgeInput, nowMs: number): Judgement;
  /** All that has to survive a restart, events not yet announced included. Plain data that no later call changes. */
  state(): HealthMemory;
  /** Whether more changed since the last {@link state} than the times of readings. */
  hasNews(): boolean;
  /** Makes events up to that id visible, all by default; returns those that were not before. */
  announce(throughId?: number): readonly HealthEvent[];
  /** Announced events younger than an id, oldest first. */
  eventsSince(id: number): readonly HealthEvent[];
  /** Devices seen in this boot, by this run or an earlier one: who restarts lists those that do not come back as missing. */
  knownDevices(): readonly RememberedDevice[];
}

/** Of the ring, as many events go into the state. */
const STATE_EVENTS = 200;
/** Timers of the runtime go off at once when they are set for more than 24 days. */
const LONGEST_WAIT_MS = 86_400_000;

export function createHealthEngine(options: HealthEngineOptions): HealthEngine {
  const { policy, state } = options;
  const ring = new EventRing(options.eventLimit, state?.events, state?.lastEventId);
  const clock = createClockKeeper();
  let memory: HealthMemory = state ?? NOTHING;
  let hasNews = true;

  const judge = (input: JudgeInput, nowMs: number): Judgement => {
    const present = atTime(clock.adjust(memory, nowMs, input), policy, nowMs);
    const devices: Record<string, DeviceMemory> = {};
    const verdicts = new Map<string, Verdict>();
    const events: Omit<HealthEvent, 'id'>[] = [];
    const dues: number[] = [];
    for (const given of input.devices) {
      const before = present.memory.devices[given.key];
      const judged = judgeDevice(before, clock.withTimes(given), policy, { nowMs, elapsedMs: present.elapsedMs });
      devices[given.key] = judged.memory;
      verdicts.set(given.key, judged.verdict);
      events.push(...judged.events);
      if (judged.dueMs !== undefined) dues.push(judged.dueMs);
      hasNews ||= isNews(before, judged.memory);
    }
    for (const [key, left] of Object.entries(present.memory.devices)) {
      if (devices[key] !== undefined) continue;
      if (isForgotten(left, policy, nowMs)) events.push(...forget(key, left, policy, nowMs));
      else devices[key] = left;
    }
    const isOtherSet = isOther(devices, present.memory.devices);
    hasNews ||= events.length > 0 || isOtherSet;
    memory = { ...present.memory, judgedAtMs: nowMs, devices };
    return { verdicts, events: ring.append(events), isOtherSet, ...nextCheck(dues, nowMs) };
  };

  return {
    judge,
    hasNews: () => hasNews,
    state: () => {
      hasNews = false;
      return { ...memory, lastEventId: ring.lastId, events: ring.tail(STATE_EVENTS) };
    },
    announce: (throughId) => ring.announce(throughId),
    eventsSince: (id) => ring.since(id),
    knownDevices: () => Object.values(memory.devices).map(known),
  };
}

/** Whether one names devices that the other does not, or that it has as missing. */
function isOther(a: HealthMemory['devices'], b: HealthMemory['devices']): boolean {
  const isSame = (key: string): boolean =>
    b[key] !== undefined && (a[key]?.missingSinceMs === undefined) === (b[key].missingSinceMs === undefined);
  return Object.keys(a).length !== Object.keys(b).length || !Object.keys(a).every(isSame);
}

/** Whether a device's memory differs by more than the times at which counters that stand still were read. */
function isNews(before: DeviceMemory | undefined, now: DeviceMemory): boolean {
  if (before === undefined || before.missingSinceMs !== now.missingSinceMs) return true;
  if (Object.keys(now.conditions).length + Object.keys(before.conditions).length > 0) return true;
  if (JSON.stringify(before.levels) !== JSON.stringify(now.levels)) return true;
  return Object.entries(now.rates).some(([key, { value }]) => before.rates[key]?.value !== value);
}

function nextCheck(dues: readonly number[], nowMs: number): { readonly nextCheckMs?: number } {
  if (dues.length === 0) return {};
  return { nextCheckMs: Math.min(Math.max(nowMs + 1, Math.ceil(Math.min(...dues))), nowMs + LONGEST_WAIT_MS) };
}

function known({ device, readAtMs, missingSinceMs }: DeviceMemory): RememberedDevice {
  return { device, ...(readAtMs === undefined ? {} : { readAtMs }), ...(missingSinceMs === undefined ? {} : { missingSinceMs }) };
}

/** The memory as of now, and how much of the time since the last judgement was watched: what nobody watched is neither holding nor quiet. */
function atTime(memory: HealthMemory, policy: HealthPolicy, nowMs: number): { readonly memory: HealthMemory; readonly elapsedMs: number } {
  const gapMs = nowMs - memory.judgedAtMs;
  if (memory === NOTHING) return { memory, elapsedMs: 0 };
  if (gapMs < 0) return { memory: notAfter(memory, nowMs), elapsedMs: 0 };
  return gapMs < policy.staleAfterMs ? { memory, elapsedMs: gapMs } : { memory: resumed(memory, gapMs), elapsedMs: 0 };
}

function isForgotten({ missingSinceMs, listedAtMs }: DeviceMemory, policy: HealthPolicy, nowMs: number): boolean {
  return nowMs - (missingSinceMs ?? listedAtMs) >= policy.missingRetentionMs;
}

/** Ends what was raised, so that a device that returns after all begins anew. */
function forget(
  key: string,
  { device, conditions }: DeviceMemory,
  policy: HealthPolicy,
  nowMs: number,
): readonly Omit<HealthEvent, 'id'>[] {
  const policyOf = (name: { readonly type: string; readonly instance?: string | undefined }) =>
    conditionPolicy(policy, device.family, name.type, name.instance);
  return endingEvents({ key, device, holders: [], policy, nowMs, policyOf }, conditions, 'the device was taken off the list');
}
