import { describe, expect, it } from 'vitest';
import { Accounts } from '../../src/accounting/accounts.ts';
import { Assembler } from '../../src/agent/assemble.ts';
import type { Inputs } from '../../src/agent/inputs.ts';
import type { Moment } from '../../src/agent/known-devices.ts';
import { type ServedDevice, servedIds } from '../../src/agent/resources.ts';
import type { Collection, DeviceReport } from '../../src/model/collection.ts';
import type { UsedRecord } from '../../src/model/device-record.ts';
import type { Verdict } from '../../src/model/health.ts';
import type { MetricSpec } from '../../src/model/metric.ts';
import { settings as usageSettings } from '../accounting/small-node.ts';
import { allocation, device, familyState, listed, lookAt, outOfBand, podResources, report } from '../support/snapshots.ts';

const settings = { rules: { pools: [], families: new Map() }, specs: new Map(), staleAfterMs: 60_000, missingRetentionMs: 600_000 };
const healthy: Verdict = { state: 'healthy', sinceMs: 0, conditions: [] };
const allHealthy = (devices: readonly UsedRecord[]): ReadonlyMap<string, Verdict> => new Map(devices.map(({ key }) => [key, healthy]));

const a = report({ device: device({ id: 'a' }), readings: [{ metric: 'm', value: 1 }] });
const b = report({ device: device({ id: 'b' }) });

const at = (nowMs: number, monotonicMs = nowMs): Moment => ({ nowMs, monotonicMs });
const inputs = (collection: Collection | undefined, readAtMs: number, allocations = podResources([])): Inputs => ({
  families: [{ state: familyState('toy'), latest: collection && lookAt(collection, readAtMs) }],
  podResources: allocations,
  checkpoint: [],
});

describe('assembling a snapshot', () => {
  it('names the checks that a problem disables, while the family has a device', () => {
    const needs = new Map([['toy', [{ check: 'log', part: 'kernel-log' as const, problems: ['log-missing', 'log-denied'] }]]]);
    const assembler = new Assembler({ ...settings, needs }, allHealthy);
    const withProblem = (code: string, reports: readonly DeviceReport[], atMs: number) => {
      const state = { ...familyState('toy'), problems: [{ code, message: 'no' }] };
      const families = [{ state, latest: lookAt(listed(reports), atMs) }];
      return assembler.assemble({ ...inputs(undefined, 0), families }, at(atMs)).families[0]?.disabledChecks;
    };
    expect(withProblem('log-denied', [], 0)).toBeUndefined();
    expect(withProblem('log-denied', [a], 1)).toEqual([{ check: 'log', reason: 'log-denied' }]);
    expect(withProblem('other', [a], 2)).toBeUndefined();
    expect(withProblem('log-missing', [], 3)).toBeUndefined();
  });

  it('numbers snapshots and sorts devices by key', () => {
    const assembler = new Assembler(settings, allHealthy);
    const first = assembler.assemble(inputs(listed([b, a]), 0), at(0));
    expect(first.devices.map(({ key }) => key)).toEqual(['toy/a', 'toy/b']);
    expect(assembler.assemble(inputs(undefined, 0), at(1)).sequence).toBe(first.sequence + 1);
  });

  it('keeps a device that a complete collection no longer has, as missing, until the retention ends', () => {
    const assembler = new Assembler(settings, allHealthy);
    assembler.assemble(inputs(listed([a, b]), 0), at(0));
    const gone = assembler.assemble(inputs(listed([b]), 10), at(10));
    expect(gone.devices[0]).toMatchObject({ key: 'toy/a', missingSinceMs: 10, readings: { series: [] } });
    expect(
      assembler.known('toy').map(({ id }) => id),
      'a probe that starts looks for the hardware of a place among the present ones first',
    ).toEqual(['b', 'a']);
    const later = assembler.assemble(inputs(listed([b]), 500), at(500));
    expect(later.devices[0]?.missingSinceMs).toBe(10);
    const dropped = assembler.assemble(inputs(listed([b]), 600_010), at(600_010));
    expect(dropped.devices.map(({ key }) => key)).toEqual(['toy/b']);
  });

  it('counts the retention by the monotonic clock, even when the wall clock is set', () => {
    const hour = 3_600_000;
    const read = (reports: readonly DeviceReport[], readAtMs: number, monotonicMs: number): Inputs => ({
      ...inputs(undefined, 0),
      families: [{ state: familyState('toy'), latest: lookAt(listed(reports), readAtMs, monotonicMs) }],
    });
    const left = (setMs: number, laterMs: number): string[] => {
      const assembler = new Assembler(settings, allHealthy);
      assembler.assemble(read([a, b], 10 * hour, 0), at(10 * hour, 0));
      assembler.assemble(read([b], 10 * hour, 10), at(10 * hour, 10));
      const nowMs = 10 * hour + setMs + laterMs;
      return assembler.assemble(read([b], nowMs, laterMs), at(nowMs, laterMs)).devices.map(({ key }) => key);
    };
    expect(left(hour, 1_000), 'set forward').toEqual(['toy/a', 'toy/b']);
    expect(left(-hour, 600_010), 'set back').toEqual(['toy/b']);
  });

  it('continues the retention of a device that was missing before a restart of the agent', () => {
    const known = [
      { device: a.device, readAtMs: 0, missingSinceMs: 100 },
      { device: b.device, readAtMs: 0 },
    ];
    const assembler = new Assembler(settings, allHealthy, known);
    const first = assembler.assemble(inputs(undefined, 0), at(500_000, 7));
    expect(first.devices.map(({ missingSinceMs }) => missingSinceMs)).toEqual([100, undefined]);
    const gone = listed([]);
    const missing = (nowMs: number): string[] =>
      assembler.assemble(inputs(gone, nowMs), at(nowMs, nowMs - 499_993)).devices.map(({ key }) => key);
    expect(missing(600_099)).toEqual(['toy/a', 'toy/b']);
    expect(missing(600_100)).toEqual(['toy/b']);
    expect(new Assembler(settings, allHealthy, known).assemble(inputs(listed([a]), 600_100), at(500_000)).devices[0]).toMatchObject({
      readings: { values: [1] },
    });
  });

  it('takes a missing device back as soon as it is seen again', () => {
    const assembler = new Assembler(settings, allHealthy);
    assembler.assemble(inputs(listed([a]), 0), at(0));
    assembler.assemble(inputs(listed([]), 10), at(10));
    const back = assembler.assemble(inputs(listed([a]), 20), at(20));
    expect(back.devices[0]?.missingSinceMs).toBeUndefined();
    expect(back.devices[0]?.readings).toHaveLength(1);
  });

  describe('hardware and its names', () => {
    const named = (id: string, identity: string | null = 'guid-1'): Collection => listed([report({ device: device({ id, identity }) })]);
    const shown = (...collections: readonly Collection[]): string[] => {
      const assembler = new Assembler(settings, allHealthy);
      const [last] = collections.map((collection, turn) => assembler.assemble(inputs(collection, turn), at(turn))).slice(-1);
      return (last?.devices ?? []).map(({ key, missingSinceMs }) => (missingSinceMs === undefined ? key : `${key} missing`));
    };

    it('calls no device missing that reappears under another name', () => {
      expect(shown(named('a'), named('b'))).toEqual(['toy/b']);
      expect(shown(named('a'), listed([]), named('b')), 'after it was missing').toEqual(['toy/b']);
      expect(shown(named('a'), named('b'), named('a')), 'there and back').toEqual(['toy/a']);
      expect(shown(named('a'), named('b', 'guid-2')), 'another card').toEqual(['toy/a missing', 'toy/b']);
      const both: Collection = listed([...named('a').reports, ...named('b').reports]);
      expect(shown(both, named('b')), 'one of two that tell one identity').toEqual(['toy/a missing', 'toy/b']);
      const swapped = listed([...named('b').reports, ...named('a', 'guid-2').reports]);
      expect(shown(listed([...named('a').reports, ...named('b', 'guid-2').reports]), swapped), 'two names are swapped').toEqual([
        'toy/a',
        'toy/b',
      ]);
    });

    it('takes no read of a device whose identity cannot be read for a read of the known one', () => {
      const assembler = new Assembler(settings, allHealthy);
      assembler.assemble(inputs(named('a'), 0), at(0));
      const [unread] = assembler.assemble(inputs(named('a', null), 10), at(10)).devices;
      expect(unread).toMatchObject({ device: { identity: 'guid-1' }, readAtMs: expect.any(Number) });
      expect(unread?.missingSinceMs).toBeUndefined();
      expect(assembler.assemble(inputs(named('a', null), 61_000), at(61_000)).devices[0]).toMatchObject({
        stale: true,
        readings: { series: [] },
      });
      expect(assembler.assemble(inputs(named('a'), 62_000), at(62_000)).devices[0]).toMatchObject({ stale: false });
    });
  });

  it('calls no device missing when the probe could not look, but lets its readings grow stale', () => {
    const assembler = new Assembler(settings, allHealthy);
    assembler.assemble(inputs(listed([a]), 0), at(0));
    const blind: Collection = listed([], { problems: [{ code: 'x', message: 'y' }], listing: 'partial' });
    expect(assembler.assemble(inputs(blind, 30_000), at(30_000)).devices[0]).toMatchObject({ stale: false, readings: { values: [1] } });
    const stale = assembler.assemble(inputs(blind, 61_000), at(61_000)).devices[0];
    expect(stale).toMatchObject({ stale: true, readings: { series: [] } });
    expect(stale?.missingSinceMs).toBeUndefined();
  });

  it('lets readings age by the monotonic clock, even when the wall clock is set', () => {
    const hour = 3_600_000;
    const read = { state: familyState('toy'), latest: lookAt(listed([a]), 10 * hour, 0) };
    const isStale = (nowMs: number, monotonicMs: number): boolean | undefined => {
      const assembler = new Assembler(settings, allHealthy);
      return assembler.assemble({ ...inputs(undefined, 0), families: [read] }, at(nowMs, monotonicMs)).devices[0]?.stale;
    };
    expect(isStale(11 * hour, 59_999), 'set forward').toBe(false);
    expect(isStale(9 * hour, 60_000), 'set back').toBe(true);
  });

  it('calls no device missing where the machine shows no trace of the family', () => {
    const assembler = new Assembler(settings, allHealthy);
    assembler.assemble(inputs(listed([a]), 0), at(0));
    const { devices } = assembler.assemble(inputs(listed([], { listing: 'absent' }), 61_000), at(61_000));
    expect(devices).toMatchObject([{ key: 'toy/a', stale: true }]);
    expect(devices[0]?.missingSinceMs).toBeUndefined();
  });

  it('does not renew a device by reports of other sources, but shows those reports', () => {
    let seen: readonly UsedRecord[] = [];
    const assembler = new Assembler(settings, (devices) => {
      seen = devices;
      return allHealthy(devices);
    });
    const finding = { type: 'Xid', status: true, reason: 'Logged', message: 'Xid 79' };
    const log = outOfBand({ readings: [{ metric: 'xids', value: 1 }], findings: [finding] });
    const unread = listed([{ device: a.device, outOfBand: log }], { listing: 'partial' });
    assembler.assemble(inputs(listed([a]), 0), at(0));
    const told = assembler.assemble(inputs(unread, 50_000), at(50_000));
    expect(told.devices[0]).toMatchObject({ readAtMs: 0, stale: false, readings: { values: [1, 1] } });
    expect(seen[0]).toMatchObject({ isUnread: true, read: { readAtMs: 0 }, outOfBand: { findings: [finding], readAtMs: 50_000 } });
    const old = assembler.assemble(inputs(unread, 60_000), at(60_000));
    expect(old.devices[0]).toMatchObject({ stale: true, readings: { series: [{ metric: 'xids' }] } });
    assembler.assemble(inputs(listed([a]), 70_000), at(70_000));
    expect(seen[0], 'a source without a report keeps its last report').toMatchObject({ isUnread: false, outOfBand: { readAtMs: 60_000 } });
  });

  it('calls no device missing that a complete reading lists and could not read', () => {
    const unread = listed([{ device: a.device, outOfBand: outOfBand({}) }]);
    for (const first of [listed([a]), unread]) {
      const assembler = new Assembler(settings, allHealthy);
      assembler.assemble(inputs(first, 0), at(0));
      expect(assembler.assemble(inputs(unread, 10), at(10)).devices[0]).not.toHaveProperty('missingSinceMs');
      const gone = assembler.assemble(inputs(listed([]), 20), at(20)).devices;
      // Who never read it, and knows no identity of it, has nothing to miss.
      expect(gone.map(({ missingSinceMs }) => missingSinceMs)).toEqual(first === unread ? [] : [20]);
      expect(assembler.assemble(inputs(unread, 30), at(30)).devices[0]).not.toHaveProperty('missingSinceMs');
    }
  });

  it('tells the judge that nothing was read since a run failed', () => {
    let seen: readonly UsedRecord[] = [];
    const assembler = new Assembler(settings, (devices) => {
      seen = devices;
      return allHealthy(devices);
    });
    const look = inputs(listed([a]), 0);
    assembler.assemble(look, at(0));
    expect(seen[0]).toMatchObject({ isUnread: false });
    assembler.assemble({ ...look, families: look.families.map((family) => ({ ...family, isBlind: true })) }, at(10));
    expect(seen[0]).toMatchObject({ isUnread: true, read: { readAtMs: 0 } });
    assembler.assemble(inputs(listed([b], { listing: 'partial' }), 20), at(20));
    expect(seen).toMatchObject([{ key: 'toy/a', isUnread: true }, { isUnread: false }]);
  });

  it('starts the counters of a container at a read that began after the container was seen', () => {
    const spec: MetricSpec = { name: 'm', type: 'counter', help: '', labels: [], source: '', container: true };
    const assembler = new Assembler({ ...settings, specs: new Map([['m', spec]]) }, allHealthy, [], {
      accounts: new Accounts({ ...usageSettings, isCounter: (metric) => metric === 'm' }),
    });
    const counted = (value: number): Collection => listed([report({ device: a.device, readings: [{ metric: 'm', value }] })]);
    const held = podResources([allocation({ deviceId: 'a' })]);
    const read = (value: number, nowMs: number, startedMs: number): unknown => {
      const families = [{ state: familyState('toy'), latest: lookAt(counted(value), nowMs, nowMs, startedMs) }];
      return assembler.assemble({ families, podResources: held, checkpoint: [] }, at(nowMs)).usage?.containers[0]?.counters?.[0]?.value;
    };
    expect(read(100, 1_000, 900)).toBeUndefined();
    expect(assembler.awaited).toEqual(new Map([['toy', { fromMs: 1_000, ids: new Set(['a']) }]]));
    expect(read(150, 1_100, 999)).toBeUndefined();
    expect(read(170, 1_200, 1_100)).toBe(0);
    expect(assembler.awaited.size).toBe(0);
    expect(read(200, 1_300, 1_250)).toBe(30);
  });

  it('passes no read of a device that only an earlier run knew to the judge', () => {
    let seen: readonly UsedRecord[] = [];
    const look = (devices: readonly UsedRecord[]): ReadonlyMap<string, Verdict> => {
      seen = devices;
      return allHealthy(devices);
    };
    const assembler = new Assembler(settings, look, [{ device: a.device, readAtMs: 5 }]);
    assembler.assemble(inputs(undefined, 0), at(10));
    expect(seen).toMatchObject([{ key: 'toy/a', awaitedSinceMs: 10 }]);
    assembler.assemble(inputs(listed([a]), 20), at(20));
    expect(seen[0]?.awaitedSinceMs).toBeUndefined();
  });

  it('gives a device from an earlier run the full stale age to be read, whatever the age of its last reading', () => {
    const assembler = new Assembler(settings, allHealthy, [{ device: a.device, readAtMs: 0 }]);
    expect(assembler.assemble(inputs(undefined, 0), at(500_000)).devices[0]).toMatchObject({ stale: false, readings: { series: [] } });
    expect(assembler.assemble(inputs(undefined, 0), at(559_999)).devices[0]?.stale).toBe(false);
    expect(assembler.assemble(inputs(undefined, 0), at(560_000)).devices[0]?.stale).toBe(true);
  });

  it('passes holders and flags to the judge, and puts the verdicts into the snapshot', () => {
    let seen: readonly UsedRecord[] = [];
    const verdict: Verdict = { state: 'unhealthy', sinceMs: 5, conditions: [] };
    const assembler = new Assembler(settings, (devices) => {
      seen = devices;
      return new Map([['toy/a', verdict]]);
    });
    const held = allocation({ deviceId: 'a' });
    const snapshot = assembler.assemble(inputs(listed([a]), 0, podResources([held])), at(0));
    expect(seen[0]).toMatchObject({
      key: 'toy/a',
      device: a.device,
      read: { findings: [], readAtMs: 0 },
      isUnread: false,
      holders: [held],
    });
    expect(snapshot.devices[0]).toMatchObject({ verdict, holders: [held] });
  });

  it('joins again when a device starts to match a resource of this agent', () => {
    const resource = { resource: 'example.com/fast', select: { model: 'fast' }, pool: 2 };
    const served = (known: readonly ServedDevice[]) => servedIds([resource], known);
    const assembler = new Assembler({ ...settings, served }, allHealthy);
    const held = podResources([allocation({ resource: 'example.com/fast', deviceId: '1' })]);
    const told = (model?: string): Collection =>
      listed([report({ device: device({ id: 'a', ...(model === undefined ? {} : { model }) }) })]);
    const before = assembler.assemble(inputs(told(), 0, held), at(0));
    expect(before.allocations[0]).toMatchObject({ devices: [], unresolved: 'no-device' });
    const now = assembler.assemble(inputs(told('fast'), 1, held), at(1));
    expect(now.allocations[0]).toMatchObject({ devices: ['toy/a'] });
    expect(now.devices[0]?.holders).toHaveLength(1);
  });

  describe('after the configuration of a resource of this agent changed', () => {
    const index = (at: string) => device({ id: `d${at}`, index: at });
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
      expect(assembler.assemble(inputs(listed(reports), 0, held), at(0)).allocations[0]).toMatchObject({ devices });
    });
  });
});
