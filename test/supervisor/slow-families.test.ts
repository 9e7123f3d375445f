import { expect, it } from 'vitest';
import { FamilyRunner } from '../../src/supervisor/family-runner.ts';
import { ReaderPool } from '../../src/supervisor/reader-pool.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';
import { scriptedReaders } from '../support/scripted-reader.ts';
import { listed } from '../support/snapshots.ts';

const roots = { sysfs: '/', procfs: '/', dev: '/' };

it('a family with a library that takes long delays no other from then on, and one of files stays with the others', async () => {
  const clock = new ManualClock();
  const took = new Map<string, number>();
  /** Families that each reader has read. */
  const readers: Set<string>[] = [];
  const start = scriptedReaders(({ family }, answer) => answer(listed([]), took.get(family)));
  const pool = new ReaderPool(clock, (listener) => {
    const families = new Set<string>();
    readers.push(families);
    const reader = start(listener);
    const send: typeof reader.send = (message) => {
      if (message.run !== undefined) families.add(message.family);
      reader.send(message);
    };
    return new Proxy(reader, { get: (of, name) => (name === 'send' ? send : Reflect.get(of, name)) });
  });
  const runners = ['files', 'library', 'other'].map(
    (family) =>
      new FamilyRunner(
        { family, options: {}, roots, timeoutMs: 10_000, canBeSlow: family === 'library' },
        { clock, readers: pool, events: { changed() {}, wake() {}, crashed() {} } },
      ),
  );
  const refresh = (): Promise<unknown> => Promise.all(runners.map((runner) => runner.refresh()));
  await refresh();
  expect(readers.map((families) => [...families])).toEqual([['files', 'library', 'other']]);
  for (const family of ['files', 'library']) took.set(family, 1_501);
  await refresh();
  expect(readers, 'it was not slow before').toHaveLength(1);
  for (const family of ['files', 'library']) took.delete(family);
  readers[0]?.clear();
  await refresh();
  await refresh();
  expect(readers.map((families) => [...families])).toEqual([['files', 'other'], ['library']]);
});
