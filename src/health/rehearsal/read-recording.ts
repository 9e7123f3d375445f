import type { Finding } from '../../model/health.ts';
import type { DeviceMemory } from '../engine/memory.ts';
import type { DeviceChange, FindingsRecord, SourceChange } from '../journal/findings-record.ts';
import type { ClockReadings, RecordedChange, RecordedInput, RecordedSource, Recording, Stretch } from './recording.ts';

/** Joins the records of the journal, in the order of the files. A reader that lost a record waits for the next full picture. */
export class RecordingReader {
  readonly #ticks: number[] = [];
  readonly #stretches: Stretch[] = [];
  readonly #offsets: { tick: number; ms: number }[] = [];
  readonly #clocks = new Map<string, ClockReadings>();
  readonly #devices = new Map<string, RecordedChange[]>();
  readonly #memory = new Map<string, Omit<DeviceMemory, 'device'>>();
  readonly #events: Recording['events'][number][] = [];
  readonly #policies: Recording['policies'][number][] = [];
  readonly #endedRuns = new Set<string>();
  #broken = 0;
  #run = '';
  #nextSeq = 0;
  #isFresh = false;
  #offsetMs = 0;
  /** The records since the last picture are complete. */
  #isWhole = false;
  #clockNames: readonly string[] = [];
  /** Parts of a picture that have come so far. */
  #parts: FindingsRecord[] = [];

  /** Takes one record. A record that is no valid one counts as lost. */
  take(value: Readonly<Record<string, unknown>>): void {
    if (!isRecord(value)) {
      this.#lose();
      return;
    }
    const { run, seq } = value;
    // After an upgrade two agents may write for a moment. The one that began later counts.
    if (this.#endedRuns.has(run)) return;
    if (run !== this.#run) this.#begin(value);
    else if (seq < this.#nextSeq) return;
    if (seq > this.#nextSeq) this.#lose();
    this.#nextSeq = seq + 1;
    try {
      this.#add(value);
    } catch {
      this.#lose();
    }
  }

  recording(): Recording {
    return {
      ticks: this.#ticks,
      stretches: this.#stretches,
      offsets: this.#offsets,
      clocks: this.#clocks,
      devices: this.#devices,
      memory: this.#memory,
      events: this.#events,
      policies: this.#policies,
      brokenRecords: this.#broken,
    };
  }

  #lose(): void {
    this.#broken += 1;
    this.#isWhole = false;
    this.#parts = [];
  }

  #begin({ run, fresh = false }: FindingsRecord): void {
    if (this.#run !== '') this.#endedRuns.add(this.#run);
    this.#run = run;
    // The log may have deleted the first files of the first run.
    this.#nextSeq = this.#endedRuns.size === 0 ? Number.NaN : 0;
    this.#isFresh = fresh;
    this.#isWhole = false;
    this.#clockNames = [];
    this.#parts = [];
  }

  #add(record: FindingsRecord): void {
    if (record.clocks !== undefined) this.#clockNames = record.clocks;
    if (record.picture === undefined) {
      if (this.#isWhole) this.#addChanges(record, this.#addTicks(record));
      return;
    }
    this.#parts = record.picture.part === 0 ? [record] : [...this.#parts, record];
    if (record.picture.part !== this.#parts.length - 1) this.#parts = [];
    if (this.#parts.length === record.picture.of) this.#addPicture(this.#parts);
  }

  #addPicture(parts: readonly FindingsRecord[]): void {
    const [first] = parts as readonly [FindingsRecord];
    const isFirst = this.#ticks.length === 0;
    const tick = this.#isWhole ? this.#addTicks(first) : this.#beginStretch(first);
    this.#isWhole = true;
    const listed = new Set<string>();
    for (const { devices = {} } of parts) {
      for (const [key, change] of Object.entries(devices)) {
        if (change === null) continue;
        listed.add(key);
        this.#push(key, tick, this.#applied(undefined, change));
        if (isFirst && change.memory !== undefined) this.#memory.set(key, change.memory);
      }
    }
    for (const [key, changes] of this.#devices) {
      if (!listed.has(key) && changes.at(-1)?.input !== undefined) this.#push(key, tick, undefined);
    }
    this.#addNews(first, tick);
    this.#parts = [];
  }

  /** Of a picture after a break only the last judgement is known. */
  #beginStretch(record: FindingsRecord): number {
    const lastMs = this.#ticks.at(-1);
    const steadyMs = record.at - this.#offsetMs;
    const isSetBack = lastMs !== undefined && steadyMs <= lastMs;
    if (isSetBack) this.#offsetMs = record.at - lastMs - 1;
    if (isSetBack || lastMs === undefined) this.#offsets.push({ tick: this.#ticks.length, ms: this.#offsetMs });
    this.#ticks.push(record.at - this.#offsetMs);
    const tick = this.#ticks.length - 1;
    this.#stretches.push({ first: tick, last: tick, isFresh: this.#isFresh });
    this.#isFresh = false;
    this.#renew(record.ticks.at(-1) ?? [0], tick);
    return tick;
  }

  /** Returns the index of the last judgement. */
  #addTicks({ ticks, step = 0 }: FindingsRecord): number {
    if (step !== 0) {
      this.#offsetMs += step;
      this.#offsets.push({ tick: this.#ticks.length, ms: this.#offsetMs });
    }
    for (const one of ticks) {
      this.#ticks.push((this.#ticks.at(-1) as number) + (one[0] as number));
      this.#renew(one, this.#ticks.length - 1);
    }
    const stretch = this.#stretches.pop() as Stretch;
    this.#stretches.push({ ...stretch, last: this.#ticks.length - 1 });
    return this.#ticks.length - 1;
  }

  #renew(one: readonly number[], tick: number): void {
    for (let at = 1; at + 1 < one.length; at += 2) {
      const [age, set] = [one[at] as number, one[at + 1] as number];
      for (const [number, name] of this.#clockNames.entries()) {
        if (Math.floor(set / 2 ** number) % 2 === 0) continue;
        const clock = this.#clocks.get(name) ?? { ticks: [], times: [] };
        clock.ticks.push(tick);
        clock.times.push((this.#ticks[tick] as number) - age);
        this.#clocks.set(name, clock);
      }
    }
  }

  #addChanges(record: FindingsRecord, tick: number): void {
    for (const [key, change] of Object.entries(record.devices ?? {})) {
      const before = this.#devices.get(key)?.at(-1)?.input;
      this.#push(key, tick, change === null ? undefined : this.#applied(before, change));
    }
    this.#addNews(record, tick);
  }

  #addNews({ events = [], policy }: FindingsRecord, tick: number): void {
    for (const event of events) this.#events.push({ tick, event });
    if (policy !== undefined && policy !== this.#policies.at(-1)?.digest) this.#policies.push({ tick, digest: policy });
  }

  #push(key: string, tick: number, input: RecordedInput | undefined): void {
    const changes = this.#devices.get(key) ?? [];
    changes.push({ tick, input });
    this.#devices.set(key, changes);
  }

  #applied(before: RecordedInput | undefined, change: DeviceChange): RecordedInput {
    const device = change.device ?? before?.device;
    if (device === undefined) throw new Error('a change of a device that is not known');
    const missing = change.missing === undefined ? before?.missingSinceMs : change.missing;
    const awaited = change.awaited === undefined ? before?.awaitedMs : change.awaited === null ? null : change.awaited - this.#offsetMs;
    const sources = new Map(before?.sources ?? []);
    for (const [name, source] of Object.entries(change.sources ?? {})) {
      if (source === null) sources.delete(name);
      else sources.set(name, this.#appliedSource(sources.get(name), source));
    }
    return {
      device,
      ...(missing === undefined || missing === null ? {} : { missingSinceMs: missing }),
      isUnread: change.unread ?? before?.isUnread ?? false,
      ...(awaited === undefined || awaited === null ? {} : { awaitedMs: awaited }),
      holders: change.holders ?? before?.holders ?? [],
      sources,
    };
  }

  #appliedSource(before: RecordedSource | undefined, { found, counts, lost, at }: SourceChange): RecordedSource {
    const fixedMs = at === undefined ? before?.fixedMs : at === null ? undefined : at - this.#offsetMs;
    const time = fixedMs === undefined ? {} : { fixedMs };
    const isSame = found === undefined && counts === undefined && lost === undefined;
    if (before !== undefined && isSame) return { findings: before.findings, ...time };
    const findings = new Map(before?.findings ?? []);
    for (const key of lost ?? []) findings.delete(key);
    for (const [key, finding] of Object.entries(found ?? {})) findings.set(key, finding);
    for (const [key, count] of Object.entries(counts ?? {})) {
      const known = findings.get(key);
      if (known?.count === undefined) throw new Error('a count of a finding that is not known');
      findings.set(key, { ...known, count } as Finding);
    }
    return { findings, ...time };
  }
}

function isRecord(value: Readonly<Record<string, unknown>>): value is Readonly<Record<string, unknown>> & FindingsRecord {
  const { run, seq, at, ticks, picture, devices } = value;
  return (
    typeof run === 'string' &&
    run !== '' &&
    Number.isSafeInteger(seq) &&
    Number.isFinite(at) &&
    Array.isArray(ticks) &&
    ticks.every((tick) => Array.isArray(tick) && tick.length > 0 && tick.every(Number.isFinite)) &&
    (picture === undefined || Object.values(devices ?? {}).every(hasIdentity))
  );
}

function hasIdentity(change: unknown): boolean {
  const { family, id, aliases } = (change as DeviceChange | null)?.device ?? {};
  return typeof family === 'string' && typeof id === 'string' && Array.isArray(aliases);
}
