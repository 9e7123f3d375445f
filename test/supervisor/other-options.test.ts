import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import type { FamilyRunner } from '../../src/supervisor/family-runner.ts';
import type { StartReader } from '../../src/supervisor/messages.ts';
import type { ReaderPool } from '../../src/supervisor/reader-pool.ts';
import { buildWithFamilies, type OtherBuild } from '../support/other-families.ts';
import { TOYS } from './toy-family.ts';

let toys: OtherBuild;
beforeAll(() => {
  toys = buildWithFamilies({ fpga: 'test/supervisor/toy-family.ts' });
});
afterAll(() => rmSync(toys.root, { recursive: true, force: true }));

it('makes another probe for other options, also when a run is in progress, and keeps it for equal ones', async () => {
  const { FamilyRunner: Runner } = await toys.import<{ FamilyRunner: typeof FamilyRunner }>('supervisor/family-runner.js');
  const { ReaderPool: Pool } = await toys.import<{ ReaderPool: typeof ReaderPool }>('supervisor/reader-pool.js');
  const { startReader } = await toys.import<{ startReader: StartReader }>('supervisor/reader-process.js');
  const sysfs = mkdtempSync(join(toys.root, 'sys-'));
  mkdirSync(join(sysfs, TOYS, 'a'), { recursive: true });
  writeFileSync(join(sysfs, TOYS, 'a/state'), '7');
  const started: unknown[] = [];
  const readers = new Pool(systemClock, (listener) => {
    const reader = startReader(listener);
    const send = reader.send.bind(reader);
    reader.send = (request) => {
      if (request.run !== undefined && request.start !== undefined) started.push(request.start.options);
      send(request);
    };
    return reader;
  });
  const events = { changed() {}, wake() {}, crashed() {} };
  const settings = { family: 'fpga', options: { size: 1 }, roots: { sysfs, procfs: sysfs, dev: sysfs }, timeoutMs: 10_000 };
  const runner = new Runner(settings, { clock: systemClock, readers, events });
  onTestFinished(async () => {
    runner.close();
    await readers.close(1_000);
  });
  await runner.refresh();
  runner.configure({ options: { size: 1 }, timeoutMs: 9_000 });
  await runner.refresh();
  expect(started).toEqual([{ size: 1 }]);
  runner.configure({ options: { size: 2 }, timeoutMs: 9_000 });
  expect(started, 'only at the next run').toHaveLength(1);
  await runner.refresh();
  expect(started).toEqual([{ size: 1 }, { size: 2 }]);
  const running = runner.refresh();
  runner.configure({ options: { size: 3 }, timeoutMs: 9_000 });
  await running;
  await runner.refresh();
  expect(started).toEqual([{ size: 1 }, { size: 2 }, { size: 3 }]);
  expect(runner.state()).toMatchObject({ succeeded: true, failures: 0, abandoned: 0, problems: [] });
  expect(runner.latest()?.collection.reports).toHaveLength(1);
});
