import { describe, expect, it } from 'vitest';
import { createHealthEngine } from '../../../src/health/engine/engine.ts';
import type { HealthInput } from '../../../src/health/engine/judge-device.ts';
import { FindingsJournal } from '../../../src/health/journal/findings-journal.ts';
import type { FindingsRecord } from '../../../src/health/journal/findings-record.ts';
import type { HealthPolicy } from '../../../src/health/policy/policy.ts';
import { RecordingReader } from '../../../src/health/rehearsal/read-recording.ts';
import type { Recording } from '../../../src/health/rehearsal/recording.ts';
import { rehearse } from '../../../src/health/rehearsal/rehearsal.ts';
import { replayDevice } from '../../../src/health/rehearsal/replay.ts';
import type { HealthEvent } from '../../../src/model/events.ts';
import type { Finding } from '../../../src/model/health.ts';
import { device, found, gone, policyFor, START, spec } from '../one-device.ts';

const POLICY = policyFor([spec('Fault', { forMs: 30_000, recoveryMs: 60_000 }), spec('Grown', { class: 'rate' }), spec('Width')]);

/** An engine and its journal; the records are in memory, as text and back. */
class Recorder {
  readonly records: FindingsRecord[] = [];
  readonly events: HealthEvent[] = [];
  readonly log = {
    dropped: 0,
    append: async (records: readonly object[]): Promise<undefined> => {
      this.records.push(...(JSON.parse(JSON.stringify(records)) as FindingsRecord[]));
    },
  };
  readonly #engine;
  readonly #journal;
  #stepMs = 0;

  constructor(policy: HealthPolicy = POLICY) {
    this.#engine = createHealthEngine({ policy });
    this.#journal = new FindingsJournal({
      log: this.log,
      isFresh: true,
      pictureEvery: 1_000_000,
      memory: () => this.#engine.memory(),
      written: () => {},
    });
  }

  /** Sets the wall clock. */
  step(ms: number): void {
    this.#stepMs += ms;
  }

  /** Judges what was read so many seconds after the start. Undefined: no device is listed. */
  read(atSeconds: number, findings: readonly Finding[] | undefined, more: Partial<HealthInput> = {}): void {
    const monotonicMs = atSeconds * 1_000;
    const nowMs = START + monotonicMs + this.#stepMs;
    const read = { findings: findings ?? [], readAtMs: nowMs, monotonicMs };
    const devices = findings === undefined ? [] : [{ key: 'test/one', device: device(), read, holders: [], ...more }];
    const { events } = this.#engine.judge({ devices, monotonicMs }, nowMs);
    this.#engine.announce();
    this.#journal.judged(devices, { nowMs, monotonicMs }, events, 'digest');
    this.events.push(...events);
  }

  async close(): Promise<void> {
    await this.#journal.close();
  }
}

function recordingOf(records: readonly object[]): Recording {
  const reader = new RecordingReader();
  for (const record of records) reader.take(record as Record<string, unknown>);
  return reader.recording();
}

const story = (events: readonly Omit<HealthEvent, 'id'>[]): readonly string[] =>
  events.map(({ timeMs, transition, condition, to }) => `${(timeMs - START) / 1_000} ${transition} ${condition} ${to}`);

const replayed = (recording: Recording): readonly string[] =>
  story(replayDevice(recording, 'test/one', POLICY).events.map(({ event }) => event));

describe('the journal of findings', () => {
  it('writes a heartbeat every ten minutes while nothing changes', async () => {
    const recorder = new Recorder();
    for (let at = 0; at < 3_600; at += 10) recorder.read(at, [gone('Fault')]);
    await recorder.close();
    expect(recorder.records).toHaveLength(1 + 5 + 1);
    expect(recorder.records.slice(1).every(({ devices }) => devices === undefined)).toBe(true);
    expect(recorder.records.at(-1)?.end).toBe(true);
  });

  it('writes a line of some hundred bytes when a counter grows at each refresh', async () => {
    const recorder = new Recorder();
    for (let at = 0; at < 3_600; at += 10) recorder.read(at, [gone('Fault'), found('Grown', { count: at })]);
    const [, ...lines] = recorder.records.filter(({ events }) => events === undefined).map((record) => JSON.stringify(record));
    expect(lines).toHaveLength(358);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(150);
  });

  it('writes no live text, and no line for one', async () => {
    const recorder = new Recorder();
    for (let at = 0; at < 100; at += 10) recorder.read(at, [{ ...gone('Fault'), message: `it is ${at} °C` }]);
    recorder.read(100, [{ ...found('Fault'), message: 'it is hot' }]);
    const text = JSON.stringify(recorder.records);
    expect(recorder.records).toHaveLength(2);
    expect(text).not.toContain('°C');
    expect(text).toContain('it is hot');
  });

  it('writes a picture after records were lost', () => {
    const recorder = new Recorder();
    recorder.read(0, [gone('Fault')]);
    recorder.log.dropped = 3;
    recorder.read(10, [gone('Fault')]);
    recorder.read(20, [gone('Fault')]);
    expect(recorder.records.map(({ picture }) => picture)).toEqual([
      { part: 0, of: 1 },
      { part: 0, of: 1 },
    ]);
  });
});

describe('a replay', () => {
  it.each([3_600_000, -3_600_000])('is not misled when the wall clock is set by %i ms', async (stepMs) => {
    const recorder = new Recorder();
    for (let at = 0; at < 300; at += 10) {
      if (at === 120) recorder.step(stepMs);
      recorder.read(at, [at >= 100 && at < 150 ? found('Fault') : gone('Fault')]);
    }
    await recorder.close();
    expect(recorder.events).toHaveLength(4);
    expect(replayed(recordingOf(recorder.records))).toEqual(story(recorder.events));
  });

  it('begins in the middle with what the engine remembered', async () => {
    const recorder = new Recorder();
    const width = (level: number): readonly Finding[] => [{ type: 'Width', reason: 'Because', message: 'x', level }];
    for (let at = 0; at < 100; at += 10) recorder.read(at, width(16));
    recorder.log.dropped = 1;
    for (let at = 100; at < 200; at += 10) recorder.read(at, width(at < 150 ? 16 : 8));
    await recorder.close();
    const later = recorder.records.filter(({ at }) => at >= START + 100_000);
    expect(replayed(recordingOf(later))).toEqual(['150 raised Width undefined', '150 state Width unhealthy']);
  });

  it('shows a condition from before the record from its begin', async () => {
    const recorder = new Recorder();
    for (let at = 0; at < 100; at += 10) recorder.read(at, [found('Fault')]);
    recorder.log.dropped = 1;
    for (let at = 100; at < 300; at += 10) recorder.read(at, [at < 200 ? found('Fault') : gone('Fault')]);
    await recorder.close();
    const recording = recordingOf(recorder.records.filter(({ at }) => at >= START + 100_000));
    const { states } = replayDevice(recording, 'test/one', POLICY);
    expect(states.map(({ fromMs, state }) => [(fromMs - START) / 1_000, state])).toEqual([
      [100, 'unhealthy'],
      [260, 'healthy'],
    ]);
    expect(recording.brokenRecords).toBe(0);
  });

  it('ignores a record that was written twice, and one of a run that a newer run replaced', async () => {
    const [old, recorder] = [new Recorder(), new Recorder()];
    old.read(-100, [found('Fault')]);
    for (let at = 0; at < 300; at += 10) recorder.read(at, [at >= 100 && at < 150 ? found('Fault') : gone('Fault')]);
    await recorder.close();
    const twice = recorder.records.flatMap((record) => [record, record]);
    const late = old.records.map((record) => ({ ...record, seq: 1 }));
    const recording = recordingOf([...old.records, ...twice, ...late]);
    expect(recording.brokenRecords).toBe(0);
    expect(recording.devices.size).toBe(1);
    expect(replayed(recording)).toEqual(story(recorder.events));
  });

  it('waits for the next picture after a lost record', () => {
    const recorder = new Recorder();
    for (let at = 0; at < 300; at += 10) recorder.read(at, [at >= 100 && at < 150 ? found('Fault') : gone('Fault')]);
    recorder.log.dropped = 1;
    recorder.read(300, [gone('Fault')]);
    recorder.read(310, [found('Fault')]);
    const begin = recorder.records.findIndex(({ devices }, at) => at > 0 && devices !== undefined);
    const recording = recordingOf(recorder.records.toSpliced(begin, 1));
    expect(recording.brokenRecords).toBe(1);
    expect(recording.ticks.map((at) => (at - START) / 1_000)).toEqual([0, 300, 310]);
    expect(recording.stretches.map(({ first, last }) => [first, last])).toEqual([
      [0, 0],
      [1, 2],
    ]);
  });

  it('forgets a device that was missing for the retention time', async () => {
    const recorder = new Recorder();
    recorder.read(0, [gone('Fault')]);
    for (let at = 10; at < 86_500; at += 30) {
      recorder.read(at, at < 86_410 ? [] : undefined, { isUnread: true, missingSinceMs: START + 10_000 });
    }
    await recorder.close();
    expect(story(recorder.events)).toEqual([
      '10 raised DeviceMissing undefined',
      '10 state DeviceMissing unhealthy',
      '86410 cleared DeviceMissing undefined',
    ]);
    expect(replayed(recordingOf(recorder.records))).toEqual(story(recorder.events));
  });

  it('knows nothing of an empty record', async () => {
    expect(await rehearse(recordingOf([]), { present: POLICY, other: POLICY }, START)).toBeUndefined();
  });
});
