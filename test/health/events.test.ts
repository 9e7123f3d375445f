import { describe, expect, it } from 'vitest';
import { createHealthEngine } from '../../src/health/engine/engine.ts';
import type { HealthMemory } from '../../src/health/engine/memory.ts';
import { EventRing } from '../../src/health/journal/events.ts';
import { createJournal } from '../../src/health/journal/journal.ts';
import { type Clock, systemClock } from '../../src/host/clock.ts';
import type { HealthEvent } from '../../src/model/events.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';
import { device, found, gone, policyFor, readAt, START, spec } from './one-device.ts';

const event = (): Omit<HealthEvent, 'id'> => ({
  timeMs: START,
  device: 'test/one',
  family: 'test',
  transition: 'raised',
  condition: 'Down',
  reason: 'Because',
  message: 'down',
  remedy: 'reset',
  holders: [],
});
const ids = (events: readonly HealthEvent[]): readonly number[] => events.map((item) => item.id);
const many = (count: number) => Array.from({ length: count }, event);

describe('the ring of events', () => {
  it('numbers events from 1, without gaps', () => {
    const ring = new EventRing();
    expect(ids(ring.append(many(2)))).toEqual([1, 2]);
    expect(ids(ring.append(many(1)))).toEqual([3]);
  });

  it('shows only what was announced, each event announced once', () => {
    const ring = new EventRing();
    ring.append(many(3));
    expect(ring.since(0)).toEqual([]);
    expect(ids(ring.announce(2))).toEqual([1, 2]);
    expect(ids(ring.since(0))).toEqual([1, 2]);
    expect(ids(ring.announce())).toEqual([3]);
    expect(ring.announce()).toEqual([]);
    expect(ids(ring.since(1))).toEqual([2, 3]);
    expect(ring.since(3)).toEqual([]);
  });

  it('returns all events for an id from another boot', () => {
    const ring = new EventRing();
    ring.append(many(2));
    ring.announce();
    expect(ids(ring.since(500))).toEqual([1, 2]);
  });

  it('keeps the latest thousand by default', () => {
    const ring = new EventRing();
    for (let turn = 0; turn < 30; turn += 1) {
      ring.append(many(100));
      ring.announce();
    }
    expect(ring.since(0)).toHaveLength(1000);
    expect(ring.since(0)[0]?.id).toBe(2001);
  });

  it('drops no event that was not announced yet', () => {
    const ring = new EventRing(10);
    ring.append(many(50));
    expect(ring.announce()).toHaveLength(50);
    ring.append(many(1));
    ring.announce();
    expect(ids(ring.since(0))).toHaveLength(10);
  });
});

describe('the journal', () => {
  const policy = policyFor([spec('Down'), spec('Errors', { class: 'rate', threshold: { growth: 1e9, windowMs: 3_600_000 } })]);
  const read = (at: number, down: boolean, count = 0) => ({
    devices: [readAt(device(), at, [down ? found('Down') : gone('Down'), found('Errors', { count })])],
  });

  function setup(write?: (state: HealthMemory) => Promise<string | undefined>, clock: Clock = systemClock) {
    const engine = createHealthEngine({ policy });
    const log: string[] = [];
    const journal = createJournal({
      engine,
      clock,
      file: {
        write: async (state) => {
          log.push(`write ${state.lastEventId}`);
          return write?.(state);
        },
      },
      announced: (item) => log.push(`tell ${item.id}`),
      written: (error) => log.push(error === undefined ? 'written' : `failed: ${error}`),
    });
    const judge = (at: number, down: boolean, count = 0) =>
      journal.record(engine.judge(read(START + at, down, count), START + at), START + at);
    return { engine, journal, log, judge };
  }

  it('writes before it announces', async () => {
    const { log, judge, engine } = setup();
    const done = judge(0, true);
    expect(engine.eventsSince(0)).toEqual([]);
    await done;
    expect(log).toEqual(['write 2', 'written', 'tell 1', 'tell 2']);
    expect(engine.eventsSince(0)).toHaveLength(2);
  });

  it('writes baselines now and then, not at every judgement', async () => {
    const { log, judge } = setup();
    for (let at = 0; at <= 60_000; at += 10_000) await judge(at, false, at);
    expect(log).toEqual(['write 0', 'written', 'write 0', 'written', 'write 0', 'written']);
  });

  it('writes unchanged readings rarely, unless the last write failed', async () => {
    const answers = [undefined, 'ENOSPC', undefined, undefined];
    const { engine, journal, log } = setup(async () => answers.shift());
    const times: number[] = [];
    for (let at = 0; at <= 900_000; at += 10_000) {
      const before = log.length;
      await journal.record(engine.judge(read(START + at, false), START + at), START + at);
      if (log.length > before) times.push(at);
    }
    expect(times).toEqual([0, 300_000, 330_000, 630_000]);
    expect(log).toContain('failed: ENOSPC');
  });

  it('announces everything exactly once, in order, while a write hangs', async () => {
    const releases: (() => void)[] = [];
    const { log, judge } = setup(() => new Promise((resolve) => releases.push(() => resolve(undefined))));
    const all = [judge(0, true), judge(1, false), judge(2, true), judge(3, false)];
    const finish = Promise.all(all).then(() => log.push('done'));
    while (!log.includes('done')) {
      releases.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await finish;
    const told = log.filter((line) => line.startsWith('tell')).map((line) => Number(line.slice(5)));
    expect(told).toEqual(told.map((_, index) => index + 1));
    expect(told).toHaveLength(8);
    for (const [index, line] of log.entries()) {
      if (!line.startsWith('tell')) continue;
      const written = log
        .slice(0, index)
        .filter((item) => item.startsWith('write '))
        .at(-1) as string;
      expect(Number(written.slice(6))).toBeGreaterThanOrEqual(Number(line.slice(5)));
    }
  });

  it('announces even when the write fails, and reports the failure', async () => {
    const { log, judge } = setup(async () => 'ENOSPC');
    await judge(0, true);
    expect(log).toEqual(['write 2', 'failed: ENOSPC', 'tell 1', 'tell 2']);
  });

  it('writes without a listener for the result', async () => {
    const engine = createHealthEngine({ policy });
    const written: number[] = [];
    const file = {
      write: async (state: HealthMemory) => {
        written.push(state.lastEventId);
        return undefined;
      },
    };
    await createJournal({ engine, file, announced: () => {} }).record(engine.judge(read(START, true), START), START);
    expect(written).toEqual([2]);
  });

  it('announces its events and ends, even when a write does not return', async () => {
    const clock = new ManualClock();
    const tick = () => new Promise((resolve) => setImmediate(resolve));
    const answers: (() => void)[] = [];
    const { log, judge, journal } = setup(() => new Promise((resolve) => answers.push(() => resolve(undefined))), clock);
    const first = judge(0, true);
    await tick();
    clock.advance(4_999);
    await tick();
    expect(log).toEqual(['write 2']);
    clock.advance(1);
    await first;
    expect(log.splice(0)).toEqual(['write 2', 'failed: the disk has not answered for 5 s', 'tell 1', 'tell 2']);
    await judge(1_000, false);
    await judge(60_000, true);
    expect(log.splice(0), 'one write at a time').toEqual([
      'failed: the disk has not answered for 5 s',
      'tell 3',
      'tell 4',
      'failed: the disk has not answered for 5 s',
      'tell 5',
      'tell 6',
    ]);
    await journal.close();
    expect(log.splice(0)).toEqual(['failed: the disk has not answered for 5 s']);
    answers[0]?.();
    await tick();
    const last = judge(61_000, false);
    await tick();
    answers[1]?.();
    await last;
    expect(log).toEqual(['written', 'write 8', 'written', 'tell 7', 'tell 8']);
    expect(clock.pendingTimers).toBe(0);
  });

  it('needs no file', async () => {
    const engine = createHealthEngine({ policy });
    const told: number[] = [];
    const journal = createJournal({ engine, announced: (item) => told.push(item.id) });
    await journal.record(engine.judge(read(START, true), START), START);
    await journal.close();
    expect(told).toEqual([1, 2]);
  });
});
