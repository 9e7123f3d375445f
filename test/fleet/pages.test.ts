import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { afterEach, describe, expect, it } from 'vitest';
import type { Fleet } from '../../src/fleet/fleet.ts';
import { fleetPages } from '../../src/fleet/pages/router.ts';
import type { FleetSources } from '../../src/fleet/pages/sources.ts';
import { fleetOf as readingOf } from '../../src/fleet/reading.ts';
import { AT, fleetOf, NOW_MS, nodeOf, sourcesOf } from './told-fleet.ts';

const servers: Server[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((one) => new Promise((done) => one.close(done))));
});

async function ask(
  fleet: Fleet | undefined,
  path: string,
  more: Partial<FleetSources> = {},
): Promise<{ status: number; text: string; policy: string | null }> {
  const server = createServer(express().use(fleetPages(sourcesOf(fleet, more))));
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, {
    headers: { accept: 'text/html', connection: 'close' },
  });
  return { status: answer.status, text: await answer.text(), policy: answer.headers.get('content-security-policy') };
}

/** The text that a person reads. */
const plain = (text: string): string => text.replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ');
const HOSTILE = `<img src=x onerror=alert(1)>"'/&`;

describe('page of a fleet', () => {
  it('says first what needs hands, who is hit, what faults share, what is free and who wastes', async () => {
    const { status, text, policy } = await ask(fleetOf(20), '/');
    expect(status).toBe(200);
    expect(policy).toContain("default-src 'none'");
    const read = plain(text);
    for (const told of [
      '2 of 20 nodes need hands: gpu-node-0 has a lost GPU, training/llm-0 is hit',
      '9 devices on 7 nodes',
      '7 of 9 are driver 580.105',
      'Does not answer heard 19 min ago',
      'H100 SXM nvidia gpu 160 120 22 2 16 3',
      'training 80 900.4 h 310.2 h 775.50 EUR',
      'clock 1.2 GHz, its twins 1.98 GHz',
    ])
      expect(read).toContain(told);
    expect(read).toMatch(/data of 12:00:00 , 15 s old/);
    expect(text).toContain('class="say unhealthy"');
  });

  it('writes unknown where a value is absent, and never 0', async () => {
    const { text } = await ask(fleetOf(20), '/');
    expect(plain(text)).toContain('research 4 unknown unknown unknown');
    const one = { ...fleetOf(1), nodes: [(({ held: _held, utilizationRatio: _use, ...rest }) => rest)(nodeOf('a', 'healthy'))] };
    const map = plain((await ask(one, '/')).text);
    expect(map).toContain('use not known');
    expect(map).toContain('holders not known');
  });

  it.each(['silent', 'old', 'unknown'] as const)('never shows a node as well that is %s', async (state) => {
    const { text } = await ask({ ...fleetOf(1), nodes: [nodeOf('a', state)], faults: [] }, '/');
    expect(text).toContain('class="say unknown"');
    expect(text).toContain('class="tile unknown');
    const page = (await ask({ ...fleetOf(1), nodes: [nodeOf('a', state)] }, '/nodes/a')).text;
    expect(page).toContain('class="say unknown"');
    expect(page).not.toContain('class="s healthy"');
    expect(plain(page)).toContain('Not known last healthy');
  });

  it('shows first what was not read, and then is not well', async () => {
    const well: Fleet = { ...fleetOf(1), nodes: [nodeOf('a', 'healthy')], faults: [] };
    expect((await ask(well, '/')).text).toContain('class="say healthy"');
    const problems = [{ question: 'health of devices', message: '503 Service Unavailable' }];
    for (const path of ['/', '/nodes/a', '/pods/training/llm-0', '/namespaces/training']) {
      const { text } = await ask({ ...well, problems }, path);
      expect(text.indexOf('Not everything was read')).toBeLessThan(text.indexOf('<h1'));
      expect(plain(text)).toContain('health of devices 503 Service Unavailable');
    }
    expect((await ask({ ...well, problems }, '/')).text).toContain('class="say unknown"');
  });

  it('says that old data is old, and a time that is none is old', async () => {
    const well: Fleet = { ...fleetOf(1), nodes: [nodeOf('a', 'healthy')], faults: [] };
    const { text } = await ask(well, '/', { now: () => NOW_MS + 600_000 });
    expect(text).toContain('<h1>Last known: ');
    expect(text).toContain('class="say unknown"');
    expect(text).toContain('id="live" data-state="lost"');
    expect(plain(text)).toContain('10 min old: the fleet can be in another state now.');
  });

  it('says that nothing is known before the first answer, and names no node that is not there', async () => {
    expect(await ask(undefined, '/')).toMatchObject({ status: 503, text: expect.stringContaining('Nothing is known of the fleet') });
    expect(await ask(fleetOf(3), '/nodes/none')).toMatchObject({
      status: 404,
      text: expect.stringContaining('Prometheus knows no such node.'),
    });
    expect((await ask(fleetOf(3), '/nodes/gpu-node-0?span=9y')).status).toBe(400);
    expect((await ask(fleetOf(3), '/?nonsense=1')).status).toBe(400);
    const { text } = await ask({ ...fleetOf(0), nodes: [], faults: [] }, '/');
    expect(text).toContain('class="say unknown"');
    expect(text).toContain('Prometheus knows no node with an agent.');
  });

  it('filters the map and the rows, and keeps the sentence of the whole fleet', async () => {
    const { text } = await ask(fleetOf(20), '/?text=state%3Asilent');
    expect(plain(text)).toContain('1 of 20 nodes.');
    expect(plain(text)).toContain('2 of 20 nodes need hands');
    expect(text).toContain('value="state:silent"');
    expect(text.match(/class="tile /g)).toHaveLength(1);
  });

  it("shows a node's devices, faults and curves with their gaps, and leads to its own page and board", async () => {
    const answers = {
      heard: { rows: [{ labels: { node: 'a' }, value: 1_000 }], warnings: [] },
      pages: { rows: [{ labels: { node: 'a', url: 'https://a.example' }, value: 1 }], warnings: [] },
    };
    expect(readingOf(answers, 1_000, []).nodes).toMatchObject([{ name: 'a', pageUrl: 'https://a.example' }]);
    const node = nodeOf('gpu-node-0', 'unhealthy', { pageUrl: 'https://gpu-node-0.example/', cluster: 'eu' });
    const boardUrl = (): string => 'https://board.example/d/node';
    const { text } = await ask({ ...fleetOf(3), nodes: [node] }, '/nodes/gpu-node-0?cluster=eu&span=6h', { boardUrl });
    const read = plain(text);
    expect(read).toContain('Unhealthy: GPU 0 has GpuLost, training / llm-0 is hit, and 1 more');
    expect(read).toContain('Drain and reboot the node.');
    expect(text).toContain('href="https://gpu-node-0.example/"');
    expect(text).toContain('href="https://board.example/d/node"');
    expect(text).toContain('href="/nodes/gpu-node-0?cluster=eu&amp;span=7d"');
    expect(text).toContain(`data-until="${Date.parse(AT)}" data-metric="device_utilization_ratio"`);
    expect(/aria-label="Busy[^>]*>.*?<path class="line-0" d="([^"]*)"/s.exec(text)?.[1]?.match(/M/g)).toHaveLength(2);
    expect(read).toContain('GPU 7 H100 SXM nvidia/GPU-7 not known');
    expect(read).toContain('GPU 6 H100 SXM nvidia/GPU-6 free');
  });

  it('makes no link of an address that is none of the web', async () => {
    const node = nodeOf('a', 'healthy', { pageUrl: 'javascript:alert(1)' });
    expect((await ask({ ...fleetOf(1), nodes: [node] }, '/nodes/a')).text).not.toContain('javascript:');
  });

  it('shows what a pod holds and held, busy and idle, and what hit it', async () => {
    const { text } = await ask(fleetOf(20), '/pods/training/llm-0');
    const read = plain(text);
    for (const told of ['1 device', 'on 1 node', '13.5 h', '10.5 h', '2 faults', 'What hit it', 'Held in the last day'])
      expect(read).toContain(told);
    expect(plain((await ask(fleetOf(20), '/namespaces/training')).text)).toContain('training / llm-0');
    const half = { held: async () => ({ held: [], problems: [{ question: 'holders', message: 'timeout' }] }) };
    expect(plain((await ask({ ...fleetOf(1), nodes: [] }, '/pods/a/b', half)).text).match(/Not known/g)).toHaveLength(4);
  });

  it('escapes names that others chose', async () => {
    const node = nodeOf(HOSTILE, 'unhealthy', { group: HOSTILE, models: [HOSTILE], cluster: HOSTILE });
    const faults = node.faults.map((one) => ({
      ...one,
      name: HOSTILE,
      condition: HOSTILE,
      reason: HOSTILE,
      hit: [`${HOSTILE}/${HOSTILE}`],
    }));
    const base = fleetOf(1);
    const hostile: Fleet = {
      ...base,
      nodes: [{ ...node, faults }],
      faults: base.faults.map((one) => ({
        ...one,
        condition: HOSTILE,
        nodes: [HOSTILE],
        shared: [{ fact: 'driver', value: HOSTILE, devices: 1 }],
      })),
      capacity: base.capacity.map((one) => ({ ...one, model: HOSTILE })),
      namespaces: [{ namespace: HOSTILE }],
      problems: [{ question: HOSTILE, message: HOSTILE }],
    };
    const name = encodeURIComponent(HOSTILE);
    for (const path of ['/', `/?text=${name}`, `/nodes/${name}`, `/namespaces/${name}`, `/pods/${name}/${name}`]) {
      const { status, text } = await ask(hostile, path);
      expect(status, path).toBe(200);
      expect(text).not.toContain('<img');
      expect(text).toContain('&lt;img');
    }
  });

  it.each([
    ['well', 'healthy'],
    ['silent', 'silent'],
    ['faulty', 'unhealthy'],
  ] as const)('has ten thousand nodes with the longest usual names in less than 1 MB, all %s', async (_name, state) => {
    const nameOf = (at: number): string => `ip-10-200-${at}.us-west-2.compute.internal`;
    const nodes = Array.from({ length: 10_000 }, (_, at) =>
      nodeOf(nameOf(10_000 + at), state, { group: `zone-${at % 40}`, utilizationRatio: 0.5 }),
    );
    const { text } = await ask({ ...fleetOf(20), nodes }, '/');
    expect(text.match(/<i class=|<a class="[a-z0-9]*" href="\/nodes/g)).toHaveLength(10_000);
    expect(Buffer.byteLength(text)).toBeGreaterThan(300_000);
    expect(Buffer.byteLength(text)).toBeLessThan(1_000_000);
  });
});
