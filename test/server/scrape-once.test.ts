import { get } from 'node:http';
import { afterEach, describe, expect, it } from 'vitest';
import type { Clock } from '../../src/host/clock.ts';
import { createExposition } from '../../src/metrics/exposition.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import type { WebOptions } from '../../src/server/options.ts';
import { families, snapshot as sample, stats } from '../metrics/sample.ts';
import { compressors } from './compressors.ts';
import { type Started, start } from './start.ts';

const running: Started[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ server }) => server.close()));
});

/** The answer's bytes as they come, base64: nothing is decompressed here. */
function ask(url: string, headers: Record<string, string>): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, { headers, agent: false }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('end', () => resolve(Buffer.concat(chunks).toString('base64')));
    }).on('error', reject);
  });
}

/** The whole way from snapshot to wire, with the test's time. */
const startMovable = async (options: Partial<WebOptions> = {}) => {
  const world = { nowMs: 0, snapshot: sample as Snapshot, gate: Promise.resolve() };
  const timers = new Set<() => void>();
  const looks = new Set<() => void>();
  const clock: Clock = {
    now: () => world.nowMs,
    monotonic: () => world.nowMs,
    after(delayMs, run) {
      if (delayMs < 1_000) timers.add(run);
      return () => timers.delete(run);
    },
  };
  const asked: { readonly format: string; readonly kept: readonly Buffer[]; readonly live?: Buffer }[] = [];
  const real = createExposition({ families, snapshot: () => world.snapshot, agent: () => stats, clock });
  const exposition = {
    contentTypes: real.contentTypes,
    kept: (format: 'text' | 'openmetrics') => {
      const kept = real.kept(format);
      asked.push({ format, kept });
      return kept;
    },
    page: async (format: 'text' | 'openmetrics') => {
      const page = await real.page(format);
      asked.push({ format, ...page });
      await world.gate;
      return page;
    },
  };
  const store = { snapshot: () => world.snapshot, subscribe: (look: () => void) => looks.add(look) && (() => looks.delete(look)) };
  const started = await start({ parts: { exposition, store, clock }, options });
  running.push(started);
  /** Takes another snapshot at that time, and lets what is prepared for it be done. */
  const takeSnapshot = async (atMs: number): Promise<void> => {
    Object.assign(world, { nowMs: atMs, snapshot: { ...sample, devices: sample.devices.map((one) => ({ ...one, readAtMs: atMs })) } });
    for (const look of looks) look();
    world.nowMs = atMs + 200;
    const due = [...timers];
    timers.clear();
    for (const run of due) run();
    await new Promise((resolve) => setTimeout(resolve, 50));
  };
  const scrapeAt = (atMs: number, encoding: string, accept = '*/*'): Promise<string> => {
    world.nowMs = atMs;
    return ask(`${started.url}/metrics`, { 'accept-encoding': encoding, accept });
  };
  return { world, asked, takeSnapshot, scrapeAt };
};

describe('what is done for scrapes', () => {
  const openMetrics = 'application/openmetrics-text;version=1.0.0';

  it('is done once for 50 that come together: one page, compressed once', async () => {
    const { asked, scrapeAt } = await startMovable();
    let pages: string[] = [];
    const count = await compressors(async () => {
      pages = await Promise.all(Array.from({ length: 50 }, () => scrapeAt(0, 'gzip')));
    });
    expect([new Set(pages).size, asked.length]).toEqual([1, 50]);
    expect([new Set(asked.map(({ kept }) => kept)).size, new Set(asked.map(({ live }) => live)).size]).toEqual([1, 1]);
    // One for the part of the snapshot, one for the end of the page.
    expect(count).toBe(2);
  });

  it('is done per format, not per turn', async () => {
    const { asked, scrapeAt } = await startMovable();
    for (const accept of ['*/*', openMetrics, '*/*', openMetrics]) await scrapeAt(0, 'gzip', accept);
    expect(asked.map(({ format }) => format)).toEqual(['text', 'openmetrics', 'text', 'openmetrics']);
    expect(new Set(asked.map(({ kept }) => kept)).size).toBe(2);
    expect(await compressors(() => scrapeAt(0, 'gzip', openMetrics))).toBe(0);
  });

  it.each([
    { encoding: 'gzip', before: 1, atScrape: 1 },
    { encoding: 'identity', before: 0, atScrape: 0 },
  ])('is done beforehand where the last one wanted $encoding', async ({ encoding, before, atScrape }) => {
    const { asked, takeSnapshot, scrapeAt } = await startMovable();
    await takeSnapshot(0);
    await scrapeAt(5_000, encoding, openMetrics);
    await takeSnapshot(10_000);
    await scrapeAt(15_000, encoding, openMetrics);
    asked.length = 0;
    expect(await compressors(() => takeSnapshot(20_000))).toBe(before);
    expect(asked.map(({ format }) => format)).toEqual(['openmetrics']);
    expect(asked[0], 'what is of the moment is not written for later').not.toHaveProperty('live');
    // Only the end of the page, which is of the moment, is left to do.
    expect(await compressors(() => scrapeAt(25_000, encoding, openMetrics))).toBe(atScrape);
    expect(asked[1]?.kept).toBe(asked[0]?.kept);
  });

  it('is done beforehand though some of those that came together had to wait for others', async () => {
    const { world, asked, takeSnapshot, scrapeAt } = await startMovable({ 'max-requests': 1 });
    await takeSnapshot(0);
    for (const at of [5_000, 15_000]) {
      let open = (): void => {};
      world.gate = new Promise((resolve) => {
        open = resolve;
      });
      asked.length = 0;
      const both = [scrapeAt(at, 'gzip'), scrapeAt(at, 'gzip')];
      await expect.poll(() => asked.length).toBe(1);
      world.nowMs = at + 1_000;
      open();
      await Promise.all(both);
      await takeSnapshot(at + 5_000);
    }
    // Both scrapes, and what was prepared for the next.
    expect(asked.length).toBe(3);
  });
});
