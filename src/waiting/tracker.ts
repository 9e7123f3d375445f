import { defined } from '../model/defined.ts';
import type { HeldRecord } from '../model/device-record.ts';
import { minutes } from '../model/duration.ts';
import type { ContainerUsage, ContainerWaiting, Usage } from '../model/usage.ts';
import { type Limits, type Remembered, rememberedOf, type Sample, WaitingDetector } from './detector.ts';
import type { StallOptions } from './options.ts';
import { type Counters, type Signals, signalsOf, type Watched } from './signals.ts';

export interface WaitingSettings {
  readonly options: StallOptions;
  /** What shows work, keyed by family. A family that is absent counts for nothing. */
  readonly watched: ReadonlyMap<string, Watched>;
}

export interface WaitingInput {
  /** All known devices. */
  readonly devices: readonly HeldRecord[];
  readonly usage: Usage;
  readonly nowMs: number;
  readonly monotonicMs: number;
}

/** What is kept over a restart of the agent, keyed by container. `run`: id of the container that it is about; absent when it was not known. */
export type WaitingMemory = Readonly<Record<string, Remembered & { readonly run?: string }>>;

/** A longer time without a read of each device is not observed. */
const GAP_MS = minutes(1);
/** A GPU with less memory in use has no process: a context alone takes more. */
const UNUSED_BYTES = 256 * 1_048_576;

interface DeviceSample {
  readonly counters: Counters;
  readonly signals: Signals;
  readonly readMs: number;
}

interface Unit {
  readonly detector: WaitingDetector;
  /** Id of the container whose processes its GPUs had last; a container that restarts within its pod gets another one. */
  run: string | undefined;
  /** Monotonic clock of the latest sample. */
  sampledMs: number;
  /** Links of which bytes were read. */
  readonly links: Set<string>;
  /** Pipes of GPUs of which the activity was read. */
  readonly pipes: Set<string>;
}

interface Holder {
  readonly id: string;
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly devices: readonly string[];
}

/** Judges each container that holds GPUs, from one snapshot to the next. */
export class WaitingTracker {
  #settings: WaitingSettings;
  #before: WaitingMemory;
  #devices = new Map<string, DeviceSample>();
  #units = new Map<string, Unit>();
  #soon: ReadonlySet<string> = new Set();

  /** `before`: what an earlier run of the agent knew. */
  constructor(settings: WaitingSettings, before: WaitingMemory = {}) {
    this.#settings = settings;
    this.#before = before;
  }

  configure(settings: WaitingSettings): void {
    this.#settings = settings;
  }

  /** Families that should be read again sooner than the usual refresh. */
  get soon(): ReadonlySet<string> {
    return this.#soon;
  }

  state(): WaitingMemory {
    const known = [...this.#units].map(
      ([id, { detector, run }]) => [id, { ...rememberedOf(detector.answer), ...defined({ run }) }] as const,
    );
    return { ...this.#before, ...Object.fromEntries(known) };
  }

  /** undefined while it is switched off. */
  step({ devices, usage, nowMs, monotonicMs }: WaitingInput): readonly ContainerWaiting[] | undefined {
    const { options, watched } = this.#settings;
    if (!options.enabled) return undefined;
    const records = new Map(devices.map((record) => [record.key, record]));
    const holders = holdersIn(usage);
    const units = new Map<string, Unit>();
    const seen = new Map<string, DeviceSample>();
    const soon = new Set<string>();
    const answers: ContainerWaiting[] = [];
    const owners = countOwners(holders);
    for (const holder of holders) {
      const gpus = holder.devices.filter((key) => watchedOf(watched, records.get(key))?.progress !== undefined);
      if (gpus.length === 0) continue;
      // All devices of the pod move bytes for it.
      const ofPod = holders.filter(({ namespace, pod }) => namespace === holder.namespace && pod === holder.pod);
      const links = [...new Set(ofPod.flatMap((one) => one.devices))].filter((key) => watchedOf(watched, records.get(key)) !== undefined);
      for (const key of links) if (!seen.has(key)) this.#look(seen, records.get(key) as HeldRecord);
      const run = runOf(gpus, records);
      const known = this.#units.get(holder.id) ?? newUnit(this.#before[holder.id], monotonicMs);
      // What the last run of the container did says nothing about this one.
      const isOther = run !== undefined && known.run !== undefined && run !== known.run;
      const unit = isOther ? newUnit(undefined, monotonicMs) : known;
      unit.run = run ?? unit.run;
      units.set(holder.id, unit);
      const left = whyLeftOut(gpus, records, owners, watched);
      if (left === undefined) this.#sample(unit, { gpus, links, seen, nowMs, monotonicMs });
      else unit.detector.interrupted(left);
      const { state, sinceMs, lastProgressMs, stepSeconds, unknown } = unit.detector.answer;
      const { namespace, pod, container } = holder;
      answers.push({ namespace, pod, container, devices: gpus, state, ...defined({ sinceMs, lastProgressMs, stepSeconds, unknown }) });
      const isArmed = options.sample > 0 || unit.detector.isCandidate(monotonicMs, limitsOf(options));
      if (isArmed) for (const key of links) soon.add((records.get(key) as HeldRecord).device.family);
    }
    this.#devices = seen;
    this.#units = units;
    // A container whose devices were not found yet keeps what an earlier run knew of it.
    this.#before = Object.fromEntries(
      Object.entries(this.#before).filter(([id]) => !units.has(id) && holders.some((one) => one.id === id)),
    );
    this.#soon = soon;
    return answers;
  }

  /** Takes the read of a device, if it is a new one. */
  #look(seen: Map<string, DeviceSample>, record: HeldRecord): void {
    const before = this.#devices.get(record.key);
    const { current, isUnread, device } = record;
    if (current === undefined || isUnread || current.monotonicMs === before?.readMs) {
      if (before !== undefined) seen.set(record.key, before);
      return;
    }
    const watched = this.#settings.watched.get(device.family) as Watched;
    seen.set(record.key, { ...signalsOf(watched, current, before?.counters), readMs: current.monotonicMs });
  }

  #sample(
    unit: Unit,
    {
      gpus,
      links,
      seen,
      nowMs,
      monotonicMs,
    }: Pick<WaitingInput, 'nowMs' | 'monotonicMs'> & {
      readonly gpus: readonly string[];
      readonly links: readonly string[];
      readonly seen: ReadonlyMap<string, DeviceSample>;
    },
  ): void {
    const reads = links.map((key) => seen.get(key)?.readMs ?? Number.NEGATIVE_INFINITY);
    if (reads.every((readMs) => readMs > unit.sampledMs)) {
      const spanMs = monotonicMs - unit.sampledMs;
      if (spanMs > GAP_MS) unit.detector.interrupted('its devices were not read for a time');
      else
        unit.detector.take(
          { atMs: monotonicMs, wallMs: nowMs, spanMs, ...together(unit, gpus, links, seen) },
          limitsOf(this.#settings.options),
        );
      unit.sampledMs = monotonicMs;
    } else if (monotonicMs - unit.sampledMs > GAP_MS) {
      const at = reads.findIndex((readMs) => readMs <= unit.sampledMs);
      unit.detector.interrupted(`${links[at]} was not read for a time`);
    }
  }
}

const watchedOf = (watched: WaitingSettings['watched'], record: HeldRecord | undefined): Watched | undefined =>
  record && watched.get(record.device.family);

function newUnit(remembered: WaitingMemory[string] | undefined, monotonicMs: number): Unit {
  return { detector: new WaitingDetector(remembered), run: remembered?.run, sampledMs: monotonicMs, links: new Set(), pipes: new Set() };
}

/** The one container that has processes on the GPUs; undefined when there is none, or several. */
function runOf(gpus: readonly string[], records: ReadonlyMap<string, HeldRecord>): string | undefined {
  const ids = new Set(gpus.flatMap((key) => records.get(key)?.processes ?? []).flatMap(({ containerId }) => containerId ?? []));
  const [only] = ids;
  return ids.size === 1 ? only : undefined;
}

/** Utilization from which an engine is busy; activity, share of the power limit and share of earlier bytes below which it does no work. */
const LIMITS = { busy: 0.95, activity: 0.01, power: 0.25, bytes: 0.01 } as const;

const limitsOf = (options: StallOptions): Limits => ({
  afterMs: options.after,
  learnMs: options.learn,
  ...LIMITS,
});

/** The containers that hold devices now. A container of the same name that came later is another one. */
function holdersIn({ containers }: Usage): readonly Holder[] {
  const found = new Map<string, ContainerUsage[]>();
  for (const one of containers) {
    if (one.endedAtMs !== undefined) continue;
    const name = `${one.namespace}/${one.pod}/${one.container}`;
    const known = found.get(name);
    if (known === undefined) found.set(name, [one]);
    else known.push(one);
  }
  return [...found].map(([name, accounts]) => {
    const { namespace, pod, container } = accounts[0] as ContainerUsage;
    const sinceMs = Math.min(...accounts.map((one) => one.sinceMs));
    return { id: `${name}@${sinceMs}`, namespace, pod, container, devices: [...new Set(accounts.map(({ device }) => device))] };
  });
}

function countOwners(holders: readonly Holder[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const key of holders.flatMap(({ devices }) => devices)) counts.set(key, (counts.get(key) ?? 0) + 1);
  return counts;
}

/** Why nothing can be said about a container, whatever its devices do. */
function whyLeftOut(
  gpus: readonly string[],
  records: ReadonlyMap<string, HeldRecord>,
  owners: ReadonlyMap<string, number>,
  watched: WaitingSettings['watched'],
): string | undefined {
  for (const key of gpus) {
    if ((owners.get(key) ?? 0) > 1) return `it shares ${key} with other containers`;
    const { device, strangers = [] } = records.get(key) as HeldRecord;
    if (strangers.length > 0) return `it shares ${key} with a process of another pod`;
    const wrong = watched.get(device.family)?.progress?.unreliable?.find(({ model }) => device.model?.includes(model) === true);
    if (wrong !== undefined) return `the utilization of ${wrong.model} is not reliable (${wrong.source})`;
  }
  return undefined;
}

/** Joins what the devices of a container did. */
function together(
  unit: Unit,
  gpus: readonly string[],
  links: readonly string[],
  seen: ReadonlyMap<string, DeviceSample>,
): Pick<Sample, 'busy' | 'activity' | 'power' | 'bytes' | 'watts' | 'unread'> {
  const missing: string[] = [];
  let [bytes, isRead] = [0, false];
  for (const key of links) {
    const moved = seen.get(key)?.signals.bytes ?? {};
    if (Object.keys(moved).length === 0 && !gpus.includes(key)) missing.push(`the bytes of ${key}`);
    for (const [link, value] of Object.entries(moved)) {
      unit.links.add(`${key} ${link}`);
      bytes += value;
      isRead = true;
    }
  }
  for (const name of unit.links) {
    const [key = '', link = ''] = name.split(' ');
    if (seen.get(key)?.signals.bytes[link] === undefined) missing.push(`the bytes of ${name}`);
  }
  if (unit.links.size === 0) missing.push('the bytes of a link');
  const all = gpus.map((key) => ({ key, ...(seen.get(key)?.signals ?? { bytes: {} }) }));
  const used = all.filter(({ memoryBytes }) => memoryBytes === undefined || memoryBytes >= UNUSED_BYTES);
  let [busy, watts, activity, power]: [number, number, number | undefined, number | undefined] = [
    used.length === 0 ? 0 : 1,
    0,
    undefined,
    undefined,
  ];
  for (const one of used) {
    if (one.busy === undefined) missing.push(`the utilization of ${one.key}`);
    else busy = Math.min(busy, one.busy);
    for (const [pipe, share] of Object.entries(one.pipes ?? {})) {
      unit.pipes.add(`${one.key} ${pipe}`);
      activity = Math.max(activity ?? 0, share);
    }
    if (one.powerShare === undefined) missing.push(`the power of ${one.key}`);
    else power = Math.max(power ?? 0, one.powerShare);
  }
  for (const name of unit.pipes) {
    const [key, pipe = ''] = name.split(' ');
    const own = used.find((one) => one.key === key);
    if (own !== undefined && own.pipes?.[pipe] === undefined) missing.push(`whether the pipe ${pipe} of ${key} works`);
  }
  for (const one of all) watts += one.watts ?? Number.NaN;
  const isBytesKnown = isRead && !missing.some((what) => what.startsWith('the bytes'));
  return {
    busy: used.some((one) => one.busy !== undefined) || used.length === 0 ? busy : undefined,
    activity,
    power,
    bytes: isBytesKnown ? bytes : undefined,
    watts: Number.isNaN(watts) ? undefined : watts,
    unread: missing.length === 0 ? undefined : `not read: ${missing[0]}${missing.length === 1 ? '' : ` and ${missing.length - 1} more`}`,
  };
}
