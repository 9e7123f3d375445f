import type { SourceFindings } from '../../model/device-record.ts';
import type { EventHolder, HealthEvent } from '../../model/events.ts';
import type { ActiveCondition, HealthState, Verdict } from '../../model/health.ts';
import { createHealthEngine, type HealthEngine } from '../engine/engine.ts';
import type { HealthInput } from '../engine/judge-device.ts';
import { conditionKey } from '../engine/memory.ts';
import { clockName } from '../journal/reading-clocks.ts';
import { kubeletHealth } from '../policy/kubelet-health.ts';
import { DEVICE_MISSING } from '../policy/own-conditions.ts';
import type { HealthPolicy } from '../policy/policy.ts';
import { type ClockReadings, type RecordedInput, type Recording, wallClock } from './recording.ts';

/** The verdict of a device from a time on. */
export interface ReplayedState {
  readonly fromMs: number;
  /** Undefined while the device is not listed. */
  readonly state: HealthState | undefined;
  /** The kubelet gets `Unhealthy`. */
  readonly isOut: boolean;
  /** The condition that leads the verdict. */
  readonly leader?: Pick<ActiveCondition, 'type' | 'instance' | 'severity' | 'reason'>;
  readonly holders: readonly EventHolder[];
}

export interface DeviceReplay {
  /** In the order of time; each one lasts until the next. Steady time. */
  readonly states: readonly ReplayedState[];
  /** `tick`: index of the judgement, or of the one before the event. */
  readonly events: readonly { readonly tick: number; readonly event: Omit<HealthEvent, 'id'> }[];
}

/** A judgement that the agent made so soon after a due time is the judgement for it. */
const SLACK_MS = 1_000;

/**
 * Judges one device through the whole recording, by the real engine with the recorded times. It leaves out judgements that cannot change
 * anything: a device without conditions stays so until its input changes or it is no longer read.
 */
export function replayDevice(recording: Recording, key: string, policy: HealthPolicy): DeviceReplay {
  const walk = new DeviceWalk(recording, key, policy);
  for (const { first, last, isFresh } of recording.stretches) walk.stretch(first, last, isFresh);
  return walk.result();
}

class DeviceWalk {
  readonly #recording: Recording;
  readonly #key: string;
  readonly #policy: HealthPolicy;
  readonly #clocks = new Map<string, ClockWalk>();
  readonly #states: ReplayedState[] = [];
  readonly #events: DeviceReplay['events'][number][] = [];
  #engine: HealthEngine | undefined;
  /** Wall clock minus steady time when the engine began. */
  #engineOffsetMs = 0;
  #nextChange = 0;
  #input: RecordedInput | undefined;
  #verdict: Verdict | undefined;
  #judgedMs = Number.NEGATIVE_INFINITY;
  /** Steady time. */
  #dueMs = Number.POSITIVE_INFINITY;
  #isGoneKnown = false;

  constructor(recording: Recording, key: string, policy: HealthPolicy) {
    this.#recording = recording;
    this.#key = key;
    this.#policy = policy;
  }

  result(): DeviceReplay {
    return { states: this.#states, events: this.#events };
  }

  stretch(first: number, last: number, isFresh: boolean): void {
    const { ticks } = this.#recording;
    if (isFresh || this.#engine === undefined) this.#begin(first);
    const changes = this.#recording.devices.get(this.#key) ?? [];
    for (let tick = first; tick <= last; tick++) {
      let isChanged = tick === first || tick === last;
      for (let change = changes[this.#nextChange]; change !== undefined && change.tick <= tick; change = changes[this.#nextChange]) {
        this.#input = change.input;
        this.#nextChange += 1;
        isChanged = true;
      }
      const nowMs = ticks[tick] as number;
      const nextMs = tick === last ? undefined : (ticks[tick + 1] as number);
      const isBeforeChange = changes[this.#nextChange]?.tick === tick + 1;
      if (!isChanged && !isBeforeChange && !this.#canMatter(tick, nowMs, nextMs as number)) continue;
      this.#judge(tick, nowMs);
      // The agent itself judges again when a verdict is due, but another policy has other due times.
      while (nextMs !== undefined && this.#dueMs <= nextMs - SLACK_MS) this.#judge(tick, this.#dueMs);
    }
  }

  #begin(tick: number): void {
    const { memory } = this.#recording;
    const remembered = tick === 0 ? memory.get(this.#key) : undefined;
    const atMs = wallClock(this.#recording, tick, this.#recording.ticks[tick] as number);
    const device = this.#recording.devices.get(this.#key)?.[0]?.input?.device;
    this.#engineOffsetMs = atMs - (this.#recording.ticks[tick] as number);
    this.#verdict = undefined;
    const state =
      remembered?.verdict === undefined || device === undefined
        ? undefined
        : { judgedAtMs: atMs, devices: { [this.#key]: { ...remembered, device: device } }, lastEventId: 0, events: [] };
    this.#engine = createHealthEngine({ policy: this.#policy, eventLimit: 1, ...(state === undefined ? {} : { state }) });
  }

  /** Whether a judgement now can differ from the last one, or is needed so that a later one has the right readings. */
  #canMatter(tick: number, nowMs: number, nextMs: number): boolean {
    const { staleAfterMs } = this.#policy;
    if (this.#input === undefined) return this.#isGoneKnown;
    const readMs = this.#readTime(tick, 'read');
    const isQuiet = this.#verdict === undefined || isSettled(this.#verdict);
    if (isQuiet) return readMs === undefined || readMs + staleAfterMs <= nextMs;
    if (isRestless(this.#verdict as Verdict)) return true;
    return this.#dueMs <= nextMs || nextMs - this.#judgedMs > staleAfterMs / 2 || nowMs < this.#judgedMs;
  }

  #judge(tick: number, nowMs: number): void {
    const engine = this.#engine as HealthEngine;
    const wallMs = wallClock(this.#recording, tick, nowMs);
    const devices = this.#input === undefined ? [] : [this.#judged(this.#input, tick, nowMs, wallMs - nowMs)];
    const { verdicts, events, nextCheckMs } = engine.judge({ devices, monotonicMs: nowMs }, wallMs);
    for (const { id: _, ...event } of events) this.#events.push({ tick, event });
    engine.announce();
    this.#verdict = verdicts.get(this.#key);
    this.#judgedMs = nowMs;
    this.#dueMs = nextCheckMs === undefined ? Number.POSITIVE_INFINITY : nextCheckMs - (wallMs - nowMs);
    this.#isGoneKnown = this.#input === undefined && engine.knownDevices().length > 0;
    this.#note(nowMs);
  }

  /** Records of earlier versions have the name `aside` for the source `outOfBand`. */
  #judged(input: RecordedInput, tick: number, nowMs: number, offsetMs: number): HealthInput {
    const sources = [...input.sources].flatMap(([name, { findings }]): [string, SourceFindings][] => {
      const readMs = this.#readTime(tick, name);
      if (readMs === undefined) return [];
      return [
        [
          name === 'aside' ? 'outOfBand' : name,
          { findings: [...findings.values()], readAtMs: readMs + offsetMs, monotonicMs: Math.min(readMs, nowMs) },
        ],
      ];
    });
    return {
      key: this.#key,
      device: input.device,
      ...Object.fromEntries(sources),
      isUnread: input.isUnread,
      ...(input.awaitedMs === undefined ? {} : { awaitedSinceMs: input.awaitedMs + this.#engineOffsetMs }),
      ...(input.missingSinceMs === undefined ? {} : { missingSinceMs: input.missingSinceMs }),
      holders: input.holders.map((holder) => ({ ...holder, numaNodes: [] })),
    };
  }

  /** Steady time of the reading that a source had at a judgement. */
  #readTime(tick: number, name: string): number | undefined {
    const input = this.#input as RecordedInput;
    const source = input.sources.get(name);
    if (source === undefined) return undefined;
    if (source.fixedMs !== undefined) return source.fixedMs;
    const clock = clockName(input, name);
    let walk = this.#clocks.get(clock);
    if (walk === undefined) {
      walk = new ClockWalk(this.#recording.clocks.get(clock));
      this.#clocks.set(clock, walk);
    }
    return walk.at(tick);
  }

  #note(nowMs: number): void {
    const verdict = this.#verdict;
    const leader = verdict === undefined ? undefined : leaderOf(verdict);
    const state: ReplayedState = {
      fromMs: nowMs,
      state: verdict?.state,
      isOut: verdict !== undefined && kubeletHealth(withoutProbation(verdict), this.#policy) === 'Unhealthy',
      ...(leader === undefined ? {} : { leader }),
      holders: this.#input?.holders ?? [],
    };
    const last = this.#states.at(-1);
    if (last === undefined || !isSameState(last, state)) this.#states.push(state);
  }
}

/** The record does not have what a device did, so no probation would end. */
const withoutProbation = ({ probation: _, ...verdict }: Verdict): Verdict => verdict;

/** The latest reading of a clock at a judgement. The judgements come in their order. */
class ClockWalk {
  readonly #readings: ClockReadings | undefined;
  #at = -1;

  constructor(readings: ClockReadings | undefined) {
    this.#readings = readings;
  }

  at(tick: number): number | undefined {
    if (this.#readings === undefined) return undefined;
    const { ticks, times } = this.#readings;
    while (this.#at + 1 < ticks.length && (ticks[this.#at + 1] as number) <= tick) this.#at += 1;
    return times[this.#at];
  }
}

/** A device without any condition. */
function isSettled({ conditions, pending = [], ignored = [] }: Verdict): boolean {
  return conditions.length + pending.length + ignored.length === 0;
}

/** A condition waits for its time or for the next readings. */
function isRestless({ conditions, pending = [], ignored = [] }: Verdict): boolean {
  if (pending.length > 0) return true;
  return [...conditions, ...ignored].some((condition) => condition.recovering !== undefined || condition.class === 'rate');
}

/** The worst condition; for `unknown` the condition that explains why the state is unknown. */
function leaderOf({ state, conditions }: Verdict): ActiveCondition | undefined {
  if (state === 'healthy') return undefined;
  if (state !== 'unknown') return conditions[0];
  return conditions.find((condition) => condition.type === DEVICE_MISSING || condition.class === 'no-data');
}

function isSameState(a: ReplayedState, b: ReplayedState): boolean {
  if (a.state !== b.state || a.isOut !== b.isOut || a.holders !== b.holders) return false;
  if (a.leader === undefined || b.leader === undefined) return a.leader === b.leader;
  return conditionKey(a.leader) === conditionKey(b.leader);
}
