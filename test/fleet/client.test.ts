import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { prometheusAt } from '../../src/fleet/prometheus.ts';
import { fleetServer } from '../../src/fleet/server.ts';
import { FleetWatch } from '../../src/fleet/watch.ts';
import { systemClock } from '../../src/host/clock.ts';
import { createLogger } from '../../src/log/logger.ts';

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.close();
    server.closeAllConnections();
  }
});

async function listening(server: Server): Promise<URL> {
  servers.push(server.listen(0, '127.0.0.1'));
  await once(server, 'listening');
  return new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
}
const served = (listener: RequestListener): Promise<URL> => listening(createServer(listener));
const answering =
  (status: number, body: string, headers: Readonly<Record<string, string>> = {}): RequestListener =>
  (_request, response) => {
    response.writeHead(status, headers).end(body);
  };
const vector = (result: readonly unknown[], more: object = {}): string =>
  JSON.stringify({ status: 'success', data: { resultType: 'vector', result }, ...more });

const BAD: readonly (readonly [what: string, listener: RequestListener, says: RegExp])[] = [
  ['a login page', answering(200, '<html>Please log in</html>'), /no JSON.*login page/],
  ['a redirect to a login', answering(302, '', { Location: 'https://sso.example/' }), /redirects \(status 302\)/],
  ['a wrong token', answering(401, 'no'), /does not accept the credentials \(status 401\)/],
  ['a wrong tenant', answering(403, 'no'), /no right to this \(status 403\)/],
  ['no API at this path', answering(404, 'not found'), /no query API/],
  ['a query that it cannot run', answering(422, JSON.stringify({ status: 'error', error: 'too many samples' })), /422: too many samples/],
  ['an aborted query', answering(503, JSON.stringify({ status: 'error', error: 'query timed out' })), /503: query timed out/],
  ['a success without data', answering(200, '{"status":"success"}'), /none of the query API/],
  ['another type', answering(200, JSON.stringify({ status: 'success', data: { resultType: 'matrix', result: [] } })), /no vector/],
  ['a sample that is no number', answering(200, vector([{ metric: {}, value: [1, 'x'] }])), /a sample is no number/],
  ['an empty sample', answering(200, vector([{ metric: {}, value: [1, ''] }])), /a sample is none/],
  ['labels that are numbers', answering(200, vector([{ metric: { node: 1 }, value: [1, '1'] }])), /no labels/],
  [
    'half an answer',
    (_request, response) => void response.writeHead(200, { 'Content-Length': '500' }).write('{', () => response.destroy()),
    /does not answer/,
  ],
  ['too much', answering(200, `"${'x'.repeat(2_000_000)}"`), /more than 1000000 bytes/],
];

describe('the client of Prometheus', () => {
  it.each(BAD)('believes nothing of %s', async (_what, listener, says) => {
    const client = prometheusAt({ url: await served(listener), mostBytes: 1_000_000 });
    await expect(client.query('up')).rejects.toThrow(says);
  });

  it('says that nobody answers there', async () => {
    const url = await served(answering(200, ''));
    const server = servers.pop();
    server?.close();
    await once(server as Server, 'close');
    await expect(prometheusAt({ url }).query('up')).rejects.toThrow(/does not answer: .*ECONNREFUSED/);
  });

  it('gives up on an answer that does not come', async () => {
    const client = prometheusAt({ url: await served(() => {}), patienceMs: 50 });
    await expect(client.query('up')).rejects.toThrow('it does not answer: not within 0.05 s');
  });

  it('passes warnings, counts a series once, and reads what is no finite number', async () => {
    const row = { metric: { node: 'n1' }, value: [1, '+Inf'] };
    const url = await served(
      answering(200, vector([row, row, { metric: { node: 'n2' }, value: [1, 'NaN'] }], { warnings: ['half'], infos: ['note'] })),
    );
    expect(await prometheusAt({ url }).query('up')).toEqual({
      rows: [
        { labels: { node: 'n1' }, value: Number.POSITIVE_INFINITY },
        { labels: { node: 'n2' }, value: Number.NaN },
      ],
      warnings: ['half', 'note'],
    });
  });

  it('asks below a path, with the tenant', async () => {
    const asked: unknown[] = [];
    const url = await served((request, response) => {
      asked.push([request.method, request.url, request.headers['x-scope-orgid'], request.headers['content-type']]);
      response.end(vector([]));
    });
    await prometheusAt({ url: new URL('prom/', url), tenant: 'team-a' }).query('up');
    expect(asked).toEqual([['POST', '/prom/api/v1/query', 'team-a', 'application/x-www-form-urlencoded']]);
  });
});

describe('the server of a fleet', () => {
  it('says why it knows nothing, and keeps the last fleet with its time when Prometheus goes away', async () => {
    let isAway = false;
    const prometheus = prometheusAt({
      url: await served((request, response) => {
        if (isAway) return void response.writeHead(503).end();
        let body = '';
        request.on('data', (part) => {
          body += part;
        });
        request.on('end', () => {
          const query = new URLSearchParams(body).get('query') ?? '';
          if (query === 'time()')
            return response.end(JSON.stringify({ status: 'success', data: { resultType: 'scalar', result: [1_000, '1000'] } }));
          return response.end(
            vector(/device_agent_(?:heard|snapshots)/.test(query) ? [{ metric: { node: 'gpu-1' }, value: [1_000, '990'] }] : []),
          );
        });
      }),
    });
    const logger = createLogger({ level: 'error', format: 'text' });
    const watch = new FleetWatch(prometheus, {}, { clock: systemClock, logger });
    const url = await listening(fleetServer({ prometheus, watch, version: '0', clock: systemClock, logger }));
    const page = async (path = ''): Promise<string> => (await fetch(new URL(path, url), { headers: { Accept: 'text/html' } })).text();
    expect(await page()).toContain('Nothing is known of the fleet. Prometheus: it has not answered yet.');
    await watch.start();
    watch.stop();
    expect(await page()).toContain('The only node is well');
    isAway = true;
    await watch.start();
    watch.stop();
    const text = await page();
    expect(text).toContain('Last known: No fault is known of 1 node, but not everything was read');
    expect(text).toContain('it is not ready, or aborted the query (status 503)');
    expect((await fetch(url, { method: 'POST' })).status).toBe(405);
    expect((await fetch(new URL('healthz', url))).status).toBe(200);
    expect(await (await fetch(new URL('api/v1/fleet', url))).json()).toMatchObject({
      at: '1970-01-01T00:16:40.000Z',
      nodes: [{ name: 'gpu-1', state: 'healthy' }],
    });
  });
});
