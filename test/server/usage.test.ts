import { afterEach, describe, expect, it } from 'vitest';
import type { UsageQuery } from '../../src/accounting/query.ts';
import type { Prices } from '../../src/accounting/report.ts';
import type { ServerDependencies } from '../../src/server/parts.ts';
import { containerEntry, HOUR_MS, START_MS, usageReport } from '../accounting/sample.ts';
import { families } from '../metrics/sample.ts';
import { type Started, start } from './start.ts';

let started: Started;
let asked: UsageQuery[];
afterEach(() => started.server.close());

const entries = [containerEntry(4, { receivedBytes: 2n ** 70n, idleSeconds: 60 })];

type ServerFamily = ServerDependencies['families'][number];

async function serve(declared: readonly ServerFamily[] = families, prices: Prices = {}): Promise<void> {
  asked = [];
  started = await start({
    parts: {
      families: declared,
      usage: async (query) => {
        asked.push(query);
        const untilMs = START_MS + 4 * HOUR_MS;
        return {
          ...usageReport(entries, {
            sinceMs: untilMs - query.since,
            untilMs,
            by: query.by,
            prices,
            ...(query.family !== undefined && { family: query.family }),
          }),
          ledger: { damagedLines: 0, newerFiles: 0 },
        };
      },
    },
  });
}

async function get(path: string): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(started.url + path);
  return { status: answer.status, body: await answer.json() };
}

describe('/api/usage', () => {
  it('gives the report in base units, with times as text', async () => {
    await serve();
    expect(await get('/api/usage?since=2h&by=pod')).toMatchObject({
      status: 200,
      body: {
        since: '2026-11-23T14:00:00.000Z',
        until: '2026-11-23T16:00:00.000Z',
        by: 'pod',
        rows: [
          {
            name: 'ml/train-0',
            containers: 1,
            allocatedSeconds: 7_200,
            idleSeconds: 30,
            busySeconds: {},
            receivedBytes: String(2n ** 69n),
          },
        ],
        total: { name: 'total', allocatedSeconds: 7_200 },
        leftOut: 0,
        ledger: { damagedLines: 0, newerFiles: 0 },
      },
    });
    await get('/api/usage?by=label:app.kubernetes.io%2Fname');
    expect(asked).toEqual([
      { since: 7_200_000, by: 'pod' },
      { since: 86_400_000, by: 'label:app.kubernetes.io/name' },
    ]);
  });

  it.each([
    ['since=x', 'usage-query-invalid'],
    ['since=0', 'usage-query-invalid'],
    ['since=1h&since=2h', 'usage-query-invalid'],
    ['by=node', 'usage-query-invalid'],
    ['family=a/b', 'usage-query-invalid'],
    ['by=label:', 'usage-query-invalid'],
    ['until=1h', 'parameter-unknown'],
  ])('refuses %s', async (query, code) => {
    await serve();
    expect(await get(`/api/usage?${query}`)).toMatchObject({ status: 400, body: { error: { code } } });
    expect(asked).toEqual([]);
  });

  it('is not there without accounts', async () => {
    started = await start();
    expect((await get('/api/usage')).status).toBe(404);
  });
});

describe('/usage', () => {
  it('shows who used most, by pod in the last day unless asked otherwise', async () => {
    await serve();
    const page = await (await fetch(`${started.url}/usage`)).text();
    expect(page).toMatch(
      /ml\/<\/span><a href="\/pods\/ml\/train-0">train-0<\/a><\/th><td class="num" data-label="Device time">4 h( 0 min)?<.*aria-label="100 % busy, 0 % idle, 0 % not observed".*data-label="Idle">\d+ %/,
    );
    expect(page).toContain('<b>Nearly none of 4 device hours idle.</b>');
    expect(page).toContain('<a href="/api/usage?by=pod&amp;since=24h">JSON of this page</a>');
    expect((await fetch(`${started.url}/usage?by=namespace&since=2h`)).status).toBe(200);
    expect(await (await fetch(`${started.url}/usage?family=toy`)).text()).toContain(
      '<a href="/usage?by=namespace&amp;since=24h&amp;family=toy">Namespace</a>',
    );
    expect((await fetch(`${started.url}/usage?by=nothing`)).status).toBe(400);
    expect(asked).toEqual([
      { since: 86_400_000, by: 'pod' },
      { since: 7_200_000, by: 'namespace' },
      { since: 86_400_000, by: 'pod', family: 'toy' },
    ]);
  });

  it('begins with the accelerators, because hours of GPUs and of adapters are not alike; all devices are one link away', async () => {
    const engines = { utilization: { above: 0.05 }, isForHoldersOnly: true };
    const traffic = { traffic: { metrics: [], above: 1 }, isForHoldersOnly: false };
    const linkTo = (family: string, text: string): string =>
      `<a href="/usage?by=pod&amp;since=24h&amp;family=${family}" aria-current="true"><b>${text}`;
    await serve(families.map((family) => ({ ...family, activity: family.name === 'toy' ? engines : traffic })));
    const first = await (await fetch(`${started.url}/usage`)).text();
    expect(first).toContain(linkTo('toy', 'toy'));
    expect(first).toContain('<span class="rest">toy, last day</span>');
    expect(first).toContain('<a href="/usage?by=pod&amp;since=24h&amp;family=">All devices</a>');
    expect(first).toContain('<a href="/api/usage?by=pod&amp;since=24h&amp;family=toy">JSON of this page</a>');
    const all = await (await fetch(`${started.url}/usage?by=pod&since=24h&family=`)).text();
    expect(all).toContain(linkTo('', 'All devices'));
    expect(all).toContain('<a href="/api/usage?by=pod&amp;since=24h">JSON of this page</a>');
    await get('/api/usage?by=pod');
    expect(asked.map(({ family }) => family)).toEqual(['toy', undefined, undefined]);

    await started.server.close();
    await serve(families.map((family) => ({ ...family, activity: engines })));
    expect(await (await fetch(`${started.url}/usage`)).text(), 'two families of accelerators').toContain(linkTo('', 'All devices'));
  });

  it('says what is cost, where a device has a price, and names each choice', async () => {
    await serve(undefined, { toy: 2.5 });
    const page = await (await fetch(`${started.url}/usage`)).text();
    expect(page).toContain('<th scope="col" class="num">Cost</th>');
    expect(page).toContain('times the price of an hour in <code>usage.prices</code>, in the unit of these prices.');
    for (const label of ['By', 'Of', 'Time']) expect(page).toContain(`<p class="chips"><span class="soft">${label}</span> <a`);
    await started.server.close();
    await serve();
    expect(await (await fetch(`${started.url}/usage`)).text()).not.toMatch(/cost/i);
    expect(await (await fetch(`${started.url}/usage?family=wire`)).text()).toContain(
      'No container held a device of the family wire in this time.',
    );
  });
});
