import type { HealthEvent } from '../model/events.ts';
import type { Verdict } from '../model/health.ts';
import { createClockKeeper } from './clock-keeper.ts';
import { endingEvents } from './event-text.ts';
import { EventRing } from './events.ts';
import { type JudgedDevice, judgeDevice } from './judge-device.ts';
import { carriedOver, type DeviceMemory, type HealthMemory, NOTHING, notAfter, resumed } from './memory.ts';
import { conditionPolicy, type HealthPolicy } from './policy.ts';
import { QuietDevices } from './quiet.ts';

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
  /** When to judge again, with the same readings if there are no newer: then a verdict can change by time alone. */
  readonly nextCheckMs?: number;
}

/** A device of which something is remembered. Times by the wall clock. */
export type KnownDevice = Pick<DeviceMemory, 'device' | 'readAtMs' | 'missingSinceMs'>;

/** Decides on the health of all devices. It alone remembers; everything it calls is a pure function. */
export interface HealthEngine {
  judge(input: JudgeInput, nowMs: number): Judgement;
  /** The probe of that family was started anew: its next reading lacks what only its predecessor's memory knew. */
  renewed(family: string): void;
  /** All that has to survive a restart, events not yet announced included. Plain data that no later call changes. */
  state(): HealthMemory;
  /** Whether more is new since the last {@link state} than when devices that say the same were last read. */
  hasNews(): boolean;
  /** Makes events up to that id visible, all by default; returns those that were not before. */
  announce(throughId?: number): readonly HealthEvent[];
  /** Announced events younger than an id, oldest first. */
  eventsSince(id: number): readonly HealthEvent[];
  /** Devices seen in this boot, by this run or an earlier one: who restarts lists those that do not come back as missing. */
  knownDevices(): readonly KnownDevice[];
}

/** Of the ring, as many events go into the state. */
const STATE_EVENTS = 200;
/** Timers of the runtime go off at once when they are set for more than 24 days. */
const LONGEST_WAIT_MS = 86_400_000;

export function createHealthEngine(options: HealthEngineOptions): HealthEngine {
  const { policy, state } = options;
  const ring = new EventRing(options.eventLimit, state?.events, state?.lastEventId);
  const clock = createClockKeeper();
  const quiet = new QuietDevices(policy);
  let memory: HealthMemory = state === undefined ? NOTHING : carriedOver(state);
  /** How many devices are in the memory. */
  let remembered = Object.keys(memory.devices).length;
  let hasNews = true;
  /** Those of the last time that all devices were quiet. */
  let standingVerdicts: ReadonlyMap<string, Verdict> = new Map();

  const judge = (input: JudgeInput, nowMs: number): Judgement => {
    if (clock.isIrregular(memory, nowMs, input.monotonicMs, policy.staleAfterMs)) catchUp();
    const present = atTime(clock.adjust(memory, nowMs, input), policy, nowMs);
    memory = present.memory;
    const standing = allStanding(input.devices, nowMs);
    if (standing !== undefined) {
      memory = { judgedAtMs: nowMs, devices: memory.devices, lastEventId: memory.lastEventId, events: memory.events };
      return { verdicts: standing.verdicts, events: [], ...nextCheck(standing.dueMs, nowMs) };
    }
    hasNews = true;
    const devices: Record<string, DeviceMemory> = {};
    const verdicts = new Map<string, Verdict>();
    const events: Omit<HealthEvent, 'id'>[] = [];
    let nextCheckMs: number | undefined;
    for (const given of input.devices) {
      const { key } = given;
      const before = memory.devices[key];
      const device = clock.withTimes(given, () => quiet.readAtMs(key, before));
      const standing = quiet.verdictOn(device, before, nowMs);
      if (standing !== undefined && before !== undefined) {
        devices[key] = before;
        verdicts.set(key, standing.verdict);
        nextCheckMs = Math.min(nextCheckMs ?? Number.POSITIVE_INFINITY, standing.dueMs);
        continue;
      }
      const judged = judgeDevice(quiet.caughtUp(key, before), device, policy, { nowMs, elapsedMs: present.elapsedMs });
      quiet.judged(device, judged);
      devices[key] = judged.memory;
      verdicts.set(key, judged.verdict);
      events.push(...judged.events);
      if (judged.dueMs !== undefined) nextCheckMs = Math.min(nextCheckMs ?? Number.POSITIVE_INFINITY, judged.dueMs);
    }
    for (const [key, left] of Object.entries(memory.devices)) {
      if (devices[key] !== undefined) continue;
      const unlisted = quiet.caughtUp(key, left) as DeviceMemory;
      if (isForgotten(unlisted, policy, nowMs)) events.push(...forget(key, unlisted, policy, nowMs));
      else devices[key] = unlisted;
    }
    memory = { ...memory, judgedAtMs: nowMs, devices };
    remembered = Object.keys(devices).length;
    return { verdicts, events: ring.append(events), ...nextCheck(nextCheckMs, nowMs) };
  };

  /** The verdicts when every device is quiet and none left the list; else undefined. Nothing is remembered anew then. */
  const allStanding = (
    devices: readonly JudgedDevice[],
    nowMs: number,
  ): { verdicts: ReadonlyMap<string, Verdict>; dueMs?: number } | undefined => {
    if (devices.length !== remembered) return undefined;
    let isAsBefore = standingVerdicts.size === devices.length;
    const verdicts = new Array<Verdict>(devices.length);
    let dueMs: number | undefined;
    for (let at = 0; at < devices.length; at += 1) {
      const given = devices[at] as JudgedDevice;
      const before = memory.devices[given.key];
      const device = clock.withTimes(given, () => quiet.readAtMs(given.key, before));
      const standing = quiet.verdictOn(device, before, nowMs);
      if (standing === undefined) return undefined;
      verdicts[at] = standing.verdict;
      isAsBefore &&= standingVerdicts.get(given.key) === standing.verdict;
      if (dueMs === undefined || standing.dueMs < dueMs) dueMs = standing.dueMs;
    }
    if (!isAsBefore) standingVerdicts = new Map(devices.map(({ key }, at) => [key, verdicts[at] as Verdict]));
    return dueMs === undefined ? { verdicts: standingVerdicts } : { verdicts: standingVerdicts, dueMs };
  };

  const catchUp = (): void => {
    memory = memory === NOTHING ? memory : { ...memory, devices: quiet.allCaughtUp(memory.devices) };
  };

  return {
    judge,
    renewed(family) {
      memory = memory === NOTHING ? memory : carriedOver(memory, family);
    },
    hasNews: () => hasNews,
    state: () => {
      hasNews = false;
      catchUp();
      return { ...memory, lastEventId: ring.lastId, events: ring.tail(STATE_EVENTS) };
    },
    announce: (throughId) => ring.announce(throughId),
    eventsSince: (id) => ring.since(id),
    knownDevices: () => {
      catchUp();
      return Object.values(memory.devices).map(known);
    },
  };
}

function nextCheck(dueMs: number | undefined, nowMs: number): { readonly nextCheckMs?: number } {
  return dueMs === undefined ? {} : { nextCheckMs: Math.min(Math.max(nowMs + 1, Math.ceil(dueMs)), nowMs + LONGEST_WAIT_MS) };
}

function known({ device, readAtMs, missingSinceMs }: DeviceMemory): KnownDevice {
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
  const policyOf = (name: { readonly type: string; readonly instance?: string }) =>
    conditionPolicy(policy, device.family, name.type, name.instance);
  return endingEvents({ key, device, holders: [], policy, nowMs, policyOf }, conditions, 'the device is no longer listed');
}
