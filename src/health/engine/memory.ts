import type { HungStep } from '../../model/collection.ts';
import type { Device } from '../../model/device.ts';
import type { LastHolders } from '../../model/device-use.ts';
import type { EventHolder, HealthEvent } from '../../model/events.ts';
import type { SavedFault, SavedFaults } from '../../model/fault.ts';
import type { HealthState, Remedy, Severity } from '../../model/health.ts';
import type { ObservedSpans } from '../../model/observed-spans.ts';
import type { Levels } from '../policy/levels.ts';
import type { RateSeries } from './rate.ts';

/**
 * One condition that is not inactive: `pending` holds but not long enough, `active` counts, `recovering` no longer holds but still
 * counts.
 */
export interface ConditionState {
  readonly type: string;
  readonly instance?: string;
  readonly phase: 'pending' | 'active' | 'recovering';
  /** Time at which it was first seen in the present occurrence. */
  readonly sinceMs: number;
  /** Begin of the present wait: of `for` the first sight, of the quiet time the first quiet reading. The time in which the status was unknown moves it. */
  readonly countsFromMs: number;
  readonly reason: string;
  readonly message: string;
  /** Present only when the finding itself gave it. */
  readonly severity?: Severity;
  readonly remedy?: Remedy;
  readonly causedBy?: string;
  /** Whom it is about, as they held the device when it was last seen; only of a condition that ends with its holders. */
  readonly holders?: readonly EventHolder[];
  /** Time since which the status is unknown; absent while it is known. */
  readonly unverifiedSinceMs?: number;
}

/** Memory of one device. Plain data, replaced as a whole. */
export interface DeviceMemory {
  readonly device: Device;
  /** Last time that the input listed it, missing or not. */
  readonly listedAtMs: number;
  /** Wall clock of its last reading. */
  readonly readAtMs?: number;
  /** Time at which it went missing. */
  readonly missingSinceMs?: number;
  readonly verdict: { readonly state: HealthState; readonly sinceMs: number };
  readonly transitions: Readonly<Partial<Record<HealthState, number>>>;
  /** Keyed by {@link conditionKey}. */
  readonly conditions: Readonly<Record<string, ConditionState>>;
  readonly rates: Readonly<Record<string, RateSeries>>;
  /** Absent when there are no levels. */
  readonly levels?: Levels;
  /** Its present or last holders, under the name that state files have; absent while none was ever known. */
  readonly user?: LastHolders;
  /** A read gave its state at least once. */
  readonly wasRead?: boolean;
  /** Fatal conditions that no reading could judge so far, as keys of conditions; absent when there are none. */
  readonly unchecked?: readonly string[];
  /** Other hardware has its name now, and it has no other name. */
  readonly isDisplaced?: boolean;
  /** Times at which each condition became active, oldest first; at most as many as the flapping policy needs. */
  readonly activations: Readonly<Record<string, readonly number[]>>;
}

/** What the state file keeps for the next start: the state of the engine, and what the supervisor and the fault ledger add. */
export interface HealthMemory {
  readonly judgedAtMs: number;
  /** Keyed by the hardware of the devices, see HardwareKeys. */
  readonly devices: Readonly<Record<string, DeviceMemory>>;
  readonly lastEventId: number;
  /** Latest events, oldest first. */
  readonly events: readonly HealthEvent[];
  /** Hanging steps, keyed by family, as the supervisor reports them. */
  readonly hung?: Readonly<Record<string, readonly HungStep[]>>;
  /** Families that were read completely since the machine booted. */
  readonly completed?: readonly string[];
  /** Hardware that was out of service when it was last listed, in this boot or before, and was not listed since; keyed as the devices. */
  readonly unreturned?: Readonly<Record<string, UnreturnedDevice>>;
  /** What was counted of faults, as the agent keeps it, and the faults themselves. */
  readonly faults?: SavedFaults;
  readonly faultList?: readonly SavedFault[];
  /** When the agent judged, also before this run. */
  readonly watched?: ObservedSpans;
}

/** What stays of a device over a reboot, which ends all else that was known of it. */
export type UnreturnedDevice = Pick<DeviceMemory, 'device' | 'listedAtMs'>;

/** Memory before the first judgement. */
export const NOTHING: HealthMemory = { judgedAtMs: 0, devices: {}, lastEventId: 0, events: [] };

/** `Type` or `Type/instance`. */
export function conditionKey(condition: { readonly type: string; readonly instance?: string | undefined }): string {
  return condition.instance === undefined ? condition.type : `${condition.type}/${condition.instance}`;
}

/** Inverse of {@link conditionKey}. */
export function conditionOf(key: string): { readonly type: string; readonly instance?: string } {
  const slash = key.indexOf('/');
  return slash < 0 ? { type: key } : { type: key.slice(0, slash), instance: key.slice(slash + 1) };
}

/** Limits every time to `nowMs`. A time in the future means that the clock was set back. */
export function notAfter(memory: HealthMemory, nowMs: number): HealthMemory {
  return mapTimes(memory, (time) => Math.min(time, nowMs));
}

/** Shifts every time after a step of the wall clock, so that no duration changes. */
export function shifted(memory: HealthMemory, stepMs: number): HealthMemory {
  return mapTimes(memory, (time) => time + stepMs);
}

/** Skips unobserved time: it counts neither as hold time nor as quiet time. */
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
    ...(memory.user?.endedAtMs === undefined ? {} : { user: { ...memory.user, endedAtMs: shift(memory.user.endedAtMs) } }),
  };
}

function mapValues<V>(record: Readonly<Record<string, V>>, change: (value: V) => V): Readonly<Record<string, V>> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}
