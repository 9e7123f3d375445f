import { expect, it } from 'vitest';
import { boardOf } from '../../../src/board/board.ts';
import type { ListedIncident } from '../../../src/incidents/record.ts';
import type { HealthEvent } from '../../../src/model/events.ts';
import { hardwareKey } from '../../../src/model/hardware.ts';
import type { Verdict } from '../../../src/model/health.ts';
import { deviceIncidents, incidentsPage } from '../../../src/server/pages/incident-list.ts';
import { snapshot as sample, state, TAKEN_AT_MS } from '../../metrics/sample.ts';
import { allocation, device, podResources } from '../../support/snapshots.ts';

const nowMs = TAKEN_AT_MS;
const agoMs = (minutes: number): number => nowMs - minutes * 60_000;
const sick: Verdict = {
  state: 'unhealthy',
  sinceMs: agoMs(5),
  conditions: [
    {
      ...{ type: 'GpuLost', class: 'latched', severity: 'fatal', reason: 'Gone', message: 'gone' },
      ...{ remedy: 'reboot', sinceMs: agoMs(5) },
    },
  ],
};
const devices = [
  state(device({ id: 'a', model: 'Toy 9' }), { verdict: sick, holders: [allocation({ deviceId: 'a' })] }),
  state(device({ id: 'b' }), { verdict: { state: 'healthy', sinceMs: agoMs(20), conditions: [] } }),
];
const snapshot = { ...sample, allocations: [], podResources: podResources([], { answeredAtMs: nowMs }), devices };
const record = (id: string, name: string, minutes: number, more: Partial<ListedIncident> = {}): ListedIncident => ({
  ...{ id, time: new Date(agoMs(minutes)).toISOString(), device: `toy/${name}`, states: ['healthy', 'unhealthy'] },
  ...{ conditions: ['GpuLost'], holders: ['ml/train-0/main', 'training/gone/x'] },
  ...more,
});
const healthy = (name: string, minutes: number): HealthEvent => ({
  ...{ id: 1, timeMs: agoMs(minutes), device: `toy/${name}`, family: 'toy', transition: 'state', from: 'unhealthy', to: 'healthy' },
  ...{ reason: 'Recovered', message: 'well', remedy: 'none', holders: [] },
});
const of = (incidents: readonly ListedIncident[], events: readonly HealthEvent[] = []) => ({
  ...{ incidents, events, snapshot, board: boardOf(snapshot, { nowMs, incidents }), nowMs },
});
/** Texts of the cells of each row. */
const rowsOf = (markup: string): readonly (readonly string[])[] =>
  markup
    .split('<tr>')
    .slice(1)
    .filter((row) => !row.includes('scope="col"'))
    .map((row) => [...row.matchAll(/<t[hd][^>]*>(.*?)<\/t[hd]>/g)].map(([, cell = '']) => cell.replace(/<[^>]*>/g, '')));
const page = (incidents: readonly ListedIncident[], events: readonly HealthEvent[] = []): string => {
  const parts = of(incidents, events);
  const frame = { version: '1', node: 'node-7', telemetryPath: '/metrics', hasApi: true, isLive: true, pathOf: () => undefined };
  return incidentsPage(parts, { ...frame, board: parts.board, nowMs });
};
const HIT = 'ml/train-0, training/gone';

it('tells how long each lasted, when it ended, how its device is now and what to do; those that last come first', () => {
  const [c, olderB, b, a] = [
    record('1', 'c', 60, { states: ['healthy', 'degraded'], holders: [] }),
    record('2', 'b', 50),
    record('3', 'b', 30),
    record('4', 'a', 45),
  ];
  const markup = page([b, a, olderB, c], [healthy('b', 40)]);
  expect(rowsOf(markup).filter(({ length }) => length === 8)).toEqual([
    ['11:15:00', 'a Toy 9', 'GpuLost', HIT, 'open for 45 min', '', 'Unhealthy', 'Drain and reboot the node.'],
    ['11:30:00', 'b', 'GpuLost again, 1 earlier', HIT, '10 min', '11:40:00', 'Healthy', 'nothing, it ended'],
    ['11:10:00', 'b', 'GpuLost', HIT, '10 min', '11:20:00', 'Healthy', 'nothing, it ended'],
    ['11:00:00', 'c', 'GpuLost', 'no container', 'not known', 'not known', 'not listed', 'not known'],
  ]);
  expect(markup).toContain('1 open, 3 earlier');
  for (const pod of ['ml/train-0', 'training/gone']) expect(markup, 'a pod of a record has a page').toContain(`<a href="/pods/${pod}">`);
  expect(rowsOf(markup)).toContainEqual(['b', '2', '2', '1', '0', '11:30:00']);
});

it('leads from a record to the next one where the device got no better, on the page of the device too', () => {
  const worse = record('2', 'a', 5, { states: ['degraded', 'unhealthy'] });
  const parts = of([worse, record('1', 'a', 45, { states: ['healthy', 'degraded'] })]);
  const { text } = deviceIncidents(parts);
  expect(rowsOf(text).map((cells) => cells.slice(3))).toEqual([
    ['open for 5 min', ''],
    ['40 min', 'went on 11:55:00'],
  ]);
  expect(text).toContain('<a href="/incidents/2">went on</a>');
});

it('ends with an event of its own hardware, not with one of the hardware that has its name now', () => {
  const own = device({ id: 'b', identity: 'S1' });
  const old = { ...record('1', 'a', 45), hardware: hardwareKey(own) };
  const now = { ...snapshot, devices: [state(own, { verdict: sick })] };
  const renamed: HealthEvent = { ...healthy('b', 40), transition: 'renamed', was: 'toy/a' };
  const rows = (events: readonly HealthEvent[], devices = now.devices) => {
    const seen = { ...now, devices };
    const facts = { ...of([old], events), snapshot: seen, board: boardOf(seen, { nowMs }) };
    return rowsOf(deviceIncidents(facts).text).map((cells) => cells.slice(3));
  };
  expect(rows([renamed, healthy('a', 30)])).toEqual([['open for 45 min', '']]);
  expect(rows([renamed, healthy('b', 30)]), 'its own, under its name of now').toEqual([['15 min', '11:30:00']]);
  const replaced: HealthEvent = { ...healthy('a', 40), transition: 'replaced' };
  expect(rows([replaced, healthy('a', 30)], []), 'the hardware is gone').toEqual([['not known', 'not known']]);
  expect(rows([healthy('a', 42), replaced], []), 'it ended before').toEqual([['3 min', '11:18:00']]);
});

it('says where the kubelet did not tell the holders', () => {
  const markup = page([record('1', 'a', 5, { holders: [], holdersUnknown: true })]);
  expect(rowsOf(markup)[0]?.[3]).toBe('not known');
});

it('counts records that a later version wrote, and shows nothing else of them', () => {
  const markup = page([{ id: '20300101-000000-x', time: '', device: '', states: [], conditions: [], holders: [], newerVersion: 2 }]);
  expect(markup).toContain('A later version of the agent wrote 1 more.');
});

it('counts a fault once: a part that only has the fault of its whole stands below it, and the time is that of its begin', () => {
  const all = ['part', 'whole'].map((id) =>
    state(device({ id, ...(id === 'part' && { parent: 'whole' }) }), { verdict: { ...sick, conditions: sick.conditions } }),
  );
  const seen = { ...snapshot, devices: all };
  const incidents = [record('2', 'part', 4, { began: new Date(agoMs(5)).toISOString() }), record('1', 'whole', 5)];
  const board = boardOf(seen, { nowMs, incidents });
  const frame = { version: '1', node: 'n', telemetryPath: '/metrics', hasApi: true, isLive: true, pathOf: () => undefined, board, nowMs };
  const markup = incidentsPage({ incidents, events: [], snapshot: seen, board, nowMs }, frame);
  expect(markup).toContain('1 open (with parts 2), 0 earlier');
  const open = rowsOf(markup).filter(({ length }) => length === 8);
  expect(open.map((cells) => [cells[0], cells[1], cells[4]])).toEqual([
    ['11:55:00', 'whole', 'open for 5 min'],
    ['11:55:00', '└ part', 'open for 5 min'],
  ]);
});
