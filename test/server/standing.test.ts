import { afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import type { ActiveCondition, PendingCondition, Verdict } from '../../src/model/health.ts';
import type { DeviceState } from '../../src/model/snapshot.ts';
import { snapshot, state, TAKEN_AT_MS } from '../metrics/sample.ts';
import { device } from '../support/snapshots.ts';
import { type Started, start } from './start.ts';

const NOW_MS = TAKEN_AT_MS + 1_500;

const down: ActiveCondition = {
  type: 'PortDown',
  instance: '1',
  class: 'latched',
  severity: 'fatal',
  reason: 'LinkPolling',
  message: 'port 1 is down, physical state polling',
  remedy: 'check-cable',
  sinceMs: NOW_MS - 40_000,
};
const pending: PendingCondition = { ...down, countsAtMs: NOW_MS + 20_000 };
const recovering: ActiveCondition = { ...down, recovering: { sinceMs: NOW_MS - 10_000, untilMs: NOW_MS + 50_000 } };
const BLIND_MS = NOW_MS - 61_500;

let started: Started | undefined;
afterEach(async () => {
  await started?.server.close();
  started = undefined;
});

/** What people and programs are told of a device with such a verdict. */
async function told(verdict: Partial<Verdict>, held: Pick<DeviceState, 'holders'> = { holders: [] }) {
  const one = state(device({ id: 'mlx5_0' }), {
    ...held,
    verdict: { state: 'healthy', sinceMs: NOW_MS - 180_000, conditions: [], ...verdict },
  });
  started = await start({ snapshot: () => ({ ...snapshot, devices: [one] }), parts: { clock: { ...systemClock, now: () => NOW_MS } } });
  const ask = async (path: string): Promise<string> => (await fetch(`${started?.url}${path}`)).text();
  /** The rows of the device in the table, or the head of its page. */
  const cell = (html: string): string =>
    /<tr data-key="toy\/mlx5_0".*?<\/tbody>/s.exec(html)?.[0] ?? /<section class="say.*?<\/section>/s.exec(html)?.[0] ?? '';
  const words = (html: string): string =>
    cell(html)
      .replaceAll(/<h2.*?<\/h2>|<th.*?<\/tr>|<td class="opt">.*?<\/td>/gs, '')
      .replaceAll(/<br>|<p[^>]*>| · /g, '\n')
      .replaceAll(/<[^>]*>/g, '')
      .replaceAll('&#39;', "'");
  const [overview, ofDevice] = [await ask('/'), await ask('/devices/toy/mlx5_0')];
  return {
    overview,
    ofDevice,
    page: words(overview).trim().split('\n'),
    sentence: /<section class="say[^>]*><div><h2>(.*?)<\/h2>/.exec(ofDevice)?.[1],
    devicePage: words(ofDevice).trim().split('\n'),
    tile: /<li class="tile.*?<span class="v word">(.*?)<\/span>/.exec(overview)?.[1],
    health: JSON.parse(await ask('/api/v1/devices/toy/mlx5_0')).health,
    metrics: await ask('/metrics'),
  };
}

describe('a condition that waits to count', () => {
  it('is shown with the state that it will change, with the time from which it counts and its remedy', async () => {
    const { page, devicePage, tile, health } = await told({ pending: [pending] });
    expect(page).toEqual([
      'Pending',
      'PortDown (1) pending, counts from 12:00:21',
      'port 1 is down, physical state polling',
      'Check cable, transceiver and the remote port.',
    ]);
    expect(devicePage).toEqual([
      'Pending for 40 s, since 11:59:21 UTC',
      'PortDown (1): fatal, LinkPolling, pending',
      'port 1 is down, physical state polling. It does not count yet. If it continues, it counts from 12:00:21 UTC.',
      'Check cable, transceiver and the remote port.',
    ]);
    expect(tile).toBe('Port down');
    expect(health).toEqual({
      state: 'healthy',
      since: '2026-03-01T11:57:01.500Z',
      conditions: [],
      pending: [
        {
          type: 'PortDown',
          instance: '1',
          severity: 'fatal',
          reason: 'LinkPolling',
          message: 'port 1 is down, physical state polling',
          remedy: 'check-cable',
          since: '2026-03-01T11:59:21.500Z',
          countsAt: '2026-03-01T12:00:21.500Z',
        },
      ],
    });
  });

  it('shows no time while no reading shows whether it still holds, because the wait is paused then', async () => {
    const { page, devicePage, health } = await told({ pending: [{ ...pending, unverifiedSinceMs: BLIND_MS }] });
    expect(page.slice(0, 2)).toEqual(['Pending', 'PortDown (1) pending, not seen since 11:59:00']);
    expect(devicePage[2]).toContain(
      'Since 11:59:00 UTC no reading shows whether it still holds. Until a reading shows that it does, it does not count.',
    );
    expect(health.pending).toMatchObject([{ unverifiedSince: '2026-03-01T11:59:00.000Z' }]);
  });

  it('does not change the state text when its severity is info', async () => {
    const { page, devicePage, tile } = await told({ pending: [{ ...pending, class: 'latched', severity: 'info' }] });
    expect(page).toEqual(['Healthy 3 min']);
    expect(devicePage[1]).toBe('PortDown (1): info, LinkPolling, pending');
    expect(tile).toBe('');
  });

  it('names the date when it is not today', async () => {
    const { devicePage } = await told({ pending: [{ ...pending, countsAtMs: NOW_MS + 86_400_000 }] });
    expect(devicePage[2]).toContain('It does not count yet. If it continues, it counts from 2026-03-02 12:00:01 UTC.');
  });

  it('is shown with a condition that counts, with the number of further ones', async () => {
    const hot: ActiveCondition = { ...down, type: 'Hot', class: 'latched', severity: 'degraded' };
    const { page } = await told({ state: 'degraded', conditions: [hot], pending: [pending, { ...pending, instance: '2' }] });
    expect(page[0]).toBe('Degraded 3 min');
    expect(page.join(' ')).toContain(
      'PortDown (1) pending, counts from 12:00:21 port 1 is down, physical state polling the same: PortDown (2)',
    );
  });
});

describe('a condition that waits to be withdrawn', () => {
  it('shows what it was and when it is withdrawn, and needs no action', async () => {
    const { page, devicePage, health } = await told({ state: 'unhealthy', conditions: [recovering] });
    expect(page).toEqual([
      'Recovering 10 s',
      'PortDown (1) ended 10 s ago, withdrawn from 12:00:51',
      "it was 'port 1 is down, physical state polling'",
    ]);
    expect(devicePage).toEqual([
      'Recovering for 10 s, since 11:59:51 UTC, still unhealthy',
      'PortDown (1): fatal, LinkPolling, recovering',
      "It ended 10 s ago. Its last message was 'port 1 is down, physical state polling'. If it does not return, the first reading after 12:00:51 UTC withdraws it. No action is needed.",
    ]);
    expect(health.conditions).toEqual([
      {
        type: 'PortDown',
        instance: '1',
        severity: 'fatal',
        reason: 'LinkPolling',
        message: 'port 1 is down, physical state polling',
        remedy: 'none',
        since: '2026-03-01T11:59:21.500Z',
        recovering: { since: '2026-03-01T11:59:51.500Z', until: '2026-03-01T12:00:51.500Z' },
      },
    ]);
  });

  it('shows no withdrawal time while no reading shows whether it returned', async () => {
    const { page, devicePage, health } = await told({ state: 'unhealthy', conditions: [{ ...recovering, unverifiedSinceMs: BLIND_MS }] });
    expect(health.conditions[0].remedy).toBe('verify');
    expect(page.slice(0, 2)).toEqual(['Unhealthy 3 min', 'PortDown (1) ended 10 s ago, not seen since 11:59:00']);
    expect(devicePage[2]).toContain(
      'Since 11:59:00 UTC no reading shows whether it returned. Until a reading shows that it did not, it counts.',
    );
  });

  it('asks for nothing in its series, so that no alert begins after its end', async () => {
    const series = async (condition: ActiveCondition): Promise<string | undefined> => {
      const { metrics } = await told({ state: 'unhealthy', conditions: [condition] });
      await started?.server.close();
      return /^device_health_condition\{.*$/m.exec(metrics)?.[0];
    };
    expect(await series(down)).toMatch(/condition="PortDown",.*remedy="check-cable"\} 1$/);
    expect(await series(recovering)).toBe((await series(down))?.replace('check-cable', 'none'));
    const unseen = await series({ ...recovering, unverifiedSinceMs: BLIND_MS });
    expect(unseen, 'nobody sees whether it returned').toBe((await series(down))?.replace('check-cable', 'verify'));
    expect(await series({ ...recovering, remedy: 'none', unverifiedSinceMs: BLIND_MS })).toContain('remedy="none"');
  });
});

it('says on the page of a device who is hit, and what to do once where several conditions ask for the same', async () => {
  const other: ActiveCondition = { ...down, instance: '2', message: 'port 2 is down' };
  const info: ActiveCondition = { ...down, type: 'Old', severity: 'info', instance: '3', message: 'port 3 is old' };
  const allocation = { namespace: 'ml', pod: 'train-0', container: 'main', resource: 'example.com/toy', deviceId: 'mlx5_0', numaNodes: [] };
  const { sentence, devicePage } = await told({ state: 'unhealthy', conditions: [down, other, info] }, { holders: [allocation] });
  expect(sentence).toBe('mlx5_0 has no link, ml/train-0 is hit');
  expect(devicePage.map((line) => (line.startsWith('Check') ? line : line.slice(0, 11)))).toEqual([
    ...['Unhealthy f', 'PortDown (1', 'port 1 is d', 'PortDown (2', 'port 2 is d'],
    'Check cable, transceiver and the remote port.',
    ...['Old (3): in', 'port 3 is o'],
  ]);
  await started?.server.close();
  expect((await told({})).sentence, 'a device without a fault has none').toBeUndefined();
});

describe('a condition that no reading could verify', () => {
  it('shows since when, and keeps its remedy', async () => {
    const { page, devicePage, health } = await told({ state: 'unhealthy', conditions: [{ ...down, unverifiedSinceMs: BLIND_MS }] });
    expect(page).toEqual([
      'Unhealthy 3 min',
      'PortDown (1) fatal, not seen since 11:59:00',
      'port 1 is down, physical state polling',
      'Check cable, transceiver and the remote port.',
    ]);
    expect(devicePage[2]).toContain('Since 11:59:00 UTC no reading shows whether it still holds.');
    expect(health.conditions).toMatchObject([{ remedy: 'check-cable', unverifiedSince: '2026-03-01T11:59:00.000Z' }]);
    expect(health.conditions[0]).not.toHaveProperty('unverifiedSinceMs');
  });
});

describe('the order of the page', () => {
  it('has a device with a pending condition before the plainly healthy ones', async () => {
    const healthy: Verdict = { state: 'healthy', sinceMs: 0, conditions: [] };
    const named = (id: string, verdict: Verdict) => ({ ...state(device({ id })), verdict });
    const devices = [
      named('well', healthy),
      named('for-the-record', { ...healthy, pending: [{ ...pending, class: 'latched', severity: 'info' }] }),
      named('waits', { ...healthy, pending: [pending] }),
      named('worn', { ...healthy, state: 'degraded' }),
    ];
    started = await start({ snapshot: () => ({ ...snapshot, devices }) });
    const text = await (await fetch(started.url)).text();
    expect([...text.matchAll(/<a class="id"[^>]*>([^<]+)/g)].map(([, id]) => id)).toEqual(['worn', 'waits', 'for-the-record', 'well']);
  });
});

describe('a device whose state cannot be read', () => {
  const unreadable: ActiveCondition = {
    ...{ type: 'DeviceUnreachable', class: 'no-data', severity: 'fatal', reason: 'StateUnreadable', remedy: 'reset' },
    ...{ message: 'reading the state of every port fails with EIO', sinceMs: NOW_MS - 40_000 },
  };

  it('is not called fatal or not read: its counters may be read', async () => {
    const { page, devicePage, overview, ofDevice, health } = await told({
      state: 'unknown',
      sinceMs: NOW_MS - 40_000,
      conditions: [unreadable],
    });
    expect(page.slice(0, 2)).toEqual(['Unknown 40 s', 'DeviceUnreachable state unknown']);
    expect(devicePage).toContain('DeviceUnreachable: state unknown, StateUnreadable');
    expect(overview).toMatch(/<h1>.*mlx5_0<\/a> has no readable state/);
    expect(ofDevice).toContain('The strip is empty for times in which the state of the device was not known.');
    expect(ofDevice).not.toMatch(/not reachable|was not read/);
    expect(health.conditions).toMatchObject([{ severity: 'fatal' }]);
  });

  it('keeps the severity of what does not count yet', async () => {
    const { devicePage } = await told({ state: 'unknown', conditions: [unreadable], pending: [pending] });
    expect(devicePage).toContain('PortDown (1): fatal, LinkPolling, pending');
  });
});
