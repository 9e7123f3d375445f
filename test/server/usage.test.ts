import { afterEach, describe, expect, it } from 'vitest';
import type { UsageQuery } from '../../src/accounting/ledger/report.ts';
import { containerEntry, HOUR_MS, START_MS, usageReport } from '../accounting/ledger/sample.ts';
import { type Started, start } from './start.ts';

let started: Started;
let asked: UsageQuery[];
afterEach(() => started.server.close());

const entries = [containerEntry(4, { receivedBytes: 2n ** 70n, idleSeconds: 60 })];

async function serve(): Promise<void> {
  asked = [];
  started = await start({
    parts: {
      usage: async (query) => {
        asked.push(query);
        const untilMs = START_MS + 4 * HOUR_MS;
        return {
          ...usageReport(entries, {
            sinceMs: untilMs - query.since,
            untilMs,
            by: query.by,
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
      /ml\/<\/span><a href="\/pods\/ml\/train-0">train-0<\/a><\/th><td class="num" data-label="Device time">4 h( 0 min)?<.*data-label="Idle">\d+ %/,
    );
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
});
