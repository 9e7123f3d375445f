import { afterEach, expect, it } from 'vitest';
import type { ListedIncident } from '../../src/incidents/record.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { snapshot as sample, state } from '../metrics/sample.ts';
import { device } from '../support/snapshots.ts';
import { type Started, start } from './start.ts';

let started: Started | undefined;
afterEach(() => started?.server.close());

const now: Snapshot = { ...sample, devices: [state(device({ id: 'b', identity: 'serial' }))] };

const incident = (part: Partial<ListedIncident>): ListedIncident => ({
  ...{ id: 'one', time: '2026-03-01T11:00:00Z', device: 'toy/a', hardware: 'toy#serial' },
  ...{ states: ['healthy', 'unhealthy'], conditions: ['Dead'], holders: ['ml/train-0/main'] },
  ...part,
});

async function ask(path: string): Promise<string> {
  return await (await asked(path)).text();
}

async function asked(path: string): Promise<Response> {
  const list = [
    incident({ id: 'newest', device: 'toy/b', hardware: 'toy#another' }),
    incident({ id: 'renamed', device: 'toy/gone', hardware: 'toy#gone' }),
    incident({ id: 'two', time: '2026-03-01T11:30:00Z', device: 'toy/b', holders: ['ml/train-1/main'] }),
    incident({}),
    incident({ device: 'toy/b', hardware: 'toy#another' }),
  ];
  started = await start({ snapshot: () => now, parts: { incidents: { list: () => list, read: () => Promise.resolve(undefined) } } });
  return await fetch(started.url + path, { redirect: 'manual' });
}

it('has its kept incidents in numbers on its page, also those under another name and none of other hardware', async () => {
  expect(await ask('/devices/toy/b')).toContain('2 kept, 2 fatal; the same condition again 1 times, 1 of them with other holders');
});

it.each([
  ['the newest of its hardware, not of the name', 'b', '/incidents/two'],
  ['the newest under the name, where no device has it now', 'gone', '/incidents/renamed'],
])('leads from the device to its record: %s', async (_, id, record) => {
  const answer = await asked(`/incidents/latest?device=${id}`);
  expect([answer.status, answer.headers.get('location')]).toEqual([302, record]);
});

it('says that it knows no such device, where nothing has the name', async () => {
  expect((await asked('/incidents/latest?device=nothing')).status).toBe(404);
});
