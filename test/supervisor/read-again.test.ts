import { expect, it } from 'vitest';
import { knownDevices } from '../../src/agent/known-devices.ts';
import type { DeviceReport } from '../../src/model/collection.ts';
import { Readings } from '../../src/model/readings.ts';
import { FamilyRunner, type TimedCollection } from '../../src/supervisor/family-runner.ts';
import { IsolatedReads } from '../../src/supervisor/isolated-reads.ts';
import type { ToWorker } from '../../src/supervisor/messages.ts';
import type { ThreadListener } from '../../src/supervisor/probe-thread.ts';
import { VirtualClock } from '../oracle/virtual-clock.ts';
import { device, familyState, listed } from '../support/snapshots.ts';

type Collect = Extract<ToWorker, { readonly type: 'collect' }>;

const of = (id: string, value: number): DeviceReport<Readings> => {
  return { device: device({ id }), read: { findings: [], readings: Readings.of([{ metric: 'm', value }]) } };
};

/** A runner whose thread answers when the test says so. */
function started() {
  const clock = new VirtualClock();
  const asked: Collect[] = [];
  let listener: ThreadListener | undefined;
  const runner = new FamilyRunner(
    { family: 'toy', options: {}, roots: { sysfs: '/none', procfs: '/none', dev: '/none' }, timeoutMs: 10_000 },
    {
      clock,
      isolated: new IsolatedReads(clock),
      events: { changed: () => {}, wake: () => {}, crashed: () => {} },
      start: (_, __, given) => {
        listener = given;
        return {
          exited: new Promise(() => {}),
          hasExited: false,
          hasBegun: true,
          step: () => undefined,
          terminate: () => {},
          send: (message) => void (message.type === 'collect' && asked.push(message)),
        };
      },
    },
  );
  const pass = (ms: number): Promise<void> => clock.advance(ms, () => Promise.resolve());
  const answer = (reports: readonly DeviceReport<Readings>[], ids?: readonly string[]): void => {
    const run = (asked.at(-1) as Collect).run;
    if (ids === undefined) listener?.received({ type: 'collected', run, collection: { ...listed([]), reports }, durationMs: 1 });
    else listener?.received({ type: 'read-again', run, again: { reports, ids } });
  };
  return { runner, asked, answer, pass };
}

it('reads devices alone, and leaves the others with the time of their read', async () => {
  const { runner, asked, answer, pass } = started();
  void runner.refresh();
  const b = of('b', 2);
  answer([of('a', 1), b]);
  await pass(500);
  const done = runner.refresh(new Set(['a']));
  expect(asked.map(({ ids }) => ids && [...ids])).toEqual([undefined, ['a']]);
  await pass(10);
  answer([of('a', 7), b], ['a']);
  await done;
  const latest = runner.latest() as TimedCollection;
  const known = knownDevices(new Map(), [{ state: familyState('toy'), latest }], 0, { nowMs: 600, monotonicMs: 600 });
  const reads = [...known.values()].map(({ read }) => [read?.readings.values[0], read?.startedMs, read?.monotonicMs]);
  expect(reads).toEqual([
    [7, 500, 510],
    [2, 0, 0],
  ]);
  void runner.refresh();
  answer([of('a', 8), b]);
  expect(runner.latest()?.again, 'a read of all is later').toBeUndefined();
});

it('begins a read of all after one of some', async () => {
  const { runner, asked, answer } = started();
  void runner.refresh();
  const all = [of('a', 1), of('b', 2)];
  answer(all);
  const some = runner.refresh(new Set(['a']));
  const whole = runner.refresh();
  expect(asked).toHaveLength(2);
  answer(all, ['a']);
  await some;
  expect(asked[2]).toMatchObject({ ids: undefined });
  answer(all);
  await whole;
});

it('reads all when nothing was read yet', () => {
  const { runner, asked } = started();
  void runner.refresh(new Set(['a']));
  expect(asked).toMatchObject([{ ids: undefined }]);
});
