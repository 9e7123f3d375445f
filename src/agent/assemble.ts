import type { JudgedDevice } from '../health/engine/judge-device.ts';
import { ContainerCounters } from '../join/container-counters.ts';
import { containerReadings, type SeenDevice } from '../join/container-readings.ts';
import { findOwners } from '../join/owners.ts';
import { type ResolveRules, Resolver, type ServedIds } from '../join/resolve.ts';
import type { Allocation } from '../model/allocation.ts';
import type { Device } from '../model/device.ts';
import type { Verdict } from '../model/health.ts';
import type { MetricSpec } from '../model/metric.ts';
import type { CheckpointEntry, PodResources } from '../model/pod-resources.ts';
import type { DeviceState, Snapshot } from '../model/snapshot.ts';
import type { Look } from '../supervisor/family-runner.ts';
import { type FamilyInput, type KnownDevice, knownDevices, type Moment, type RestoredDevice, restored } from './known-devices.ts';
import type { ServedDevice } from './served.ts';

export interface AssembleSettings {
  readonly rules: ResolveRules;
  /** What stands behind the ids of the resources that this agent hands out. */
  readonly served?: (known: readonly ServedDevice[]) => ServedIds;
  /** Declared metrics of all families by name. */
  readonly specs: ReadonlyMap<string, MetricSpec>;
  readonly staleAfterMs: number;
  readonly missingRetentionMs: number;
}

/** What the assembler is given at each turn: the latest of everything, however old. */
export interface Inputs {
  readonly families: readonly FamilyInput[];
  readonly podResources: PodResources;
  readonly checkpoint: readonly CheckpointEntry[];
}

export type Judge = (devices: readonly JudgedDevice[], now: Moment) => ReadonlyMap<string, Verdict>;

const UNJUDGED: Verdict = { state: 'unknown', sinceMs: 0, conditions: [] };
const NOBODY: readonly Allocation[] = [];

/**
 * Makes the snapshot: joins the latest looks with the latest allocations and has each device judged. It remembers only what a single
 * look cannot tell: which devices there were, and where the containers' counters began.
 */
export class Assembler {
  readonly #settings: AssembleSettings;
  readonly #judge: Judge;
  readonly #counters = new ContainerCounters();
  #known: ReadonlyMap<string, KnownDevice>;
  #begunAt: Moment | undefined;
  #sequence = 0;

  /** `before`: devices that an earlier run of the agent had; those that do not come back are missing. */
  constructor(settings: AssembleSettings, judge: Judge, before: readonly RestoredDevice[] = []) {
    this.#settings = settings;
    this.#judge = judge;
    this.#known = restored(before);
  }

  /** Families of which a container got a device and has no base for its counters yet, and from when on a look would give one. */
  get awaited(): ReadonlyMap<string, number> {
    return this.#counters.awaited;
  }

  /** Devices of a family that are known, missing ones included. */
  known(family: string): readonly Device[] {
    return [...this.#known.values()].map(({ device }) => device).filter((device) => device.family === family);
  }

  assemble({ families, podResources, checkpoint }: Inputs, now: Moment): Snapshot {
    this.#begunAt ??= now;
    const { specs, staleAfterMs, missingRetentionMs } = this.#settings;
    this.#known = knownDevices(this.#known, families, missingRetentionMs, now);
    const known = [...this.#known].sort(([a], [b]) => (a < b ? -1 : 1));
    const { allocations, holders } = findOwners(
      podResources,
      this.#resolver(),
      (key) => this.#known.get(key)?.missingSinceMs !== undefined,
    );
    const holdersOf = (key: string): readonly Allocation[] => holders.get(key) ?? NOBODY;
    const verdicts = this.#judge(
      known.map(([key, device]) => this.#judged(key, device, holdersOf(key))),
      now,
    );
    const devices = known.map(([key, device]): DeviceState => {
      // What an earlier run read is as old as it is because no agent ran: this one is given the time to read it.
      const begun = this.#begunAt as Moment;
      const isStale = (look: { readonly monotonicMs: number } | undefined): boolean =>
        now.monotonicMs - (look ?? begun).monotonicMs >= staleAfterMs;
      const readAtMs = wallClockOf(device.read ?? readBefore(device, begun), now);
      const age = { isStale: isStale(device.read), isAsideStale: isStale(device.aside) };
      return toState(key, device, verdicts.get(key) ?? UNJUDGED, holdersOf(key), age, readAtMs);
    });
    const seen = devices.map((state): SeenDevice => ({ state, readFromMs: this.#known.get(state.key)?.read?.startedMs }));
    return {
      sequence: ++this.#sequence,
      takenAtMs: now.nowMs,
      devices,
      allocations,
      containerReadings: containerReadings(seen, specs, checkpoint, this.#counters, now.monotonicMs),
      families: families.map(({ state }) => state),
      podResources,
    };
  }

  #resolver(): Resolver {
    const { rules, served } = this.#settings;
    const known = [...this.#known.values()];
    const devices = known.map(({ device }) => device);
    return new Resolver(devices, served === undefined ? rules : { ...rules, served: served(known.map(asServed)) });
  }

  #judged(
    key: string,
    { device, read, aside, isUnread, missingSinceMs, readBeforeMs, wasHung }: KnownDevice,
    holders: readonly Allocation[],
  ): JudgedDevice {
    // A device that hung gets no new time at each start: an agent that restarts often would call it healthy for ever.
    const isAwaited = read === undefined && readBeforeMs !== undefined && wasHung === undefined;
    return {
      key,
      device,
      ...(read === undefined ? {} : { read: { findings: read.findings, atMs: read.readAtMs, monotonicMs: read.monotonicMs } }),
      ...(aside === undefined ? {} : { aside: { findings: aside.findings, atMs: aside.readAtMs, monotonicMs: aside.monotonicMs } }),
      isUnread,
      ...(isAwaited ? { awaitedSinceMs: (this.#begunAt as Moment).nowMs } : {}),
      ...(missingSinceMs === undefined ? {} : { missingSinceMs }),
      holders,
    };
  }
}

const asServed = ({ device, missingSinceMs }: KnownDevice): ServedDevice =>
  missingSinceMs === undefined ? { device } : { device, missingSinceMs };

/** Smaller differences between the clocks are drift. */
const CLOCK_STEP_MS = 1_000;

/** When a look was made, by the wall clock as it is set now. */
function wallClockOf({ readAtMs, monotonicMs }: Pick<Look, 'readAtMs' | 'monotonicMs'>, now: Moment): number {
  const atMs = now.nowMs - (now.monotonicMs - monotonicMs);
  return Math.abs(atMs - readAtMs) > CLOCK_STEP_MS ? atMs : readAtMs;
}

/**
 * The monotonic clock of an earlier run of the agent is not known; at the start of this one the wall clock told the age. A time to come is
 * one of a clock that was set back since.
 */
function readBefore({ readBeforeMs: beforeMs = 0 }: KnownDevice, begun: Moment): Pick<Look, 'readAtMs' | 'monotonicMs'> {
  const readBeforeMs = Math.min(beforeMs, begun.nowMs);
  return { readAtMs: readBeforeMs, monotonicMs: begun.monotonicMs - (begun.nowMs - readBeforeMs) };
}

function toState(
  key: string,
  { device, read, aside, missingSinceMs }: KnownDevice,
  verdict: Verdict,
  holders: readonly Allocation[],
  { isStale, isAsideStale }: { readonly isStale: boolean; readonly isAsideStale: boolean },
  readAtMs: number,
): DeviceState {
  const isPresent = missingSinceMs === undefined;
  const isCurrent = !isStale && isPresent;
  const own = isCurrent && read !== undefined ? read.readings : [];
  return {
    key,
    device,
    readings: aside === undefined || isAsideStale || !isPresent ? own : [...own, ...aside.readings],
    processes: isCurrent ? (read?.processes ?? []) : [],
    verdict,
    holders,
    readAtMs,
    ...(isPresent ? {} : { missingSinceMs }),
    stale: isStale,
  };
}
