import type { HealthPolicy } from '../policy/policy.ts';
import { areDifferent, type Interval, intervalsOf, outMs, type Span } from './intervals.ts';
import { gapsOf, type Recording, wallClock } from './recording.ts';
import { type DeviceReplay, replayDevice } from './replay.ts';

/** What became of all devices under one policy. */
export interface Outcome {
  /** Device-milliseconds for which the kubelet had `Unhealthy`. */
  readonly outMs: number;
  /** Number of times that a device went out of service. */
  readonly outages: number;
  /** `namespace/name` of the pods that held a device while it was out, sorted. */
  readonly podsHit: readonly string[];
}

export interface RehearsedDevice {
  /** `family/id`. */
  readonly key: string;
  readonly isDifferent: boolean;
  /** Wall clock. */
  readonly present: readonly Interval[];
  /** Wall clock. */
  readonly other: readonly Interval[];
}

/** The past under the present policy and under another one. All times are wall clock. */
export interface Rehearsal {
  readonly fromMs: number;
  readonly toMs: number;
  /** Spans in which no agent looked. */
  readonly gaps: readonly Span[];
  readonly devices: readonly RehearsedDevice[];
  readonly present: Outcome;
  readonly other: Outcome;
  /** Recorded changes of health that the present policy would not have made, and those that it would have made instead. */
  readonly unlikeRecord: number;
  /** Times at which another policy came into force. */
  readonly policyChangesMs: readonly number[];
  readonly brokenRecords: number;
}

/** A clock is read some milliseconds apart by two parts of the agent. */
const SAME_TIME_MS = 1_000;

/**
 * Replays the record under two policies. Undefined when nothing was recorded since then. `rest` is called after each device, and the
 * replay goes on when it resolves.
 */
export async function rehearse(
  recording: Recording,
  policies: { readonly present: HealthPolicy; readonly other: HealthPolicy },
  sinceMs: number,
  rest: (done: number, all: number) => Promise<void> = async () => {},
): Promise<Rehearsal | undefined> {
  const { ticks, devices } = recording;
  const within = span(recording, sinceMs);
  if (within === undefined) return undefined;
  const gaps = gapsOf(recording, policies.present.staleAfterMs);
  const toWall = (steadyMs: number): number => wallClock(recording, tickAt(ticks, steadyMs), steadyMs);
  const onWall = <T extends Span>(one: T): T => ({ ...one, fromMs: toWall(one.fromMs), toMs: toWall(one.toMs) });
  const rehearsed: RehearsedDevice[] = [];
  const presentIntervals: (readonly Interval[])[] = [];
  const otherIntervals: (readonly Interval[])[] = [];
  const firstTick = tickAt(ticks, within.fromMs);
  let unlikeRecord = 0;
  for (const key of [...devices.keys()].sort()) {
    const was = replayDevice(recording, key, policies.present);
    const [present, other] = [was, replayDevice(recording, key, policies.other)].map(({ states }) => intervalsOf(states, within, gaps)) as [
      readonly Interval[],
      readonly Interval[],
    ];
    unlikeRecord += unlike(recording, key, was, firstTick);
    presentIntervals.push(present);
    otherIntervals.push(other);
    rehearsed.push({ key, isDifferent: areDifferent(present, other), present: present.map(onWall), other: other.map(onWall) });
    await rest(rehearsed.length, devices.size);
  }
  return {
    ...onWall(within),
    gaps: gaps.filter(({ toMs }) => toMs > within.fromMs).map((gap) => onWall({ ...gap, fromMs: Math.max(gap.fromMs, within.fromMs) })),
    devices: rehearsed,
    present: outcome(presentIntervals),
    other: outcome(otherIntervals),
    unlikeRecord,
    policyChangesMs: recording.policies
      .slice(1)
      .filter(({ tick }) => (ticks[tick] as number) >= within.fromMs)
      .map(({ tick }) => toWall(ticks[tick] as number)),
    brokenRecords: recording.brokenRecords,
  };
}

/** The part of the record that was asked for, in steady time. */
function span({ ticks, offsets }: Recording, sinceMs: number): Span | undefined {
  const [first, last] = [ticks[0], ticks.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const fromMs = Math.max(first, sinceMs - (offsets.at(-1)?.ms ?? 0));
  return fromMs <= last ? { fromMs, toMs: last } : undefined;
}

/** Index of the last judgement that is not later. */
function tickAt(ticks: readonly number[], steadyMs: number): number {
  let [low, high] = [0, ticks.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((ticks[middle] as number) <= steadyMs) low = middle;
    else high = middle - 1;
  }
  return low;
}

function outcome(devices: readonly (readonly Interval[])[]): Outcome {
  const out = devices.flatMap((intervals) => intervals.filter(({ isOut }) => isOut));
  const starts = devices.map(
    (intervals) => intervals.filter(({ isOut, fromMs }, at) => isOut && !isGoingOn(intervals[at - 1], fromMs)).length,
  );
  const pods = new Set(out.flatMap(({ holders }) => holders.map(({ namespace, pod }) => `${namespace}/${pod}`)));
  return { outMs: outMs(out), outages: starts.reduce((sum, count) => sum + count, 0), podsHit: [...pods].sort() };
}

const isGoingOn = (before: Interval | undefined, fromMs: number): boolean => before?.isOut === true && before.toMs === fromMs;

/** Number of events in only one of the record and the replay. The record of the first judgement may be from before it. */
function unlike(recording: Recording, key: string, { events }: DeviceReplay, firstTick: number): number {
  const from = Math.max(1, firstTick);
  const replayed = new Map<string, number[]>();
  let left = 0;
  for (const { tick, event } of events) {
    if (tick < from) continue;
    const name = nameOf(event);
    replayed.set(name, [...(replayed.get(name) ?? []), event.timeMs]);
    left += 1;
  }
  let missing = 0;
  for (const { tick, event } of recording.events) {
    if (event.device !== key || tick < from) continue;
    const atMs = wallClock(recording, tick, recording.ticks[tick] as number);
    const times = replayed.get(nameOf(event)) ?? [];
    const found = times.findIndex((time) => Math.abs(time - atMs) <= SAME_TIME_MS);
    if (found < 0) missing += 1;
    else {
      times.splice(found, 1);
      left -= 1;
    }
  }
  return missing + left;
}

function nameOf({ transition, condition, instance, from, to }: Recording['events'][number]['event']): string {
  return [transition, condition, instance, from, to].join('\u0000');
}
