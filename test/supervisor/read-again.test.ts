import { expect, it } from 'vitest';
import { knownDevices } from '../../src/agent/known-devices.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import { Readings } from '../../src/model/readings.ts';
import { FamilyRunner, type TimedCollection } from '../../src/supervisor/family-runner.ts';
import type { Collect, ReaderListener } from '../../src/supervisor/messages.ts';
import { CollectionSender, type PostedReads } from '../../src/supervisor/posted-collection.ts';
import { ReaderPool } from '../../src/supervisor/reader-pool.ts';
import { VirtualClock } from '../oracle/virtual-clock.ts';
import { type Answer, scriptedReaders } from '../support/scripted-reader.ts';
import { device, familyState, listed } from '../support/snapshots.ts';

const of = (id: string, value: number): DeviceReport<Readings> => {
  return { device: device({ id }), read: { findings: [], readings: Readings.of([{ metric: 'm', value }]) } };
};

/** A runner whose thread answers when the test says so. */
function started() {
  const clock = new VirtualClock();
  const asked: Collect[] = [];
  let answerAll: Answer = () => {};
  let listener: ReaderListener | undefined;
  const sender = new CollectionSender();
  const readers = new ReaderPool(
    clock,
    scriptedReaders((request, answer, given) => {
      asked.push(request);
      answerAll = answer;
      listener = given;
    }),
  );
  const runner = new FamilyRunner(
    { family: 'toy', options: {}, roots: { sysfs: '/none', procfs: '/none', dev: '/none' }, timeoutMs: 10_000 },
    { clock, readers, events: { changed: () => {}, wake: () => {}, crashed: () => {} } },
  );
  const pass = (ms: number): Promise<void> => clock.advance(ms, () => Promise.resolve());
  const answer = async (reports: readonly DeviceReport<Readings>[], ids?: readonly string[]): Promise<void> => {
    const run = (asked.at(-1) as Collect).run;
    if (ids === undefined) {
      sender.encode({ ...listed([]), reports });
      answerAll({ ...listed([]), reports });
    } else {
      const reads = sender.encodeReads(reports.filter(({ device: { id } }) => ids.includes(id)));
      listener?.received({ kind: 'partial', run, reads: reads as PostedReads });
    }
    await pass(0);
  };
  return { runner, asked, answer, pass };
}

it('reads devices alone, and leaves the others with the time of their read', async () => {
  const { runner, asked, answer, pass } = started();
  void runner.refresh();
  const b = of('b', 2);
  await answer([of('a', 1), b]);
  await pass(500);
  const done = runner.refresh(new Set(['a']));
  expect(asked.map(({ ids }) => ids && [...ids])).toEqual([undefined, ['a']]);
  await pass(10);
  await answer([of('a', 7), b], ['a']);
  await done;
  const latest = runner.latest() as TimedCollection;
  const known = knownDevices(new Map(), [{ state: familyState('toy'), latest }], 0, { nowMs: 600, monotonicMs: 600 });
  const reads = [...known.values()].map(({ read }) => [read?.readings.values[0], read?.startedMs, read?.monotonicMs]);
  expect(reads).toEqual([
    [7, 500, 510],
    [2, 0, 0],
  ]);
  void runner.refresh();
  await answer([of('a', 8), b]);
  expect(runner.latest()?.again, 'a read of all is later').toBeUndefined();
});

it('begins a read of all after one of some', async () => {
  const { runner, asked, answer } = started();
  void runner.refresh();
  const all = [of('a', 1), of('b', 2)];
  await answer(all);
  const some = runner.refresh(new Set(['a']));
  const whole = runner.refresh();
  expect(asked).toHaveLength(2);
  await answer(all, ['a']);
  await some;
  expect(asked[2]).toMatchObject({ ids: undefined });
  await answer(all);
  await whole;
});

it('reads all when nothing was read yet', () => {
  const { runner, asked } = started();
  void runner.refresh(new Set(['a']));
  expect(asked).toMatchObject([{ ids: undefined }]);
});
