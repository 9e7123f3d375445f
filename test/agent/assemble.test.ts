import { describe, expect, it } from 'vitest';
import { Assembler, type Inputs } from '../../src/agent/assemble.ts';
import type { Judged } from '../../src/agent/judged.ts';
import { type ServedDevice, servedIds } from '../../src/agent/served.ts';
import type { Collection, DeviceReport } from '../../src/model/collection.ts';
import type { Device } from '../../src/model/device.ts';
import type { Verdict } from '../../src/model/health.ts';
import { Readings } from '../../src/model/readings.ts';
import { allocation, device, familyState, podResources, report } from '../support/snapshots.ts';

const settings = { rules: { pools: [], families: new Map() }, specs: new Map(), staleAfterMs: 60_000, missingRetentionMs: 600_000 };
const healthy: Verdict = { state: 'healthy', sinceMs: 0, conditions: [] };
const allHealthy = (devices: readonly Judged[]): ReadonlyMap<string, Verdict> => new Map(devices.map(({ key }) => [key, healthy]));

const a = report({ device: device({ id: 'a' }), readings: Readings.of([{ metric: 'm', value: 1 }]) });
const b = report({ device: device({ id: 'b' }) });

const inputs = (collection: Collection | undefined, readAtMs: number, allocations = podResources([])): Inputs => ({
  families: [{ state: familyState('toy'), latest: collection === undefined ? undefined : { collection, readAtMs } }],
  podResources: allocations,
  checkpoint: [],
});

describe('assembling a snapshot', () => {
  it('numbers snapshots and sorts devices by key', () => {
    const assembler = new Assembler(settings, allHealthy);
    const first = assembler.assemble(inputs({ reports: [b, a], problems: [] }, 0), 0);
    expect(first.devices.map(({ key }) => key)).toEqual(['toy/a', 'toy/b']);
    expect(assembler.assemble(inputs(undefined, 0), 1).sequence).toBe(first.sequence + 1);
  });

  it('keeps a device that a complete collection no longer has, as missing, until the retention ends', () => {
    const assembler = new Assembler(settings, allHealthy);
    assembler.assemble(inputs({ reports: [a, b], problems: [] }, 0), 0);
    const gone = assembler.assemble(inputs({ reports: [b], problems: [] }, 10), 10);
    expect(gone.devices[0]).toMatchObject({ key: 'toy/a', missingSinceMs: 10, readings: Readings.NONE });
    const later = assembler.assemble(inputs({ reports: [b], problems: [] }, 500), 500);
    expect(later.devices[0]?.missingSinceMs).toBe(10);
    const dropped = assembler.assemble(inputs({ reports: [b], problems: [] }, 600_010), 600_010);
    expect(dropped.devices.map(({ key }) => key)).toEqual(['toy/b']);
  });

  it('counts the retention by the monotonic clock, however the wall clock is set', () => {
    const hour = 3_600_000;
    const read = (reports: readonly DeviceReport[], readAtMs: number, monotonicMs: number): Inputs => ({
      ...inputs(undefined, 0),
      families: [{ state: familyState('toy'), latest: { collection: { reports, problems: [] }, readAtMs, monotonicMs } }],
    });
    const listed = (setMs: number, laterMs: number): string[] => {
      const assembler = new Assembler(settings, allHealthy);
      assembler.assemble(read([a, b], 10 * hour, 0), 10 * hour, 0);
      assembler.assemble(read([b], 10 * hour, 10), 10 * hour, 10);
      const nowMs = 10 * hour + setMs + laterMs;
      return assembler.assemble(read([b], nowMs, laterMs), nowMs, laterMs).devices.map(({ key }) => key);
    };
    expect(listed(hour, 1_000), 'set forward').toEqual(['toy/a', 'toy/b']);
    expect(listed(-hour, 600_010), 'set back').toEqual(['toy/b']);
  });

  it('goes on with the retention of a device that was missing before the agent was started anew', () => {
    const known = [
      { device: a.device, readAtMs: 0, missingSinceMs: 100 },
      { device: b.device, readAtMs: 0 },
    ];
    const assembler = new Assembler(settings, allHealthy, known);
    const first = assembler.assemble(inputs(undefined, 0), 500_000, 7);
    expect(first.devices.map(({ missingSinceMs }) => missingSinceMs)).toEqual([100, undefined]);
    const gone = { reports: [], problems: [] };
    const missing = (nowMs: number): string[] =>
      assembler.assemble(inputs(gone, nowMs), nowMs, nowMs - 499_993).devices.map(({ key }) => key);
    expect(missing(600_099)).toEqual(['toy/a', 'toy/b']);
    expect(missing(600_100)).toEqual(['toy/b']);
    expect(
      new Assembler(settings, allHealthy, known).assemble(inputs({ reports: [a], problems: [] }, 600_100), 500_000).devices[0],
    ).toMatchObject({
      readings: { values: [1] },
    });
  });

  it('takes a missing device back as soon as it is seen again', () => {
    const assembler = new Assembler(settings, allHealthy);
    assembler.assemble(inputs({ reports: [a], problems: [] }, 0), 0);
    assembler.assemble(inputs({ reports: [], problems: [] }, 10), 10);
    const back = assembler.assemble(inputs({ reports: [a], problems: [] }, 20), 20);
    expect(back.devices[0]?.missingSinceMs).toBeUndefined();
    expect(back.devices[0]?.readings).toHaveLength(1);
  });

  it('calls no device missing that came back under another name, the same function with the same UUID', () => {
    const named = (id: string, more: Partial<Device> = {}): Collection => ({
      reports: [report({ device: device({ id, uuid: 'e41d:2d03:0050:5b3c', pciAddress: '0000:10:00.0', ...more }) })],
      problems: [],
    });
    const keys = (...collections: readonly Collection[]): string[] => {
      const assembler = new Assembler(settings, allHealthy);
      const [last] = collections.map((collection, at) => assembler.assemble(inputs(collection, at), at)).slice(-1);
      return (last?.devices ?? []).map(({ key, missingSinceMs }) => (missingSinceMs === undefined ? key : `${key} missing`));
    };
    expect(keys(named('a'), named('b'))).toEqual(['toy/b']);
    expect(keys(named('a'), { reports: [], problems: [] }, named('b')), 'after it was missing').toEqual(['toy/b']);
    expect(keys(named('a'), named('b'), named('a')), 'there and back').toEqual(['toy/a']);
    expect(keys(named('a'), named('b', { pciAddress: '0000:11:00.0' })), 'in another slot').toEqual(['toy/a missing', 'toy/b']);
    expect(keys(named('a'), named('b', { uuid: 'e41d:2d03:0050:5b3d' })), 'another card').toEqual(['toy/a missing', 'toy/b']);
    const both: Collection = { reports: [...named('a').reports, ...named('b').reports], problems: [] };
    expect(keys(both, named('b')), 'one of two that were there').toEqual(['toy/a missing', 'toy/b']);
  });

  it('takes the later of two names that an earlier run knew one device by', () => {
    const one = { uuid: 'e41d:2d03:0050:5b3c', pciAddress: '0000:10:00.0' };
    const known = [
      { device: device({ id: 'a', ...one }), readAtMs: 5 },
      { device: device({ id: 'b', ...one }), readAtMs: 7 },
      { device: device({ id: 'c' }), readAtMs: 5 },
    ];
    const { devices } = new Assembler(settings, allHealthy, known).assemble(inputs(undefined, 0), 10);
    expect(devices.map(({ key }) => key)).toEqual(['toy/b', 'toy/c']);
  });

  it('calls no device missing when the probe could not look, but lets its readings grow stale', () => {
    const assembler = new Assembler(settings, allHealthy);
    assembler.assemble(inputs({ reports: [a], problems: [] }, 0), 0);
    const blind: Collection = { reports: [], problems: [{ code: 'x', message: 'y' }], complete: false };
    expect(assembler.assemble(inputs(blind, 30_000), 30_000).devices[0]).toMatchObject({ stale: false, readings: { values: [1] } });
    const stale = assembler.assemble(inputs(blind, 61_000), 61_000).devices[0];
    expect(stale).toMatchObject({ stale: true, readings: Readings.NONE });
    expect(stale?.missingSinceMs).toBeUndefined();
  });

  it('lets readings age by the monotonic clock, however the wall clock is set', () => {
    const hour = 3_600_000;
    const read = { state: familyState('toy'), latest: { collection: { reports: [a], problems: [] }, readAtMs: 10 * hour, monotonicMs: 0 } };
    const isStale = (nowMs: number, monotonicMs: number): boolean | undefined => {
      const assembler = new Assembler(settings, allHealthy);
      return assembler.assemble({ ...inputs(undefined, 0), families: [read] }, nowMs, monotonicMs).devices[0]?.stale;
    };
    expect(isStale(11 * hour, 59_999), 'set forward').toBe(false);
    expect(isStale(9 * hour, 60_000), 'set back').toBe(true);
  });

  it('lets no judge take a device from an earlier run for one that was read', () => {
    let seen: readonly Judged[] = [];
    const look = (devices: readonly Judged[]): ReadonlyMap<string, Verdict> => {
      seen = devices;
      return allHealthy(devices);
    };
    const assembler = new Assembler(settings, look, [{ device: a.device, readAtMs: 5 }]);
    assembler.assemble(inputs(undefined, 0), 10);
    expect(seen).toMatchObject([{ key: 'toy/a', awaitedSinceMs: 10 }]);
    assembler.assemble(inputs({ reports: [a], problems: [] }, 20), 20);
    expect(seen[0]).not.toHaveProperty('awaitedSinceMs');
  });

  it('gives a device from an earlier run the stale age to be read in, however old its last reading', () => {
    const assembler = new Assembler(settings, allHealthy, [{ device: a.device, readAtMs: 0 }]);
    expect(assembler.assemble(inputs(undefined, 0), 500_000).devices[0]).toMatchObject({ stale: false, readings: Readings.NONE });
    expect(assembler.assemble(inputs(undefined, 0), 559_999).devices[0]?.stale).toBe(false);
    expect(assembler.assemble(inputs(undefined, 0), 560_000).devices[0]?.stale).toBe(true);
  });

  it('gives the judge holders and marks, and the snapshot what the judge says', () => {
    let seen: readonly Judged[] = [];
    const verdict: Verdict = { state: 'unhealthy', sinceMs: 5, conditions: [] };
    const assembler = new Assembler(settings, (devices) => {
      seen = devices;
      return new Map([['toy/a', verdict]]);
    });
    const held = allocation({ deviceId: 'a' });
    const snapshot = assembler.assemble(inputs({ reports: [a], problems: [] }, 0, podResources([held])), 0);
    expect(seen[0]).toMatchObject({ key: 'toy/a', stale: false, holders: [held] });
    expect(snapshot.devices[0]).toMatchObject({ verdict, holders: [held] });
  });

  it('joins anew when a device became one that a resource of this agent is made of', () => {
    const resource = { resource: 'example.com/fast', select: { model: 'fast' }, pool: 2 };
    const served = (known: readonly ServedDevice[]) => servedIds([resource], known);
    const assembler = new Assembler({ ...settings, served }, allHealthy);
    const held = podResources([allocation({ resource: 'example.com/fast', deviceId: '1' })]);
    const told = (model?: string): Collection => ({
      reports: [report({ device: device({ id: 'a', ...(model === undefined ? {} : { model }) }) })],
      problems: [],
    });
    const before = assembler.assemble(inputs(told(), 0, held), 0);
    expect(before.allocations[0]).toMatchObject({ devices: [], unresolved: 'no-device' });
    const now = assembler.assemble(inputs(told('fast'), 1, held), 1);
    expect(now.allocations[0]).toMatchObject({ devices: ['toy/a'] });
    expect(now.devices[0]?.holders).toHaveLength(1);
  });

  describe('after a resource of this agent was configured otherwise', () => {
    const index = (at: string) => device({ id: `d${at}`, attributes: { index: at } });
    const resource = { resource: 'example.com/toy', select: { family: 'toy' }, idStrategy: 'index' as const };
    it.each([
      ['with fewer replicas', { ...resource, replicas: 2 }, '1::3', ['toy/d1']],
      ['without replicas', resource, '1::1', ['toy/d1']],
      ['with replicas, which it had not', { ...resource, replicas: 2 }, '1', ['toy/d1']],
      ['with fewer places', { resource: 'example.com/toy', select: { family: 'toy' }, pool: 2 }, '7', ['toy/d0', 'toy/d1']],
      ['by number, of which there is none such', { ...resource, replicas: 2 }, '7::1', []],
      ['as a pool, of which the id is no place', { resource: 'example.com/toy', select: { family: 'toy' }, pool: 2 }, 'd1::1', ['toy/d1']],
    ])('a pod goes on with what it was given: %s', (_, now, deviceId, devices) => {
      const assembler = new Assembler({ ...settings, served: (known) => servedIds([now], known) }, allHealthy);
      const reports = ['0', '1'].map((at) => report({ device: index(at) }));
      const held = podResources([allocation({ resource: 'example.com/toy', deviceId })]);
      expect(assembler.assemble(inputs({ reports, problems: [] }, 0, held), 0).allocations[0]).toMatchObject({ devices });
    });
  });
});
