import { isDeepStrictEqual } from 'node:util';
import { conditionName } from '../model/condition-text.ts';
import { hours, seconds } from '../model/duration.ts';
import type { HealthEvent } from '../model/events.ts';
import { ONE_FAULT_MS } from '../model/health.ts';
import { areHoldersKnown } from '../model/pod-resources.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { changeOf, cleaned, conditionFacts, freeze, holderFact, type IncidentPlace, MOST_HOLDERS, timeText } from './freeze.ts';
import { type DeviceHistory, type HistorySettings, ReadingHistoryStore } from './history.ts';
import { type DeviceMarks, marksOf } from './kernel-log.ts';
import { type IncidentHolder, type IncidentRecord, type IncidentSummary, incidentId, type KernelPart, type OtherChange } from './record.ts';
import { follow, type NameChanges, nameChanges, Timeline } from './timeline.ts';

/** Changes of one device within this time are one incident. */
const JOIN_MS = seconds(10);
/** Whether two records, of two agents, are of one incident. */
export const isOneIncident = (one: IncidentSummary, other: IncidentSummary): boolean =>
  one.device === other.device && Math.abs(Date.parse(one.time) - Date.parse(other.time)) <= JOIN_MS;
const MOST_JOINED = 20;
/** A device that flaps gets no more records than this within one hour. */
export const MOST_PER_HOUR = 12;

export interface RecorderDependencies {
  place(): IncidentPlace;
  /** Announced events of the device in the last hour, oldest first. */
  eventsOf(device: string, sinceMs: number): readonly HealthEvent[];
  /** Searches the kernel log. Never rejects. */
  kernelLines(marks: DeviceMarks): Promise<KernelPart>;
  /** Stores a record, or a later version of it. */
  save(record: IncidentRecord): void;
  isTaken(id: string): boolean;
}

/** Settings of the history, which reaches back at least as far as a record. */
export interface RecorderSettings extends HistorySettings {
  /** Time before an incident whose readings the record has. Default: all that the history has. */
  readonly recordMs?: number;
  /** Conditions whose begin is recorded too, although they change no verdict. */
  readonly recorded?: ReadonlySet<string>;
}

/** The latest record of one device, which later changes can extend. */
interface Open {
  readonly atMs: number;
  record: IncidentRecord;
}

/** Makes one record for each time at which the verdict on a device gets worse or unknown. */
export class IncidentRecorder {
  readonly #parts: RecorderDependencies;
  readonly #timeline = new Timeline();
  #history: ReadingHistoryStore;
  #settings: RecorderSettings;
  #events: readonly HealthEvent[] = [];
  readonly #open = new Map<string, Open>();
  #seenChangesOfHolders = 0;
  /** Times of the records of each device within the last hour. */
  readonly #times = new Map<string, number[]>();

  /** `stored`: incidents that an earlier run recorded. They count for the limit of the last hour. */
  constructor(parts: RecorderDependencies, settings: RecorderSettings, stored: readonly IncidentSummary[]) {
    this.#parts = parts;
    this.#settings = settings;
    this.#history = new ReadingHistoryStore(settings);
    for (const { device, time } of stored) this.#times.set(device, [...(this.#times.get(device) ?? []), Date.parse(time)]);
  }

  get history(): ReadingHistoryStore {
    return this.#history;
  }

  /** Takes other settings. The history starts anew only when its own settings differ. */
  configure(settings: RecorderSettings): void {
    const { periodMs, intervalMs } = this.#settings;
    this.#settings = settings;
    if (settings.periodMs !== periodMs || settings.intervalMs !== intervalMs) this.#history = new ReadingHistoryStore(settings);
  }

  /** Takes the events of a judgement. The snapshot of the same judgement must follow. */
  judged(events: readonly HealthEvent[]): void {
    if (events.length > 0) this.#events = [...this.#events, ...events];
  }

  take(snapshot: Snapshot): void {
    const events = this.#events;
    this.#events = [];
    this.#follow(nameChanges(events));
    const before = new Map(events.map(({ device }) => [device, this.#timeline.lastOf(device)]));
    this.#history.take(snapshot.devices);
    this.#timeline.take(snapshot);
    const changes = events.filter(({ transition, to }) => transition === 'state' && to !== undefined);
    for (const change of changes) this.#timeline.changed(change);
    for (const change of [...changes, ...this.#begun(events)]) this.#change(change, before.get(change.device), snapshot, events);
    for (const event of events) if (event.transition === 'raised') this.#nameLaterConditions(event.device, snapshot);
    if (changes.length > 0) this.#nameOthers(changes, snapshot.takenAtMs);
    this.#nameLaterHolders(snapshot);
    this.#forget(snapshot);
  }

  #follow(changes: NameChanges): void {
    if (changes.renamed.size + changes.replaced.length === 0) return;
    this.#history.follow(changes);
    this.#timeline.follow(changes);
    follow(this.#open, changes);
    follow(this.#times, changes);
  }

  /** One event for each condition and container: all devices of a container that waits tell the same. */
  #begun(events: readonly HealthEvent[]): readonly HealthEvent[] {
    const begun = events.filter(
      ({ transition, condition = '' }) => transition === 'raised' && this.#settings.recorded?.has(condition) === true,
    );
    const nameOf = ({ condition, holders }: HealthEvent): string =>
      JSON.stringify([condition, ...holders.map(({ namespace, pod, container }) => [namespace, pod, container])]);
    return [...new Map(begun.toReversed().map((event) => [nameOf(event), event])).values()].toReversed();
  }

  #change(event: HealthEvent, before: ReturnType<Timeline['lastOf']>, snapshot: Snapshot, events: readonly HealthEvent[]): void {
    const { device: key, timeMs } = event;
    const open = this.#open.get(key);
    if (open !== undefined && Math.abs(timeMs - open.atMs) <= JOIN_MS) {
      this.#join(open, event);
      return;
    }
    const isAccepted = events.some(({ device, transition }) => device === key && transition === 'accepted');
    if (event.to === 'healthy' && !isAccepted) return;
    const state = snapshot.devices.find((one) => one.key === key);
    if (state === undefined) return;
    const times = (this.#times.get(key) ?? []).filter((at) => Math.abs(timeMs - at) < hours(1));
    if (times.length >= MOST_PER_HOUR) {
      this.#suppress(open, timeMs);
      return;
    }
    this.#times.set(key, [...times, timeMs]);
    const earlier = [...this.#parts.eventsOf(key, timeMs - hours(1)), ...events.filter((one) => one.device === key && one !== event)];
    const record = freeze({
      id: incidentId(timeMs, state.device, (id) => this.#parts.isTaken(id)),
      place: this.#parts.place(),
      event,
      state,
      before,
      withProcesses: this.#timeline.processesOf(key),
      holders: this.#timeline.holdersOf(key, timeMs),
      areHoldersKnown: areHoldersKnown(snapshot.podResources),
      history: this.#recorded(key, event.transition === 'raised'),
      isWiped: (metric) => this.#settings.specs.get(metric)?.wiped === true,
      events: [...new Map(earlier.map((one) => [one.id, one])).values()],
    });
    const opened: Open = { atMs: timeMs, record };
    this.#open.set(key, opened);
    this.#update(opened, { others: this.#others(opened) });
    void this.#parts.kernelLines(marksOf(state.device)).then((kernel) => this.#update(opened, { kernel: cleaned(kernel) }));
  }

  /** Readings before the last read of the device: one that is gone was read last before the incident. */
  #recorded(key: string, isOfWait: boolean): DeviceHistory | undefined {
    const { recordMs: usualMs = Number.POSITIVE_INFINITY, intervalMs } = this.#settings;
    // The agent reports a wait late. Only the readings from before it show how the device worked.
    const recordMs = isOfWait && usualMs > 0 ? Number.POSITIVE_INFINITY : usualMs;
    const latest = this.#history.latestMs(key);
    if (latest === undefined || recordMs <= 0) return undefined;
    return this.#history.seriesOf(key, latest - recordMs - intervalMs / 2);
  }

  #join(open: Open, event: HealthEvent): void {
    const { changes, furtherChanges = 0 } = open.record;
    if (changes.length < MOST_JOINED) this.#update(open, { changes: [...changes, changeOf(event)] });
    else this.#update(open, { furtherChanges: furtherChanges + 1 });
  }

  /** After a restart the last record is on disk only; then the log and the counter report the suppressed changes. */
  #suppress(open: Open | undefined, timeMs: number): void {
    if (open === undefined) return;
    this.#update(open, { suppressed: { count: (open.record.suppressed?.count ?? 0) + 1, last: timeText(timeMs) } });
  }

  /** A device reports an error, and then is gone: both are this fault, in the order of the verdict. */
  #nameLaterConditions(key: string, { devices, takenAtMs }: Snapshot): void {
    const open = this.#open.get(key);
    const verdict = devices.find((one) => one.key === key)?.verdict;
    if (open === undefined || verdict === undefined || Math.abs(takenAtMs - open.atMs) > ONE_FAULT_MS) return;
    const { after } = open.record;
    const now = conditionFacts(verdict.conditions);
    const known = new Set((after.conditions ?? []).map(conditionName));
    if (now.every((one) => known.has(conditionName(one)))) return;
    const names = new Set(now.map(conditionName));
    const ended = (after.conditions ?? []).filter((one) => !names.has(conditionName(one)));
    const conditions = [...now, ...ended];
    const counted = new Set(conditions.map(conditionName));
    const { pending = [], ...judged } = after;
    const waiting = pending.filter((one) => !counted.has(conditionName(one)));
    this.#update(open, cleaned({ after: { ...judged, conditions, ...(waiting.length === 0 ? {} : { pending: waiting }) } }));
  }

  /** Another device that fails a moment later may have the same cause, so it is added to the records of this moment. */
  #nameOthers(changes: readonly HealthEvent[], nowMs: number): void {
    for (const [key, open] of this.#open) {
      if (Math.abs(nowMs - open.atMs) > JOIN_MS || changes.every(({ device }) => device === key)) continue;
      const others = this.#others(open);
      if (JSON.stringify(others) !== JSON.stringify(open.record.others)) this.#update(open, { others });
    }
  }

  /** Who gets a device while its fault lasts is hit, too, and may be gone when somebody looks. */
  #nameLaterHolders({ devices, takenAtMs }: Snapshot): void {
    if (this.#timeline.changesOfHolders === this.#seenChangesOfHolders) return;
    this.#seenChangesOfHolders = this.#timeline.changesOfHolders;
    for (const [key, open] of this.#open) {
      if (devices.find((one) => one.key === key)?.verdict.state === 'healthy') continue;
      const spanOf = ({ namespace, pod, container, resource, deviceId, since }: IncidentHolder): string =>
        [namespace, pod, container, resource, deviceId, since].join('/');
      const now = this.#timeline.holdersOf(key, takenAtMs).map(holderFact);
      const all = [...new Map([...open.record.holders, ...now].map((one) => [spanOf(one), one])).values()].slice(0, MOST_HOLDERS);
      if (!isDeepStrictEqual(all, open.record.holders)) this.#update(open, cleaned({ holders: all }));
    }
  }

  #others({ atMs, record }: Open): readonly OtherChange[] {
    const found = this.#timeline.others(record.device.key, atMs, atMs + JOIN_MS);
    return found.map(({ atMs: at, ...change }) => ({ ...change, time: timeText(at) }));
  }

  #update(open: Open, part: Partial<IncidentRecord>): void {
    open.record = { ...open.record, ...part };
    this.#parts.save(open.record);
  }

  #forget({ devices, takenAtMs }: Snapshot): void {
    const isListed = (key: string): boolean => devices.some((one) => one.key === key);
    for (const key of this.#open.keys()) if (!isListed(key)) this.#open.delete(key);
    for (const [key, times] of this.#times) {
      if (!isListed(key) && times.every((at) => Math.abs(takenAtMs - at) > hours(1))) this.#times.delete(key);
    }
  }
}
