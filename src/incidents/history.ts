import { areSameLabels, type Labels, type MetricSpec, type MetricType } from '../model/metric.ts';
import type { Series } from '../model/readings.ts';
import type { DeviceState } from '../model/snapshot.ts';
import { follow, type NameChanges } from './timeline.ts';

/** Samples of one device, oldest first. Each list of values is as long as `times`. */
export interface DeviceHistory {
  /** Wall clock of each read, in milliseconds. */
  readonly times: readonly number[];
  readonly series: readonly SeriesValues[];
}

export interface SeriesValues {
  readonly metric: string;
  readonly labels: Labels;
  readonly type: MetricType;
  /** null where the read had no value for the series. */
  readonly values: readonly (number | null)[];
  /** Wall clock of the read that gave each value; present when that can be an earlier one than the device's, see `readMs` of a reading. */
  readonly reads?: readonly number[];
}

/** Samples of one series. `values` is as long as `times`. */
export interface SeriesSamples extends Pick<SeriesValues, 'values' | 'reads'> {
  readonly times: readonly number[];
}

export interface HistorySettings {
  /** Time that the history reaches back. 0 keeps nothing. */
  readonly periodMs: number;
  /** Interval of refreshes. */
  readonly intervalMs: number;
  /** Declared metrics of all families, keyed by name. */
  readonly specs: ReadonlyMap<string, Pick<MetricSpec, 'type' | 'wiped'>>;
}

export const MOST_SAMPLES = 1_000;
export const MOST_SERIES = 512;
/** Timers fire a little early or late. */
const JITTER = 0.9;

interface Track {
  readonly times: Float64Array;
  /** In the order of the last reading, so that the next one is found without a search. */
  order: SeriesRing[];
  readonly series: Map<string, SeriesRing>;
  /** Number of samples so far. The sample `n` is at `n % length`. */
  count: number;
}

/** The latest readings of each device as numbers, in memory that does not grow. */
export class ReadingHistoryStore {
  readonly #settings: HistorySettings;
  readonly #length: number;
  readonly #spacingMs: number;
  readonly #tracks = new Map<string, Track>();
  /** The states of the latest snapshot: the same object is the same read. */
  #taken: ReadonlyMap<string, DeviceState> = new Map();

  constructor(settings: HistorySettings) {
    const { periodMs, intervalMs } = settings;
    this.#settings = settings;
    this.#spacingMs = Math.max(1, intervalMs, periodMs / MOST_SAMPLES);
    this.#length = periodMs <= 0 ? 0 : Math.min(MOST_SAMPLES, Math.ceil(periodMs / this.#spacingMs) + 1);
  }

  /** Takes the devices of a snapshot. Several snapshots of one read give one sample. Forgets devices that are no longer listed. */
  take(devices: readonly DeviceState[]): void {
    if (this.#length === 0) return;
    for (const state of devices) if (state.readings.length > 0 && this.#taken.get(state.key) !== state) this.#sample(state);
    this.#taken = new Map(devices.map((state) => [state.key, state]));
    if (this.#tracks.size <= devices.length) return;
    const listed = new Set(devices.map(({ key }) => key));
    for (const key of this.#tracks.keys()) if (!listed.has(key)) this.#tracks.delete(key);
  }

  follow(changes: NameChanges): void {
    this.#taken = new Map();
    follow(this.#tracks, changes);
  }

  /** Samples of one device since a time; undefined for a device without samples. */
  seriesOf(key: string, sinceMs = Number.NEGATIVE_INFINITY): DeviceHistory | undefined {
    const track = this.#tracks.get(key);
    if (track === undefined) return undefined;
    const kept: number[] = [];
    for (let n = Math.max(0, track.count - this.#length); n < track.count; n += 1) if (this.#timeOf(track, n) >= sinceMs) kept.push(n);
    const times = kept.map((n) => this.#timeOf(track, n));
    return {
      times,
      series: [...track.series.values()].map((ring) => ({
        metric: ring.metric,
        labels: ring.labels,
        type: this.#settings.specs.get(ring.metric)?.type ?? 'gauge',
        values: kept.map((n) => ring.at(n) ?? null),
        ...(ring.isPaced ? { reads: times.map((time) => ring.readAt(time)) } : {}),
      })),
    };
  }

  /** Wall clock of the last sample of a device; undefined without samples. */
  latestMs(key: string): number | undefined {
    const track = this.#tracks.get(key);
    return track === undefined || track.count === 0 ? undefined : this.#timeOf(track, track.count - 1);
  }

  /** Samples of one series, oldest first. Both are empty for a series that is not known. */
  samplesOf(key: string, metric: string, labels: Labels | undefined, sinceMs: number): SeriesSamples {
    const track = this.#tracks.get(key);
    const ring = track && knownRing(track, metric, labels);
    const times: number[] = [];
    const values: (number | null)[] = [];
    if (track === undefined || ring === undefined) return { times, values };
    for (let n = Math.max(0, track.count - this.#length); n < track.count; n += 1) {
      const time = this.#timeOf(track, n);
      if (time < sinceMs) continue;
      times.push(time);
      values.push(ring.at(n) ?? null);
    }
    return { times, values, ...(ring.isPaced ? { reads: times.map((time) => ring.readAt(time)) } : {}) };
  }

  /** Growth of a counter per second between its own last two reads; undefined after a reset, and where the last read had no value. */
  rateOf(key: string, metric: string, labels: Labels | undefined): number | undefined {
    const track = this.#tracks.get(key);
    const ring = track && knownRing(track, metric, labels);
    if (track === undefined || ring === undefined) return undefined;
    const last = track.count - 1;
    const readAt = (n: number): number => ring.readAt(this.#timeOf(track, n));
    let before = last - 1;
    const oldest = Math.max(0, track.count - this.#length);
    while (ring.isPaced && before >= oldest && ring.at(before) !== undefined && readAt(before) === readAt(last)) before -= 1;
    if (before < oldest) return undefined;
    const [from, to] = [ring.at(before), ring.at(last)];
    const spanMs = readAt(last) - readAt(before);
    // A gap between the reads is no rate of now.
    if (from === undefined || to === undefined || to < from || !(spanMs > 0)) return undefined;
    return ((to - from) / spanMs) * 1_000;
  }

  /** Bytes of all rings, for measurements. */
  get bytes(): number {
    return [...this.#tracks.values()].reduce(
      (sum, { times, series }) => sum + times.byteLength + [...series.values()].reduce((all, ring) => all + ring.bytes, 0),
      0,
    );
  }

  #sample({ key, readAtMs, monotonicMs, readings }: DeviceState): void {
    const track = this.#tracks.get(key) ?? this.#newTrack(key);
    const n = this.#slotFor(track, readAtMs);
    track.count = n + 1;
    track.times[n % this.#length] = readAtMs;
    // A read with the series of the last one, in their order, allocates nothing.
    const isSameLength = readings.length === track.order.length && track.series.size === track.order.length;
    let order: SeriesRing[] | undefined = isSameLength ? undefined : [];
    for (let at = 0; at < readings.length; at += 1) {
      const ring = this.#ringOf(track, readings.series[at] as Series, at);
      if (ring !== track.order[at]) order ??= track.order.slice(0, at);
      if (ring === undefined) continue;
      const readMs = readings.times?.[at];
      const isKept = readMs !== undefined && monotonicMs !== undefined;
      ring.set(n, Number(readings.values[at]), isKept ? readAtMs - Math.max(0, monotonicMs - readMs) : readAtMs, isKept);
      order?.push(ring);
    }
    if (order === undefined) return;
    track.order = order;
    // A repeated sample also loses the values that the newer read lacks.
    const given = new Set(order);
    for (const [name, ring] of track.series) {
      if (!given.has(ring)) ring.skip(n);
      if (n - ring.lastValue >= this.#length) track.series.delete(name);
    }
  }

  /** Index of the sample: that of the last one for the same read, and for a read that follows sooner than the interval. */
  #slotFor(track: Track, readAtMs: number): number {
    const last = track.count - 1;
    if (last < 0) return 0;
    if (Math.abs(readAtMs - this.#timeOf(track, last)) < SAME_READ_MS) return last;
    const isEarly = last > 0 && Math.abs(this.#timeOf(track, last) - this.#timeOf(track, last - 1)) < this.#spacingMs * JITTER;
    return isEarly ? last : track.count;
  }

  #ringOf(track: Track, { metric, labels }: Series, at: number): SeriesRing | undefined {
    const guess = track.order[at];
    if (guess?.metric === metric && areSameLabels(guess.labels, labels)) return guess;
    const name = nameOf(metric, labels);
    const known = track.series.get(name);
    if (known !== undefined || track.series.size >= MOST_SERIES) return known;
    const ring = new SeriesRing(metric, labels ?? {}, this.#length);
    track.series.set(name, ring);
    return ring;
  }

  #newTrack(key: string): Track {
    const track: Track = { times: new Float64Array(this.#length), order: [], series: new Map(), count: 0 };
    this.#tracks.set(key, track);
    return track;
  }

  #timeOf({ times }: Track, n: number): number {
    return times[n % this.#length] as number;
  }
}

/** Compares a few dozen series, which costs less than the text of a name. */
function knownRing({ series }: Track, metric: string, labels: Labels | undefined): SeriesRing | undefined {
  for (const ring of series.values()) if (ring.metric === metric && areSameLabels(ring.labels, labels)) return ring;
  return undefined;
}

const nameOf = (metric: string, labels: Labels = {}): string =>
  JSON.stringify([metric, ...Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))]);

/** Times of one read differ by less: the time is computed anew after a step of the wall clock. */
export const SAME_READ_MS = 20;

/**
 * The latest values of one series. Most series never change, so a ring has memory of its own only after the first change. An absent value
 * is NaN in the ring.
 */
export class SeriesRing {
  readonly metric: string;
  readonly labels: Labels;
  readonly #length: number;
  #values: Float64Array | undefined;
  #constant = Number.NaN;
  /** Index of the first sample with a value. */
  #from = 0;
  /** Index of the last sample, with or without a value; -1 before the first. */
  lastSet = -1;
  /** Index of the last sample with a value. */
  lastValue = -1;
  /** Wall clock of the read that gave the latest value, once a sample had an earlier read than its device's. */
  #readAtMs: number | undefined;
  /** Those of the reads before it, since the value changed first. */
  #reads: number[] | undefined;

  constructor(metric: string, labels: Labels, length: number) {
    this.metric = metric;
    this.labels = labels;
    this.#length = length;
  }

  get bytes(): number {
    return this.#values?.byteLength ?? 0;
  }

  /** The series has a source that is read at its own interval. */
  get isPaced(): boolean {
    return this.#readAtMs !== undefined;
  }

  /**
   * Sets the sample `n`, which is the last one or the one after it. `atMs`: wall clock of the read that gave the value. `isKept`: an earlier
   * read than the device's.
   */
  set(n: number, value: number, atMs: number, isKept: boolean): void {
    if (!Number.isFinite(value)) {
      this.skip(n);
      return;
    }
    if (this.lastSet < 0) {
      this.#constant = value;
      this.#from = n;
    } else if (this.#values === undefined && value !== this.#constant) {
      this.#unfold(n);
    }
    if (this.#values !== undefined) this.#values[n % this.#length] = value;
    if (isKept || this.#readAtMs !== undefined) this.#readNow(atMs, isKept);
    this.lastSet = n;
    this.lastValue = n;
  }

  /** Says that the sample `n` has no value. */
  skip(n: number): void {
    if (this.lastSet < 0) return;
    if (this.#values === undefined) this.#unfold(n);
    (this.#values as Float64Array)[n % this.#length] = Number.NaN;
    this.lastSet = n;
  }

  /** Value of one of the last `length` samples; undefined when it is absent. */
  at(n: number): number | undefined {
    if (n < this.#from || n > this.lastSet) return undefined;
    const value = this.#values === undefined ? this.#constant : (this.#values[n % this.#length] as number);
    return Number.isNaN(value) ? undefined : value;
  }

  /** Wall clock of the read that gave the value of a sample. `timeMs`: that of the sample. */
  readAt(timeMs: number): number {
    if (this.#readAtMs === undefined || timeMs >= this.#readAtMs) return this.#readAtMs ?? timeMs;
    return this.#reads?.findLast((atMs) => atMs <= timeMs) ?? timeMs;
  }

  /** The first sample that shows a read can be later than the read, and a kept value names the begin of the read that a sample dates. */
  #readNow(atMs: number, isKept: boolean): void {
    const before = this.#readAtMs;
    if (before !== undefined && (isKept ? atMs <= before + SAME_READ_MS : atMs <= before)) return;
    this.#readAtMs = atMs;
    if (before === undefined || this.#values === undefined) return;
    this.#reads ??= [];
    this.#reads.push(before);
    if (this.#reads.length > this.#length) this.#reads.shift();
  }

  #unfold(before: number): void {
    const values = new Float64Array(this.#length).fill(Number.NaN);
    for (let n = Math.max(this.#from, before - this.#length); n < before; n += 1) values[n % this.#length] = this.#constant;
    this.#values = values;
  }
}
