import { isDeepStrictEqual } from 'node:util';
import { defined } from '../../model/defined.ts';
import { type Device, deviceKey } from '../../model/device.ts';
import type { HealthEvent } from '../../model/events.ts';
import { HardwareKeys } from '../../model/hardware.ts';
import type { Verdict } from '../../model/health.ts';
import { type EventContext, endingEvents, replacedEvent } from '../journal/event-text.ts';
import { EventRing } from '../journal/events.ts';
import { conditionPolicy, type HealthPolicy } from '../policy/policy.ts';
import { type Acceptance, unverifiedOf, withAccepted } from './acceptance.ts';
import { createClockShift } from './clock-shift.ts';
import { isEmpty } from './conditions.ts';
import { type HealthInput, judgeDevice } from './judge-device.ts';
import { type ConditionState, type DeviceMemory, type HealthMemory, NOTHING, notAfter, resumed, type UnreturnedDevice } from './memory.ts';
import { QuietDevices } from './quiet.ts';
import { devicesOf, isCalled, without, withUnreturned } from './unreturned.ts';

export interface HealthEngineOptions {
  readonly policy: HealthPolicy;
  /** State that an earlier run of this boot saved, from the state file. */
  readonly state?: HealthMemory;
  /** Devices of an earlier boot that were out of service. The engine uses them only without `state`. */
  readonly unreturned?: HealthMemory['unreturned'];
  /** Events kept in memory. Default 1,000. */
  readonly eventLimit?: number;
}

export interface JudgeInput {
  /** All devices that are listed now, including missing ones. */
  readonly devices: readonly HealthInput[];
  /** Monotonic clock at `nowMs`. When it is given, a step of the wall clock changes no duration. */
  readonly monotonicMs?: number;
  /** Events of faults, which change no verdict. */
  readonly faults?: readonly Omit<HealthEvent, 'id'>[];
}

export interface Judgement {
  /** Keyed by device key; one verdict for each device given. */
  readonly verdicts: ReadonlyMap<string, Verdict>;
  /** Changes of this judgement. `eventsSince` returns them only after they are announced. */
  readonly events: readonly HealthEvent[];
  /** The set of devices changed: a device is new, missing, forgotten or present again. */
  readonly isOtherSet: boolean;
  /** Wall clock at which a verdict can change by time alone. Judge again then, with the same readings if there are no newer ones. */
  readonly nextCheckMs?: number;
}

/** A remembered device. All times are wall clock. */
export type RememberedDevice = Pick<DeviceMemory, 'device' | 'readAtMs' | 'missingSinceMs' | 'user'>;

/** Judges the health of all devices. The state is in the engine; the functions that it calls keep none. */
export interface HealthEngine {
  /** Judges by another policy from the next judgement on. It remembers what it saw, as over a restart of the agent. */
  setPolicy(policy: HealthPolicy): void;
  judge(input: JudgeInput, nowMs: number): Judgement;
  /**
   * Ends unverified conditions of a device at the next judgement. Without `condition`: all of them. Returns their keys. None when the
   * device has no such condition; the reading that sees the fault again raises it again. A device that did not return is then no longer
   * expected back.
   */
  accept(device: string, condition: string | undefined, why: string): readonly string[];
  /** State that must survive a restart, including events not yet announced. Plain data that no later call changes. */
  state(): HealthMemory;
  /** What it remembers of the devices now, keyed by hardware. Plain data that no later call changes. */
  memory(): HealthMemory['devices'];
  /** Whether anything except the times of readings changed since the last call of {@link state}. */
  hasNews(): boolean;
  /** Makes events up to that id visible (default: all). Returns the events that became visible. */
  announce(throughId?: number): readonly HealthEvent[];
  /** Announced events with a larger id, oldest first. */
  eventsSince(id: number): readonly HealthEvent[];
  /** Devices seen in this boot, by this run or an earlier one. After a restart, those that no probe finds are listed as missing. */
  knownDevices(): readonly RememberedDevice[];
  /** Devices that were out of service when they were last listed, in this boot or before, and that were not listed since. */
  unreturned(): readonly Device[];
}

/** Number of events of the ring that are saved in the state. */
const STATE_EVENTS = 200;
/** What a person accepts of a device that did not return. */
const OUT_OF_SERVICE = 'out of service';
/** Timers of the runtime fire at once when their delay exceeds 24 days. */
const LONGEST_WAIT_MS = 86_400_000;

export function createHealthEngine(options: HealthEngineOptions): HealthEngine {
  const { state } = options;
  let { policy } = options;
  const ring = new EventRing(options.eventLimit, state?.events, state?.lastEventId);
  const clock = createClockShift();
  let memory: HealthMemory = state ?? (options.unreturned === undefined ? NOTHING : { ...NOTHING, unreturned: options.unreturned });
  let hasNews = true;
  let accepted: readonly Acceptance[] = [];

  const quiet = new QuietDevices();
  const settle = (): HealthMemory => {
    const devices: Record<string, DeviceMemory> = {};
    for (const key in memory.devices) devices[key] = quiet.settled(memory.devices[key] as DeviceMemory);
    memory = { ...memory, devices };
    return memory;
  };

  const judge = (input: JudgeInput, nowMs: number): Judgement => {
    const gapMs = nowMs - memory.judgedAtMs;
    if (accepted.length > 0 || gapMs < 0 || gapMs >= policy.staleAfterMs || clock.isStep(memory, nowMs, input)) settle();
    const now = atTime(clock.adjust(memory, nowMs, input), policy, nowMs);
    const devices: Record<string, DeviceMemory> = {};
    const verdicts = new Map<string, Verdict>();
    const events: Omit<HealthEvent, 'id'>[] = [...(input.faults ?? [])];
    const present = { ...now, memory: withAccepted(now.memory, accepted, (left) => contextOf(left, policy, nowMs), events) };
    accepted = [];
    const dues: number[] = [];
    const keys = new HardwareKeys(input.devices.map(({ device }) => device));
    const remembered = input.devices.map(({ device }) => keys.recall((key) => present.memory.devices[key], device));
    const { unreturned = {} } = present.memory;
    const returned = new Set<UnreturnedDevice>();
    const left = leftOver(present.memory.devices, new Set(remembered), (one) => quiet.settled(one));
    for (const [at, given] of input.devices.entries()) {
      const displaced = left.byName.get(given.key);
      if (displaced !== undefined) events.push(...displacedEvents(displaced, given, policy, nowMs));
      const earlier = isEmpty(unreturned) ? undefined : keys.recall((key) => unreturned[key], given.device);
      if (earlier !== undefined) returned.add(earlier);
      const lastState = displaced?.verdict.state;
      const timed = clock.withTimes(given);
      const isKnown = lastState === undefined && !isOfOther(remembered[at], given.device, keys);
      const same = isKnown ? quiet.judged(remembered[at], timed, policy, nowMs) : undefined;
      if (same !== undefined) {
        devices[keys.of(given.device)] = same.memory;
        verdicts.set(given.key, same.verdict);
        dues.push(same.dueMs as number);
        continue;
      }
      const before = ownPart(remembered[at] && quiet.settled(remembered[at]), given.device, keys);
      const judged = judgeDevice(before, timed, policy, { nowMs, elapsedMs: present.elapsedMs }, lastState);
      quiet.keep(judged, timed, policy, nowMs);
      devices[keys.of(given.device)] = judged.memory;
      verdicts.set(given.key, judged.verdict);
      events.push(...judged.events);
      if (judged.dueMs !== undefined) dues.push(judged.dueMs);
      hasNews ||= isNews(before, judged.memory);
    }
    const named = new Set(input.devices.map(({ key }) => key));
    const forgotten: [string, DeviceMemory][] = [];
    for (const [key, memory] of left.all) {
      if (devices[key] !== undefined) continue;
      const isDisplaced = memory.isDisplaced === true || named.has(deviceKey(memory.device));
      if (isForgotten(memory, policy, nowMs)) {
        events.push(...(isDisplaced ? [] : forget(memory, policy, nowMs)));
        forgotten.push([key, memory]);
      } else if (!isDisplaced) devices[key] = memory;
      else if (typeof memory.device.identity === 'string') devices[key] = { ...memory, isDisplaced };
    }
    quiet.end();
    const isOtherSet = isOther(devices, present.memory.devices);
    hasNews ||= events.length > 0 || isOtherSet;
    memory = { ...present.memory, judgedAtMs: nowMs, devices };
    if (returned.size > 0 || forgotten.length > 0) {
      const left = without(unreturned, (one) => returned.has(one));
      memory = { ...memory, unreturned: withUnreturned(left, forgotten) };
    }
    return { verdicts, events: ring.append(events), isOtherSet, ...nextCheck(dues, nowMs) };
  };

  return {
    setPolicy(next) {
      policy = next;
    },
    judge,
    accept(device, condition, why) {
      const { unreturned = {} } = memory;
      if (condition === undefined && Object.values(unreturned).some(isCalled(device))) {
        memory = { ...memory, unreturned: without(unreturned, isCalled(device)) };
        hasNews = true;
        return [OUT_OF_SERVICE];
      }
      const keys = unverifiedOf(memory, device, condition);
      if (keys.length > 0) accepted = [...accepted, { device, keys, why }];
      return keys;
    },
    memory: () => settle().devices,
    hasNews: () => hasNews,
    state: () => {
      hasNews = false;
      return { ...settle(), lastEventId: ring.lastId, events: ring.tail(STATE_EVENTS) };
    },
    announce: (throughId) => ring.announce(throughId),
    eventsSince: (id) => ring.since(id),
    knownDevices: () =>
      Object.values(settle().devices)
        .filter(({ isDisplaced }) => isDisplaced === undefined)
        .map(known),
    unreturned: () => devicesOf(memory.unreturned ?? {}),
  };
}

/** Whether the two sets of devices differ, or a device is missing in only one of them. */
function isOther(a: HealthMemory['devices'], b: HealthMemory['devices']): boolean {
  const isSame = (key: string): boolean =>
    b[key] !== undefined && (a[key]?.missingSinceMs === undefined) === (b[key].missingSinceMs === undefined);
  return Object.keys(a).length !== Object.keys(b).length || !Object.keys(a).every(isSame);
}

/** Whether a device's memory changed in more than read times, and in more than the messages of conditions that go on. */
function isNews(before: DeviceMemory | undefined, now: DeviceMemory): boolean {
  if (before === undefined || before.missingSinceMs !== now.missingSinceMs) return true;
  const [old, latest] = [before.conditions, now.conditions];
  if (Object.keys(old).length !== Object.keys(latest).length) return true;
  if (Object.entries(latest).some(([key, state]) => state.phase !== 'active' || isOtherPhase(old[key], state))) return true;
  if (before.unchecked?.length !== now.unchecked?.length) return true;
  if (!isDeepStrictEqual(before.levels, now.levels) || !isDeepStrictEqual(before.user, now.user)) return true;
  for (const key in now.rates) if (before.rates[key]?.value !== now.rates[key]?.value) return true;
  return false;
}

const isOtherPhase = (before: ConditionState | undefined, now: ConditionState): boolean =>
  before?.phase !== now.phase || before.sinceMs !== now.sinceMs || before.unverifiedSinceMs !== now.unverifiedSinceMs;

function nextCheck(dues: readonly number[], nowMs: number): { readonly nextCheckMs?: number } {
  if (dues.length === 0) return {};
  return { nextCheckMs: Math.min(Math.max(nowMs + 1, Math.ceil(Math.min(...dues))), nowMs + LONGEST_WAIT_MS) };
}

function known({ device, readAtMs, missingSinceMs, user }: DeviceMemory): RememberedDevice {
  return {
    device,
    ...defined({ readAtMs, missingSinceMs, user }),
  };
}

/** Adjusts the memory to `nowMs`. `elapsedMs`: observed time since the last judgement; unobserved time counts as neither hold nor quiet. */
function atTime(memory: HealthMemory, policy: HealthPolicy, nowMs: number): { readonly memory: HealthMemory; readonly elapsedMs: number } {
  const gapMs = nowMs - memory.judgedAtMs;
  if (memory === NOTHING) return { memory, elapsedMs: 0 };
  if (gapMs < 0) return { memory: notAfter(memory, nowMs), elapsedMs: 0 };
  return gapMs < policy.staleAfterMs ? { memory, elapsedMs: gapMs } : { memory: resumed(memory, gapMs), elapsedMs: 0 };
}

function isForgotten({ missingSinceMs, listedAtMs }: DeviceMemory, policy: HealthPolicy, nowMs: number): boolean {
  return nowMs - (missingSinceMs ?? listedAtMs) >= policy.missingRetentionMs;
}

/** A device that joins another one of the same identity has what was remembered of it, except its counters, which are those of the other. */
function ownPart(memory: DeviceMemory | undefined, device: Device, keys: HardwareKeys): DeviceMemory | undefined {
  return memory !== undefined && isOfOther(memory, device, keys) ? { ...memory, device, rates: {} } : memory;
}

const isOfOther = (memory: DeviceMemory | undefined, device: Device, keys: HardwareKeys): boolean =>
  memory !== undefined && memory.device.id !== device.id && keys.isShared(device);

/** Memories that belong to no device of the input: of hardware that is not listed, some of it under a name that other hardware has now. */
function leftOver(
  devices: HealthMemory['devices'],
  recalled: ReadonlySet<DeviceMemory | undefined>,
  settled: (memory: DeviceMemory) => DeviceMemory,
) {
  const all: [string, DeviceMemory][] = [];
  for (const key in devices) if (!recalled.has(devices[key])) all.push([key, settled(devices[key] as DeviceMemory)]);
  const byName = new Map(
    all.flatMap(([, memory]): [string, DeviceMemory][] => (memory.isDisplaced === true ? [] : [[deviceKey(memory.device), memory]])),
  );
  return { all, byName };
}

/** Clears the raised conditions, so that the device starts without them if it returns. */
function forget(memory: DeviceMemory, policy: HealthPolicy, nowMs: number): readonly Omit<HealthEvent, 'id'>[] {
  return endingEvents(contextOf(memory, policy, nowMs), memory.conditions, 'the device is no longer listed');
}

/** The conditions of hardware whose name now belongs to other hardware end under that name. They are remembered in case it returns. */
function displacedEvents(
  memory: DeviceMemory,
  next: Pick<HealthInput, 'device' | 'holders'>,
  policy: HealthPolicy,
  nowMs: number,
): readonly Omit<HealthEvent, 'id'>[] {
  const context = { ...contextOf(memory, policy, nowMs), holders: next.holders };
  const ended = endingEvents(context, memory.conditions, 'the name now belongs to another device');
  return [...ended, replacedEvent(context, next.device)];
}

function contextOf({ device }: DeviceMemory, policy: HealthPolicy, nowMs: number): EventContext {
  const policyOf: EventContext['policyOf'] = ({ type, instance }) => conditionPolicy(policy, device.family, type, instance);
  return { key: deviceKey(device), device, holders: [], policy, nowMs, policyOf };
}
