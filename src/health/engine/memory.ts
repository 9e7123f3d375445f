import type { HungStep } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { HealthEvent } from '../../model/events.ts';
import type { HealthState, Remedy, Severity } from '../../model/health.ts';
import type { Levels } from '../policy/levels.ts';
import type { RateSeries } from './rate.ts';

/**
 * One condition that does not rest: `pending` holds but not yet long enough, `active` counts, `recovering` still counts
 * although its source is quiet.
 */
export interface ConditionState {
  readonly type: string;
  readonly instance?: string;
  readonly phase: 'pending' | 'active' | 'recovering';
  /** When it was first seen in this spell. */
  readonly sinceMs: number;
  /** From when the time of the present phase counts: later than its begin by the time in which nothing was known. */
  readonly countsFromMs: number;
  readonly reason: string;
  readonly message: string;
  /** Only where the finding itself told them. */
  readonly severity?: Severity;
  readonly remedy?: Remedy;
  /** Since when no look could tell whether it still holds; absent while looks tell. */
  readonly unverifiedSinceMs?: number;
}

/** What is remembered of one device. Plain data, replaced as a whole. */
export interface DeviceMemory {
  readonly device: Device;
  /** Last time that somebody listed it, missing or not. */
  readonly listedAtMs: number;
  /** Wall clock of its last reading. */
  readonly readAtMs?: number;
  /** Since when it is missing. */
  readonly missingSinceMs?: number;
  readonly verdict: { readonly state: HealthState; readonly sinceMs: number };
  readonly transitions: Readonly<Partial<Record<HealthState, number>>>;
  /** Keyed by {@link conditionKey}. */
  readonly conditions: Readonly<Record<string, ConditionState>>;
  readonly rates: Readonly<Record<string, RateSeries>>;
  /** Absent while there are none. */
  readonly levels?: Levels;
  /** When each condition last began to count, oldest first; as many as flapping asks for. */
  readonly activations: Readonly<Record<string, readonly number[]>>;
}

/** All that the engine remembers, and all that has to survive a restart of the agent. */
export interface HealthMemory {
  readonly judgedAtMs: number;
  /** Keyed by device key. */
  readonly devices: Readonly<Record<string, DeviceMemory>>;
  readonly lastEventId: number;
  /** Youngest events, oldest first. */
  readonly events: readonly HealthEvent[];
  /** Steps that hang, by family, as those who read the devices tell them. */
  readonly hung?: Readonly<Record<string, readonly HungStep[]>>;
}

/** Before the first judgement. */
export const NOTHING: HealthMemory = { judgedAtMs: 0, devices: {}, lastEventId: 0, events: [] };

/** `Type` or `Type/instance`. */
export function conditionKey(condition: { readonly type: string; readonly instance?: string | undefined }): string {
  return condition.instance === undefined ? condition.type : `${condition.type}/${condition.instance}`;
}

/** What a key of {@link conditionKey} was made of. */
export function conditionName(key: string): { readonly type: string; readonly instance?: string } {
  const slash = key.indexOf('/');
  return slash < 0 ? { type: key } : { type: key.slice(0, slash), instance: key.slice(slash + 1) };
}

/** Brings every time in a memory from the future, which only a clock set back can have left, to now. */
export function notAfter(memory: HealthMemory, nowMs: number): HealthMemory {
  return mapTimes(memory, (time) => Math.min(time, nowMs));
}

/** Moves every time, because the wall clock was set and the durations between have not changed. */
export function shifted(memory: HealthMemory, stepMs: number): HealthMemory {
  return mapTimes(memory, (time) => time + stepMs);
}

/** Lets time pass that nobody watched: what was held or quiet before is neither longer nor shorter for it. */
export function resumed(memory: HealthMemory, gapMs: number): HealthMemory {
  return mapConditions(memory, (state) => ({ ...state, countsFromMs: state.countsFromMs + gapMs }));
}

function mapConditions(memory: HealthMemory, change: (state: ConditionState) => ConditionState): HealthMemory {
  return {
    ...memory,
    devices: mapValues(memory.devices, (device) => ({ ...device, conditions: mapValues(device.conditions, change) })),
  };
}

type Shift = (time: number) => number;

function mapTimes(memory: HealthMemory, shift: Shift): HealthMemory {
  return { ...memory, judgedAtMs: shift(memory.judgedAtMs), devices: mapValues(memory.devices, (device) => mapDevice(device, shift)) };
}

function mapDevice(memory: DeviceMemory, shift: Shift): DeviceMemory {
  return {
    ...memory,
    listedAtMs: shift(memory.listedAtMs),
    ...(memory.readAtMs === undefined ? {} : { readAtMs: shift(memory.readAtMs) }),
    ...(memory.missingSinceMs === undefined ? {} : { missingSinceMs: shift(memory.missingSinceMs) }),
    verdict: { ...memory.verdict, sinceMs: shift(memory.verdict.sinceMs) },
    conditions: mapValues(memory.conditions, (state) => ({
      ...state,
      sinceMs: shift(state.sinceMs),
      countsFromMs: shift(state.countsFromMs),
      ...(state.unverifiedSinceMs === undefined ? {} : { unverifiedSinceMs: shift(state.unverifiedSinceMs) }),
    })),
    rates: mapValues(memory.rates, (series) => ({
      ...series,
      atMs: shift(series.atMs),
      points: series.points.map(([at, growth]) => [shift(at), growth] as const),
    })),
    activations: mapValues(memory.activations, (times) => times.map(shift)),
  };
}

function mapValues<V>(record: Readonly<Record<string, V>>, change: (value: V) => V): Readonly<Record<string, V>> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}
