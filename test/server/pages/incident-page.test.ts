import { describe, expect, it } from 'vitest';
import { boardOf } from '../../../src/board/board.ts';
import { type IncidentChange, type IncidentRecord, type ListedIncident, summaryOf } from '../../../src/incidents/record.ts';
import type { Verdict } from '../../../src/model/health.ts';
import { incidentPage } from '../../../src/server/pages/incident-page.ts';
import { incidentText } from '../../../src/server/pages/incident-text.ts';
import { snapshot as sample, state } from '../../metrics/sample.ts';
import { device } from '../../support/snapshots.ts';

const T0 = Date.parse('2026-11-23T20:00:00.000Z');
const at = (seconds: number): string => new Date(T0 + seconds * 1_000).toISOString();

const record = (part: Partial<IncidentRecord> = {}): IncidentRecord => ({
  ...{ id: '20261123-200020-toy-a', time: at(20), node: 'node-1', agentVersion: '1.2.3', host: {} },
  device: { key: 'toy/a', family: 'toy', kind: 'toy', id: 'a', aliases: [] },
  before: { state: 'healthy' },
  after: { state: 'unhealthy' },
  changes: [{ time: at(20), from: 'healthy', to: 'unhealthy', condition: 'PortDown', reason: 'Port', message: 'no link', remedy: 'none' }],
  ...{ holders: [], processes: [], state: [], kernel: { lines: [] }, events: [], others: [] },
  readings: { times: [at(0), at(10), at(20)], series: [] },
  ...part,
});

const frame = {
  ...{ version: '1', node: 'node-1', telemetryPath: '/metrics', hasApi: true, isLive: true, pathOf: () => undefined, board: undefined },
  nowMs: T0 + 60_000,
};
const NOTHING = { incidents: [], events: [], snapshot: undefined, board: undefined, nowMs: frame.nowMs };
const page = (part: Partial<IncidentRecord> = {}): string => incidentPage(record(part), NOTHING, frame);

/** The lanes of an incident: title and note of each. */
const lanesOf = (markup: string): readonly (readonly string[])[] =>
  [...markup.matchAll(/<div class="lane"><div><b>(.*?)<\/b> <span class="soft">(.*?)<\/span>/g)].map(([, ...texts]) => texts);

it('writes a rate in the unit of what is counted, as the page of the device does', () => {
  const counter = (metric: string, values: readonly number[]) => ({ metric, labels: {}, type: 'counter' as const, values });
  const markup = page({
    readings: {
      times: [at(0), at(10), at(20)],
      series: [
        counter('device_received_bytes_total', [0, 1e9, 2e9]),
        counter('device_infiniband_ecn_marked_packets_total', [0, 40, 80]),
        counter('device_nvme_written_bytes_total', [0, 1e6, 2e6]),
        counter('device_toy_blocked_seconds_total', [0, 1, 2]),
      ],
    },
  });
  expect(lanesOf(markup).slice(3)).toEqual([
    ['Traffic', 'last 800 Mbit/s'],
    ['Infiniband ECN marked packets per second', 'last 4/s'],
    ['Nvme written per second', 'last 100 kB/s'],
    ['Blocked', 'last 10 %'],
  ]);
});

it('gives a line of the kernel log no place on the axis where its time is not known', () => {
  const marksOf = (lines: IncidentRecord['kernel']['lines']) => {
    const markup = page({ kernel: { lines } });
    return [
      lanesOf(markup)[1],
      [...markup.matchAll(/<text class="moment" x="(.*?)" y="18".*?>(.*?)<\/text>/g)].map(([, x, text]) => [x, text]),
    ];
  };
  expect(marksOf([{ text: 'one' }, { text: 'two' }])).toEqual([['Kernel log', '2 lines, their times are not known'], []]);
  const [note, marks] = marksOf([{ text: 'one' }, { time: at(5), text: 'two' }]);
  expect(note).toEqual(['Kernel log', '2 lines, the times of 1 are not known']);
  expect(marks).toEqual([[expect.stringMatching(/^\d/), '2']]);
});

/** The text of a card by its title. */
const cardOf = (markup: string, title: string): readonly string[] =>
  (markup.split(`aria-label="${title}">`)[1]?.split('</section>')[0] ?? '')
    .split(/<\/h2>|<\/p>|<\/span>/)
    .slice(1)
    .map((text) => text.replace(/<[^>]*>/g, '').trim())
    .filter((text) => text !== '');

it('does not call what another device did before an effect of the fault, and tells it in the words of the text', () => {
  const other = { device: 'toy/b', time: at(-11), to: 'degraded' as const, condition: 'TooWarm' };
  const alone = page({ others: [other] });
  expect(alone).not.toContain('What followed');
  expect(cardOf(alone, 'Also')).toEqual(['on other devices, before or after', '19:59:49: toy/b became degraded by TooWarm.']);
  expect(incidentText(record({ others: [other] }))).toContain('Also 2026-11-23 19:59:49 UTC: toy/b became degraded by TooWarm.\n');

  const [first] = record().changes;
  const then = { ...first, time: at(24), from: 'unhealthy', to: 'unknown', message: 'no read' } as IncidentRecord['changes'][number];
  const changes = [...record().changes, then];
  const both = page({ changes, furtherChanges: 3, others: [other] });
  expect(cardOf(both, 'What followed')).toEqual(['20:00:24: unhealthy to unknown by PortDown: no read', 'Further changes at once: 3.']);
  expect(cardOf(both, 'Also')).toHaveLength(2);
  const text = incidentText(record({ changes, furtherChanges: 3 }));
  for (const line of ['20:00:24 UTC: unhealthy to unknown by PortDown: no read\n', 'Further changes at once: 3.\n'])
    expect(text).toContain(line);
});

it('writes the state that a reset wipes as the text does: which port, and when it was read', () => {
  const port = { port: '1' };
  const state = [
    { metric: 'device_link_up', labels: port, value: 1, time: at(5) },
    { metric: 'device_link_speed_bytes_per_second', labels: port, value: 5e10, time: at(5) },
    { metric: 'device_infiniband_port_state', labels: { ...port, state: 'active' }, value: 1, time: at(5) },
    { metric: 'device_nvidia_ecc_errors_total', labels: {}, value: String(2n ** 60n), time: at(20) },
    { metric: 'device_errors_total', labels: {}, value: 0, time: at(20) },
  ];
  const markup = page({ state });
  const rows = [...markup.matchAll(/<tr><th scope="row">(.*?)<\/tr>/g)].map(([, row = '']) =>
    row.split(/<\/t[hd]>/).map((cell) => cell.replace(/<[^>]*>/g, '')),
  );
  expect(rows.map((row) => row.slice(0, 4))).toEqual([
    ['Link up', 'port 1', '1', '20:00:05'],
    ['Link speed', 'port 1', '400 Gbit/s', '20:00:05'],
    ['Infiniband port state', 'port 1, state active', '1', '20:00:05'],
    ['Nvidia ECC errors', '', '1\u202f152\u202f921\u202f504\u202f606\u202f846\u202f976', '20:00:20'],
  ]);
  expect(markup).toContain('Values that are 0: 1.');
  const text = incidentText(record({ state })).replace(/ {2,}/g, '  ');
  for (const [title = '', labels = '', value = '', time = ''] of rows)
    expect(text).toContain(`${[title, labels, value].filter((cell) => cell !== '').join('  ')}  2026-11-23 ${time} UTC`);
});

describe('what to do now', () => {
  const told = (verdict: Verdict | undefined, next: readonly ListedIncident[] = [], own = record()): string => {
    const devices = verdict === undefined ? [] : [state(device({ id: 'a' }), { verdict })];
    const snapshot = { ...sample, allocations: [], families: [], devices };
    const board = boardOf(snapshot, { nowMs: frame.nowMs });
    const of = { ...NOTHING, incidents: [...next, summaryOf(own)], snapshot, board };
    const [, section = ''] = incidentPage(own, of, { ...frame, board }).split('aria-label="What to do">');
    return (section.split('</div>')[0] ?? '').replace(/<[^>]*>/g, '');
  };
  const since = (state: Verdict['state'], seconds: number): Verdict => ({ state, sinceMs: T0 + seconds * 1_000, conditions: [] });

  it('is nothing after the end', () => {
    expect(told(since('healthy', 40))).toMatch(/^Nothing, it ended\. While it lasted: .* it ended 20:00:40$/s);
  });

  it('is the remedy while the device is not well, and when nobody can read it any more', () => {
    expect(told(since('unhealthy', 20))).toMatch(/^(?!Nothing).* it lasts, 40 s$/s);
    expect(told(since('unknown', 50))).toMatch(/^(?!Nothing).* it lasts, 40 s$/s);
    expect(told(undefined)).toMatch(/^(?!Nothing).* so whether it ended is not known$/s);
  });

  it('is the page of the later incident when the device got no better before it', () => {
    const next = { ...summaryOf(record({ id: 'later', time: at(50) })), states: ['unhealthy', 'unknown'] as const };
    expect(told(since('unknown', 50), [next])).toMatch(/^See the later incident\..* it went on 20:00:50$/s);
  });

  it('is not nothing while a container waits on a healthy device', () => {
    const [change] = record().changes;
    const own = { type: 'ContainerWaits', severity: 'info', reason: 'Waits', message: 'waits', remedy: 'none' } as const;
    const { from: _from, to: _to, ...waited } = change as IncidentChange;
    const waits = record({ changes: [{ ...waited, condition: own.type }], after: { state: 'healthy', conditions: [own] } });
    const verdict: Verdict = {
      ...since('healthy', 0),
      conditions: [{ ...own, class: 'self-clearing', sinceMs: T0 + 20_000 }],
    };
    expect(told(verdict, [], waits)).toMatch(/^(?!Nothing).* it lasts, 40 s$/s);
    expect(told(since('healthy', 0), [], waits)).toMatch(/^Nothing, it ended\./);
  });
});

it('has the time at which the fault began, and says why the verdict is younger', () => {
  const hot = { type: 'TooHot', severity: 'degraded' as const, reason: 'Heat', message: 'hot', remedy: 'none' as const, since: at(-10) };
  const late = { after: { state: 'degraded' as const, conditions: [hot] } };
  const markup = page(late);
  expect(incidentText(record(late))).toContain('Its fault began at 2026-11-23 19:59:50 UTC and counted after 30 s.\n');
  expect(markup.replaceAll(/<[^>]*>/g, '')).toContain('a had TooHot at 19:59:50 UTC');
  expect(markup).toContain('counted after 30 s, at 20:00:20');
  expect(lanesOf(markup)[0]).toEqual(['Verdict', 'counted after 30 s']);
});
