import { ContainerCounters } from '../join/container-counters.ts';
import { containerReadings } from '../join/container-readings.ts';
import { findOwners, type Owners } from '../join/owners.ts';
import type { Resolver } from '../join/resolve.ts';
import type { Allocation } from '../model/allocation.ts';
import { type Device, deviceKey } from '../model/device.ts';
import type { Verdict } from '../model/health.ts';
import type { MetricSpec } from '../model/metric.ts';
import type { CheckpointEntry, PodResources } from '../model/pod-resources.ts';
import { Readings } from '../model/readings.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { deviceStates, type Judged, toJudged } from './judged.ts';
import { arePlainEqual } from './plain-equal.ts';
import { ResolverKeeper, type ResolverSettings } from './resolver-keeper.ts';
import { type FamilyInput, type Remembered, Seating, whileRetained } from './seating.ts';

export interface AssembleSettings extends ResolverSettings {
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

export type Judge = (devices: readonly Judged[], nowMs: number) => ReadonlyMap<string, Verdict>;

export interface KnownDevice {
  readonly device: Device;
  readonly readAtMs: number;
  /** Present when it was missing at the end of that run. */
  readonly missingSinceMs?: number;
}

/**
 * Makes the snapshot: joins the latest collections with the latest allocations and has each device judged. It remembers
 * only what a single read cannot tell: which devices there were, and where the containers' counters began.
 */
export class Assembler {
  readonly #settings: AssembleSettings;
  readonly #judge: Judge;
  readonly #counters = new ContainerCounters();
  readonly #seating = new Seating();
  readonly #resolvers: ResolverKeeper;
  #known = new Map<string, Remembered>();
  #joined: (Pick<PodResources, 'allocations' | 'held'> & { readonly resolver: Resolver; readonly owners: Owners }) | undefined;
  #sequence = 0;
  #begun: { readonly atMs: number; readonly monotonicMs: number } | undefined;

  /** `known`: devices that an earlier run of the agent had; those that do not come back are missing. */
  constructor(settings: AssembleSettings, judge: Judge, known: readonly KnownDevice[] = []) {
    this.#settings = settings;
    this.#judge = judge;
    this.#resolvers = new ResolverKeeper(settings);
    for (const { device, ...times } of known.filter((one) => !known.some((other) => isLaterName(other, one))))
      this.#known.set(deviceKey(device), { report: { device, readings: Readings.NONE, findings: [] }, ...times, monotonicMs: undefined });
  }

  /** `monotonicMs`: the same moment by the monotonic clock. */
  assemble(inputs: Inputs, nowMs: number, monotonicMs: number = nowMs): Snapshot {
    if (!this.#seating.renew(inputs.families)) {
      this.#known = this.#remember(inputs, nowMs, monotonicMs);
      this.#seating.arrange(inputs.families, this.#known);
    }
    const owners = this.#currentOwners(inputs.podResources);
    this.#begun ??= { atMs: nowMs, monotonicMs };
    const judged: Judged[] = [];
    for (const [key, known] of this.#known) {
      // What an earlier run read is as old as it is because no agent ran: this one is given the time to read it.
      const awaitedSinceMs = known.monotonicMs === undefined ? this.#begun.atMs : undefined;
      const stale = monotonicMs - (known.monotonicMs ?? this.#begun.monotonicMs) >= this.#settings.staleAfterMs;
      judged.push(toJudged(key, known, stale, awaitedSinceMs, owners.holders.get(key) ?? NOBODY));
    }
    const verdicts = this.#judge(judged, nowMs);
    const devices = deviceStates(judged, verdicts);
    return {
      sequence: ++this.#sequence,
      takenAtMs: nowMs,
      devices,
      allocations: owners.allocations,
      containerReadings: containerReadings(devices, this.#settings.specs, inputs.checkpoint, this.#counters),
      families: inputs.families.map((family) => family.state),
      podResources: inputs.podResources,
    };
  }

  #remember(inputs: Inputs, nowMs: number, atMs: number): Map<string, Remembered> {
    const present = new Map<string, Remembered>();
    const complete = new Set<string>();
    for (const { state, latest } of inputs.families) {
      if (latest === undefined) continue;
      if (latest.collection.complete !== false) complete.add(state.family);
      const { readAtMs, monotonicMs = readAtMs } = latest;
      for (const report of latest.collection.reports) present.set(deviceKey(report.device), { report, readAtMs, monotonicMs });
    }
    const came = new Set([...present].filter(([key]) => !this.#known.has(key)).map(([, { report }]) => bodyOf(report.device)));
    for (const [key, known] of this.#known) {
      // Under another name it is not missing: udev renames HCAs when their driver is loaded anew.
      if (present.has(key) || (known.report.device.uuid !== undefined && came.has(bodyOf(known.report.device)))) continue;
      const unlisted = complete.has(known.report.device.family) ? { ...known, missingSinceMs: known.missingSinceMs ?? nowMs } : known;
      const kept = whileRetained(unlisted, this.#settings.missingRetentionMs, nowMs, atMs);
      if (kept !== undefined) present.set(key, kept);
    }
    return present;
  }

  /** Joined anew only when devices or allocations changed. */
  #currentOwners(podResources: PodResources): Owners {
    const resolver = this.#resolvers.of(this.#known);
    const { allocations, held } = podResources;
    const before = this.#joined;
    const isSame = before?.resolver === resolver && arePlainEqual(before.allocations, allocations) && areEqualSets(before.held, held);
    if (isSame) {
      // The same lists again are then told at a glance.
      this.#joined = { resolver, allocations, held, owners: before.owners };
      return before.owners;
    }
    const isMissing = (key: string): boolean => this.#known.get(key)?.missingSinceMs !== undefined;
    this.#joined = { resolver, allocations, held, owners: findOwners(podResources, resolver, isMissing) };
    return this.#joined.owners;
  }
}

function areEqualSets(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  if (a === b) return true;
  if (a.size !== b.size) return false;
  for (const item of a) if (!b.has(item)) return false;
  return true;
}

function isLaterName(a: KnownDevice, b: KnownDevice): boolean {
  return a.readAtMs > b.readAtMs && b.device.uuid !== undefined && bodyOf(a.device) === bodyOf(b.device);
}

/** What stays of a device when it gets another name. */
function bodyOf({ family, kind, uuid, pciAddress }: Device): string {
  return [family, kind, uuid, pciAddress].join('\u0003');
}

const NOBODY: readonly Allocation[] = [];
