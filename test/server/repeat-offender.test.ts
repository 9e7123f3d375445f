import { afterEach, expect, it } from 'vitest';
import { boardOf } from '../../src/board/board.ts';
import type { DeviceView } from '../../src/board/device-view.ts';
import { deviceLines } from '../../src/cli/top/device-view.ts';
import type { ListedIncident } from '../../src/incidents/store.ts';
import type { Verdict } from '../../src/model/health.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { snapshot as sample, state, TAKEN_AT_MS } from '../metrics/sample.ts';
import { device } from '../support/snapshots.ts';
import { type Started, start } from './start.ts';

let started: Started | undefined;
afterEach(() => started?.server.close());

const returned = (probation: Partial<Verdict['probation']>): Snapshot => ({
  ...sample,
  devices: [
    state(device({ id: 'b', identity: 'serial' }), {
      verdict: {
        state: 'healthy',
        sinceMs: 1,
        conditions: [],
        probation: { condition: 'Dead', sinceMs: TAKEN_AT_MS, neededMs: 14_400_000, ...probation },
        incidents: [
          { state: 'unhealthy', condition: 'Dead', count: 3 },
          { state: 'unknown', count: 1 },
        ],
      },
    }),
  ],
});

const incident = (part: Partial<ListedIncident>): ListedIncident => ({
  ...{ id: 'one', time: '2026-03-01T11:00:00Z', device: 'toy/a', hardware: 'toy#serial' },
  ...{ states: ['healthy', 'unhealthy'], conditions: ['Dead'], holders: ['ml/train-0/main'] },
  ...part,
});

async function ask(now: Snapshot, path: string): Promise<string> {
  const list = [
    incident({ time: '2026-03-01T11:30:00Z', device: 'toy/b', holders: ['ml/train-1/main'] }),
    incident({}),
    incident({ device: 'toy/b', hardware: 'toy#another' }),
  ];
  started = await start({ snapshot: () => now, parts: { incidents: { list: () => list, read: () => Promise.resolve(undefined) } } });
  return await (await fetch(started.url + path)).text();
}

it('has its kept incidents in numbers on its page, also those under another name and none of other hardware', async () => {
  expect(await ask(returned({}), '/devices/toy/b')).toContain(
    '2 kept, 2 fatal; the same condition again 1 times, 1 of them with other holders',
  );
});

it('has counts and probation in the API and in the metrics', async () => {
  const now = returned({ busyMs: 3_600_000 });
  expect(JSON.parse(await ask(now, '/api/v1/devices/toy/b'))).toMatchObject({
    health: {
      probation: { condition: 'Dead', since: '2026-03-01T12:00:00.000Z', busySeconds: 3_600, neededSeconds: 14_400 },
      incidents: [
        { state: 'unhealthy', condition: 'Dead', count: 3 },
        { state: 'unknown', count: 1 },
      ],
    },
  });
  const metrics = await (await fetch(`${started?.url}/metrics`)).text();
  for (const line of [
    'device_incidents_total{device="b",condition="Dead",state="unhealthy"} 3',
    'device_incidents_total{device="b",state="unknown"} 1',
    'device_probation{device="b",condition="Dead"} 1',
    'device_probation_busy_seconds{device="b"} 3600',
  ])
    expect(metrics).toContain(`${line}\n`);
});

it('says on its page and in the terminal whether it worked, and that nothing tells it', async () => {
  for (const [busyMs, text] of [
    [3_600_000, 'On probation after Dead: it needs 4 h of work without a fault; it worked 1 h so far.'],
    [undefined, 'On probation after Dead: it needs 4 h of work without a fault; no read has shown whether it works.'],
  ] as const) {
    const now = returned(busyMs === undefined ? {} : { busyMs });
    expect(await ask(now, '/devices/toy/b')).toContain(text);
    await started?.server.close();
    const [row] = boardOf(now, { nowMs: TAKEN_AT_MS }).devices;
    const lines = deviceLines(row as DeviceView, undefined, 200, { nowMs: TAKEN_AT_MS } as Parameters<typeof deviceLines>[3]);
    expect(lines.map((spans) => spans.map((one) => one.text).join('')).join('\n')).toContain(text);
    expect(busyMs !== undefined || !(await ask(now, '/metrics')).includes('device_probation_busy_seconds{')).toBe(true);
  }
});
