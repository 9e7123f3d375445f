import { execFileSync } from 'node:child_process';
import { crc32, gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { endGzip, PageGzip } from '../../src/server/page-gzip.ts';
import { ScrapeForecast } from '../../src/server/scrape-forecast.ts';
import { compressors } from './compressors.ts';
import { type Started, start } from './start.ts';

const running: Started[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ server }) => server.close()));
});

describe('a compressed page in two parts', () => {
  const texts = ['', 'x', 'device_info{device="é"} 1\n'.repeat(50_000)].map((text) => Buffer.from(text));

  it.each(texts.flatMap((first) => texts.map((second) => [first.length, second.length, first, second] as const)))(
    'of %i and %i bytes is one gzip stream',
    async (_first, _second, first, second) => {
      const begun = await new PageGzip().start([first]);
      const whole = Buffer.concat([begun.bytes, endGzip(begun, second)]);
      const expected = Buffer.concat([first, second]);
      expect(gunzipSync(whole).equals(expected)).toBe(true);
      // The usual reader takes several streams for one; the trailer tells that there is only one.
      expect(whole.readUInt32LE(whole.length - 8)).toBe(crc32(expected));
      expect(whole.readUInt32LE(whole.length - 4)).toBe(expected.length);
      expect(execFileSync('gzip', ['-dc'], { input: whole, maxBuffer: 1e8 }).equals(expected)).toBe(true);
    },
  );

  it('can begin with pieces, of which those that were in a page before are not compressed again', async () => {
    const gzip = new PageGzip();
    const pieceOf = (letter: string): Buffer => Buffer.from(`device_info{device="${letter}"} 1\n`.repeat(9_000));
    const pages = ['abc', 'adc', 'c', '', 'eeab'].map((page) => [...page].map(pieceOf));
    const [still, changed] = [pieceOf('s'), pieceOf('t')];
    pages.push([still, changed], [still, pieceOf('u'), Buffer.alloc(0)], [changed, still]);
    for (const pieces of pages) {
      const begun = await gzip.start(pieces);
      const whole = Buffer.concat([begun.bytes, endGzip(begun, Buffer.from('end'))]);
      expect(gunzipSync(whole).toString()).toBe(`${Buffer.concat(pieces)}end`);
    }
    expect(await compressors(() => gzip.start([still, changed]))).toBe(0);
    expect(await compressors(() => gzip.start([changed, pieceOf('v'), still]))).toBe(1);
  });

  it('can have many ends put to one start', async () => {
    const begun = await new PageGzip().start([Buffer.from('kept ')]);
    for (const end of ['a', 'b', 'a longer end']) {
      expect(gunzipSync(Buffer.concat([begun.bytes, endGzip(begun, Buffer.from(end))])).toString()).toBe(`kept ${end}`);
    }
  });
});

describe('a page', () => {
  const scrape = async (url: string, gzip: boolean): Promise<Response> =>
    fetch(`${url}/metrics`, { headers: { 'accept-encoding': gzip ? 'gzip' : 'identity' } });

  it('is prepared for a scraper that comes about once per snapshot, in the form it took last', async () => {
    let at = 0;
    const asked: string[] = [];
    const timers: (() => void)[] = [];
    const looks = new Set<() => void>();
    const clock = {
      now: () => at,
      monotonic: () => at,
      after: (delayMs: number, run: () => void) => {
        if (delayMs < 1_000) timers.push(run);
        return () => undefined;
      },
    };
    const exposition = {
      kept: (format: string) => {
        asked.push(format);
        return [Buffer.alloc(5_000, 'k')];
      },
      page: async (format: string) => ({ kept: exposition.kept(format), live: Buffer.from('live\n') }),
      contentTypes: { text: 'text/plain', openmetrics: 'application/openmetrics-text' },
    };
    const store = { snapshot: () => undefined, subscribe: (look: () => void) => looks.add(look) && (() => looks.delete(look)) };
    const started = await start({ parts: { exposition, store, clock } });
    running.push(started);
    const snapshotAt = (ms: number): void => {
      at = ms;
      for (const look of looks) look();
      at = ms + 150;
      for (const run of timers.splice(0)) run();
    };

    snapshotAt(0);
    at = 5_000;
    await scrape(started.url, true);
    snapshotAt(10_000);
    expect(asked, 'one scrape says nothing of when the next one comes').toEqual(['text']);
    at = 15_000;
    const answer = await scrape(started.url, true);
    expect(await answer.text()).toBe(`${'k'.repeat(5_000)}live\n`);
    snapshotAt(20_000);
    expect(asked).toEqual(['text', 'text', 'text']);
    await started.server.close();
    expect(looks.size, 'a closed server listens no more').toBe(0);
  });

  it('has the same bytes after the wire, compressed or not', async () => {
    const started = await start();
    running.push(started);
    const kept = async (gzip: boolean): Promise<string | undefined> =>
      (await (await scrape(started.url, gzip)).text()).split('# HELP device_agent_')[0];
    expect(await kept(true)).toBe(await kept(false));
    expect((await scrape(started.url, true)).headers.get('vary')).toBe('Accept, Accept-Encoding');
  });
});

describe('the forecast of scrapes', () => {
  /** Snapshots and scrapes at their intervals; gives which snapshots were expected to be scraped. */
  const run = (snapshotEveryMs: number, scrapeEveryMs: number, untilMs: number, scrapesEndMs = untilMs): boolean[] => {
    const forecast = new ScrapeForecast();
    const expected: boolean[] = [];
    for (let at = 0; at < untilMs; at += 100) {
      if (at % scrapeEveryMs === 3_000 % scrapeEveryMs && at < scrapesEndMs) forecast.scraped(at);
      if (at % snapshotEveryMs !== 0) continue;
      forecast.snapshotTaken(at);
      expected.push(forecast.isExpected(at));
    }
    return expected;
  };

  it('expects each snapshot to be scraped where scrapes are more frequent', () => {
    expect(run(10_000, 5_000, 200_000).slice(3)).not.toContain(false);
  });

  it('expects few of the snapshots of an agent that reads often and is asked seldom', () => {
    const expected = run(1_000, 30_000, 600_000).slice(60);
    expect(expected.filter(Boolean).length / expected.length).toBeLessThan(0.1);
    expect(expected).toContain(true);
  });

  it('expects nothing any more of a scraper that stays away', () => {
    expect(run(10_000, 15_000, 600_000, 100_000).slice(-10)).not.toContain(true);
  });

  it('takes scrapers that come together for one', () => {
    const forecast = new ScrapeForecast();
    for (const at of [0, 10, 20, 60_000, 60_010, 60_020]) forecast.scraped(at);
    forecast.snapshotTaken(60_000);
    forecast.snapshotTaken(70_000);
    expect(forecast.isExpected(70_000)).toBe(false);
    forecast.snapshotTaken(115_000);
    expect(forecast.isExpected(115_000)).toBe(true);
  });
});
