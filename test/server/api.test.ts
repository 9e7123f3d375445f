import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { timeText } from '../../src/board/units.ts';
import type { HealthEvent } from '../../src/model/events.ts';
import type { MetricSpec } from '../../src/model/metric.ts';
import { shared } from '../../src/model/shared-metrics.ts';
import { readingName, readingViews } from '../../src/server/api/views.ts';
import { snapshot, TAKEN_AT_MS } from '../metrics/sample.ts';
import { type Started, start } from './start.ts';

let started: Started;
beforeEach(async () => {
  started = await start();
});
afterEach(() => started.server.close());

const get = async (path: string) => JSON.parse(await (await fetch(started.url + path)).text());

describe('query parameters', () => {
  it.each([
    [
      '/api/v1/devices?families=toy',
      'There is no parameter "families". Known here: text, family, state, namespace, holder, sort, readings.',
    ],
    ['/api/v1/devices/toy/toy-1?x', 'There is no parameter "x". This path has no parameters.'],
    ['/api/v1/events?since=1&limit=3', 'There is no parameter "limit". Known here: since.'],
    ['/api/v1/status?x=1', 'There is no parameter "x". This path has no parameters.'],
  ])('that do not exist are refused: %s', async (path, message) => {
    const answer = await fetch(started.url + path);
    expect([answer.status, await answer.json()]).toEqual([400, { error: { code: 'parameter-unknown', message } }]);
  });
});

describe('/api/v1/devices', () => {
  it('lists every device with health, holders and readings under names with units', async () => {
    const { devices, takenAt } = await get('/api/v1/devices?sort=name');
    expect(takenAt).toBe('2026-03-01T12:00:00.000Z');
    expect(devices.map(({ id }: { id: string }) => id)).toEqual(['toy-0', 'toy-1', 'toy-2', 'wire-a', 'wire-b']);
    expect(devices[0].holders.map(({ pod, part }: { pod: string; part?: string }) => [pod, part])).toEqual([
      ['train-0', undefined],
      ['share-a', 'toy-1'],
      ['share-b', 'toy-1'],
    ]);
    expect(devices[0]).toMatchObject({
      family: 'toy',
      pciAddress: '0000:3b:00.0',
      numaNode: 0,
      stale: false,
      readAt: '2026-03-01T11:59:59.750Z',
      health: { state: 'healthy', since: '2026-03-01T11:59:00.000Z', conditions: [] },
      readings: { temperatureCelsius: [{ labels: { sensor: 'core' }, value: 41.5 }], memoryUsedBytes: 1_073_741_824 },
    });
  });

  it('gives integers that JSON would round as text', async () => {
    const { devices } = await get('/api/v1/devices?sort=name');
    expect(devices[0].readings.errorsTotal).toEqual([{ labels: { kind: 'parity' }, value: '18446744073709551615' }]);
  });

  it('says of a missing device since when, of a stale one that it is', async () => {
    const { devices } = await get('/api/v1/devices?sort=name');
    expect(devices[2]).toMatchObject({ missingSince: '2026-03-01T11:59:59.000Z', readings: {} });
    expect(devices[4]).toMatchObject({ stale: true, health: { state: 'unknown' } });
    expect(devices[4].health).not.toHaveProperty('since');
    expect(devices[4]).not.toHaveProperty('missingSince');
  });

  it('gives one device by family and id', async () => {
    expect((await get('/api/v1/devices/toy/toy-1')).health.conditions[0]).toEqual({
      type: 'TooWarm',
      instance: 'core',
      severity: 'degraded',
      reason: 'OverLimit',
      message: '91 °C <over> 90 °C',
      remedy: 'check-cooling',
      since: '2026-03-01T11:59:55.000Z',
    });
  });
});

describe('health in the API', () => {
  it('shows what is ignored, with reason and end, and how often states were taken', async () => {
    const { health } = await get('/api/v1/devices/toy/toy-1');
    expect(health.ignored).toMatchObject([{ type: 'LinkNarrow', ignoreReason: 'known riser', ignoredUntil: '2026-04-01T00:00:00.000Z' }]);
    expect(health.transitions).toEqual({ degraded: 2, healthy: 1 });
  });

  it('writes the end of what is ignored for ever with a year of four digits, as RFC 3339 has it', () => {
    expect([Date.parse('9999-12-31T00:00:00Z') + 86_400_000, 8.64e15, Number.MAX_VALUE].map(timeText)).toEqual(
      Array(3).fill('9999-12-31T23:59:59.999Z'),
    );
  });
});

describe('/api/v1/events', () => {
  it('gives events younger than the one named, and refuses a name that is none', async () => {
    const event: HealthEvent = {
      id: 7,
      timeMs: TAKEN_AT_MS,
      device: 'toy/toy-1',
      family: 'toy',
      transition: 'state',
      from: 'healthy',
      to: 'degraded',
      reason: 'OverLimit',
      message: '91 °C',
      remedy: 'check-cooling',
      holders: [],
    };
    const other = await start({ parts: { events: (since) => [event].filter(({ id }) => id > since) } });
    const ask = async (query: string) => fetch(`${other.url}/api/v1/events${query}`);
    expect(await (await ask('')).json()).toMatchObject({ events: [{ id: 7, time: '2026-03-01T12:00:00.000Z', to: 'degraded' }] });
    expect(await (await ask('?since=7')).json()).toEqual({ events: [] });
    expect([(await ask('?since=x')).status, (await ask('?since=1&since=2')).status]).toEqual([400, 400]);
    await other.server.close();
    expect(await get('/api/v1/events')).toEqual({ events: [] });
  });
});

describe('/api/v1/allocations', () => {
  it('lists what containers hold, with devices or with the reason why there are none', async () => {
    const { allocations, exclusive, allocatable } = await get('/api/v1/allocations');
    expect(allocations).toHaveLength(snapshot.allocations.length);
    expect(allocations[4]).toMatchObject({ pod: 'pool-0', deviceId: '3', devices: ['wire/wire-a', 'wire/wire-b'], held: true });
    expect(allocations[5]).toMatchObject({ pod: 'lost-0', devices: [], unresolved: 'no-device' });
    expect(allocations[7].claim).toMatchObject({ driver: 'wire.example.com', pool: 'node-1', device: 'wire-b' });
    expect(exclusive[0]).toMatchObject({ pod: 'train-0', cpus: [2, 3] });
    expect(exclusive[0].memory[2]).toEqual({ type: 'hugepages-2Mi', bytes: 2_097_152, numaNodes: [0, 1] });
    expect(allocatable.memory).toEqual([{ type: 'memory', bytes: 17_179_869_184, numaNodes: [0] }]);
  });
});

describe('/api/v1/status', () => {
  it('tells how snapshot, kubelet and probes are doing, with the way out of a problem', async () => {
    const status = await get('/api/v1/status');
    expect(status).toMatchObject({
      version: '1.2.3',
      snapshot: { sequence: 1, devices: 5, allocations: 8 },
      kubelet: { api: 'v1', problem: { reason: 'refused' }, heldAllocations: 1, answeredAt: '2026-03-01T11:59:59.500Z' },
      probes: [
        { family: 'toy', succeeded: true, durationSeconds: 0.0125, problems: [] },
        { family: 'wire', hung: true, abandonedRuns: 1 },
      ],
    });
    expect(status.snapshot.ageSeconds).toBeGreaterThan((Date.now() - TAKEN_AT_MS) / 1_000 - 60);
  });
});

describe('names of readings', () => {
  it('differ for all shared metrics and keep their unit', () => {
    const specs: readonly Pick<MetricSpec, 'name'>[] = Object.values(shared);
    const names = specs.map(({ name }) => readingName(name));
    expect(new Set(names).size).toBe(names.length);
    expect(names).toContain('linkSpeedBytesPerSecond');
    expect(readingName('device_infiniband_port_rcv_errors_total')).toBe('infinibandPortRcvErrorsTotal');
  });

  it('leave out what is not a number', () => {
    expect(readingViews([{ metric: 'device_power_watts', value: Number.NaN }])).toEqual({});
  });
});
