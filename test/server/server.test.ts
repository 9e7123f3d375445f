import { gunzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { createExposition } from '../../src/metrics/page/exposition.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';
import { families, snapshot as sample, stats } from '../metrics/sample.ts';
import { ask, connectTo, start } from './asking.ts';

describe('/metrics', () => {
  it('is Prometheus text unless OpenMetrics is asked for', async () => {
    const { url } = await start();
    const plain = await ask(`${url}/metrics`);
    expect([plain.status, plain.headers['content-type']]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    expect(plain.body.toString()).toContain('device_temperature_celsius{device="toy-0",sensor="core"} 41.5\n');
    const open = await ask(`${url}/metrics`, {
      accept:
        'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2',
    });
    expect(open.headers['content-type']).toBe('application/openmetrics-text; version=1.0.0; charset=utf-8');
    expect(open.body.toString()).toMatch(/\n# EOF\n$/);
    expect(open.headers.vary).toContain('Accept');
  });

  it('is compressed for those who accept it, and says how long it is', async () => {
    const { url } = await start();
    const zipped = await ask(`${url}/metrics`, { 'accept-encoding': 'gzip' });
    expect(zipped.headers['content-encoding']).toBe('gzip');
    expect(Number(zipped.headers['content-length'])).toBe(zipped.body.length);
    expect(gunzipSync(zipped.body).toString()).toContain('# TYPE device_info gauge');
    const plain = await ask(`${url}/metrics`, { 'accept-encoding': 'gzip;q=0, identity' });
    expect(plain.headers['content-encoding']).toBeUndefined();
    expect(Number(plain.headers['content-length'])).toBe(plain.body.length);
  });

  it('lies where it is configured to lie, whatever characters the path has', async () => {
    const { url } = await start({ options: { 'telemetry-path': '/a:b/(metrics)' } });
    expect((await ask(`${url}/a:b/(metrics)`)).body.toString()).toContain('device_info');
    expect((await ask(`${url}/metrics`)).status).toBe(404);
  });

  it('answers before the first snapshot with the agent alone', async () => {
    const { url } = await start({ snapshot: () => undefined });
    const page = await ask(`${url}/metrics`);
    expect(page.status).toBe(200);
    expect(page.body.toString()).toContain('device_agent_build_info');
  });

  it('gives 30 scrapers at once the same page each', async () => {
    const exposition = createExposition({ families, snapshot: () => sample, agent: () => stats, clock: new ManualClock() });
    const { url } = await start({ parts: { exposition } });
    const answers = await Promise.all(
      Array.from({ length: 30 }, (_, at) =>
        ask(`${url}/metrics`, { 'accept-encoding': 'gzip' }, 'GET', { localAddress: `127.0.0.${1 + (at % 2)}` }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual(Array(30).fill(200));
    expect(new Set(answers.map(({ body }) => gunzipSync(body).toString())).size).toBe(1);
    expect(answers[0]?.headers.vary).toBe('Accept, Accept-Encoding');
  });

  it('has the same bytes after the wire, compressed or not', async () => {
    const { url } = await start();
    const zipped = await ask(`${url}/metrics`, { 'accept-encoding': 'gzip' });
    const plain = await ask(`${url}/metrics`, { 'accept-encoding': 'identity' });
    expect(gunzipSync(zipped.body).toString()).toBe(plain.body.toString());
  });

  it('sends HEAD the headers alone', async () => {
    const { url } = await start();
    const head = await ask(`${url}/metrics`, {}, 'HEAD');
    expect([head.status, head.body.length]).toEqual([200, 0]);
    expect(Number(head.headers['content-length'])).toBeGreaterThan(1_000);
  });
});

describe('readiness', () => {
  it('comes with the first snapshot, liveness before it', async () => {
    let now: Snapshot | undefined;
    const { url } = await start({ snapshot: () => now });
    const statuses = async (): Promise<number[]> =>
      Promise.all(
        ['/healthz', '/-/healthy', '/readyz', '/-/ready', '/api/v1/devices', '/'].map(async (path) => (await ask(url + path)).status),
      );
    expect(await statuses()).toEqual([200, 200, 503, 503, 503, 200]);
    now = sample;
    expect(await statuses()).toEqual([200, 200, 200, 200, 200, 200]);
  });

  it('of devices comes with the first snapshot too, and not from an agent that stands still', async () => {
    let now: Snapshot | undefined;
    let fault: string | undefined;
    const { url } = await start({ snapshot: () => now, parts: { fault: () => fault } });
    const answer = async (): Promise<string> => (await ask(`${url}/-/ready/devices`)).body.toString();
    expect(await answer()).toBe('The first snapshot is not ready yet.\n');
    now = { ...sample, devices: [], families: [] };
    expect(await answer()).toBe('no device was found\n');
    fault = 'There was no new snapshot for 61 s.';
    expect(await answer()).toBe('The agent does not do its work; see /healthz.\n');
    expect((await ask(`${url}/-/ready/devices`, {}, 'HEAD')).status).toBe(503);
  });

  it('of devices is told while all answers are taken, because a refusal would look like a fault', async () => {
    const exposition = { page: () => new Promise<never>(() => undefined), contentTypes: { text: 'text/plain', openmetrics: '' } };
    const { url } = await start({ parts: { exposition }, options: { 'max-requests': 1 } });
    connectTo(url, 'GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n');
    await expect.poll(async () => (await ask(`${url}/api/v1/devices`)).status).toBe(503);
    expect((await ask(`${url}/-/ready/devices?family=nosuch`)).status).toBe(400);
  });
});

describe('errors', () => {
  it('are JSON for the API and a line of text elsewhere', async () => {
    const { url } = await start();
    const api = await ask(`${url}/api/v1/nothing`);
    expect([api.status, JSON.parse(api.body.toString())]).toEqual([
      404,
      { error: { code: 'not-found', message: 'There is nothing at /api/v1/nothing.' } },
    ]);
    const other = await ask(`${url}/favicon.ico`);
    expect([other.status, other.body.toString()]).toEqual([404, 'There is nothing at /favicon.ico.\n']);
    expect((await ask(`${url}/api/v1/devices/toy/none`)).status).toBe(404);
    expect((await ask(`${url}/devices/toy/none`)).status).toBe(404);
  });

  it('tell which methods are allowed', async () => {
    const { url } = await start();
    const post = await ask(`${url}/metrics`, {}, 'POST');
    expect([post.status, post.headers.allow]).toEqual([405, 'GET, HEAD']);
    expect((await ask(`${url}/api/v1/devices`, {}, 'DELETE')).status).toBe(405);
  });

  it('of a path that cannot be decoded are the client’s fault', async () => {
    const { url, log } = await start();
    const answer = await ask(`${url}/devices/toy/%E0%A4%A`);
    expect([answer.status, log]).toEqual([400, []]);
  });

  it('of ours are logged, and told without details', async () => {
    const failing = {
      page: () => Promise.reject(new Error('secret detail')),
      contentTypes: { text: 'text/plain', openmetrics: '' },
    };
    const { url, log } = await start({ parts: { exposition: failing } });
    const answer = await ask(`${url}/metrics`);
    expect(answer.status).toBe(500);
    expect(answer.body.toString()).not.toMatch(/secret|at .*\.ts/);
    expect(log.join('')).toContain('secret detail');
    expect((await ask(`${url}/healthz`)).status).toBe(200);
  });

  it('and pages carry no header that names the program or an entity tag', async () => {
    const { url } = await start();
    for (const path of ['/', '/metrics', '/api/v1/status', '/nothing']) {
      const { headers } = await ask(url + path);
      expect([headers['x-powered-by'], headers.etag, headers['x-content-type-options']]).toEqual([undefined, undefined, 'nosniff']);
    }
  });
});
