import { describe, expect, it } from 'vitest';
import { resourceDevices } from '../../src/agent/resources.ts';
import { type ReadyQuestion, type ReadyRules, readyDevices } from '../../src/health/journal/ready-devices.ts';
import { Resolver } from '../../src/join/resolve.ts';
import type { ExpectedDevices } from '../../src/model/expected.ts';
import type { HealthState } from '../../src/model/health.ts';
import { Readings } from '../../src/model/readings.ts';
import type { DeviceState, FamilyState, Snapshot } from '../../src/model/snapshot.ts';
import { allocation, device, familyState, podResources } from '../support/snapshots.ts';

type Part = Partial<DeviceState['device']> & { readonly isMissing?: true; readonly unchecked?: readonly string[] };

const one = (id: string, state: HealthState = 'healthy', { isMissing, unchecked, ...part }: Part = {}): DeviceState => {
  const described = device({ id, ...part });
  return {
    key: `${described.family}/${id}`,
    device: described,
    readings: Readings.of([]),
    processes: [],
    verdict: { state, sinceMs: 1, conditions: [], ...(unchecked === undefined ? {} : { unchecked }) },
    holders: [],
    readAtMs: 1,
    stale: false,
    ...(isMissing === undefined ? {} : { missingSinceMs: 1 }),
  };
};

const RULES: ReadyRules = {
  isUsable: ({ state, unchecked }) => (state === 'healthy' || state === 'degraded') && unchecked === undefined,
  devicesOf: () => undefined,
};

const { succeeded: _, readCompletely: __, ...awaited } = familyState('toy');
const failed: FamilyState = { ...awaited, succeeded: false, problems: [{ code: 'no-library', message: 'no library' }] };

const snapshotOf = (
  devices: readonly DeviceState[],
  expected: readonly ExpectedDevices[] = [],
  families: readonly FamilyState[] = [familyState('toy')],
): Snapshot => ({
  sequence: 1,
  takenAtMs: 1,
  devices,
  allocations: [],
  containerReadings: [],
  families,
  podResources: podResources([]),
  ...(expected.length === 0 ? {} : { expected }),
});

const ask = (snapshot: Snapshot, question: ReadyQuestion = {}, rules: Partial<ReadyRules> = {}): readonly [boolean, ...string[]] => {
  const { isReady, lines } = readyDevices(snapshot, question, { ...RULES, ...rules });
  return [isReady, ...lines];
};

describe('whether devices are ready', () => {
  it('is yes for a degraded one, and no for one whose fatal conditions count as unchecked', () => {
    expect(ask(snapshotOf([one('a', 'degraded')]))).toEqual([true, '1 of 1 devices are ready.']);
    expect(ask(snapshotOf([one('a', 'healthy', { unchecked: ['Xid'] })]))).toEqual([false, 'toy/a: healthy, not checked: Xid']);
  });

  it('is no while a family was not read and could have devices', () => {
    const other = one('b', 'healthy', { family: 'other' });
    expect(ask(snapshotOf([other], [], [awaited, familyState('other')]))).toEqual([false, 'not read completely since the boot: toy']);
    expect(ask(snapshotOf([other], [], [failed]), { most: { count: 9 } })).toEqual([
      false,
      'not read completely since the boot: toy (no-library)',
    ]);
    const partly = { ...failed, succeeded: true };
    expect(ask(snapshotOf([other], [], [partly])), 'a problem can hide devices').toEqual([
      false,
      'not read completely since the boot: toy (no-library)',
    ]);
    expect(ask(snapshotOf([other], [], [failed]), { family: 'other' })).toEqual([true, '1 of 1 devices are ready.']);
    expect(ask(snapshotOf([one('a')], [{ family: 'toy', expected: 1 }]), { most: { count: 9 } })).toEqual([
      false,
      '1 toy devices are expected, and it is not known how many are present',
    ]);
  });

  it('counts a device and its parts once', () => {
    const parts = [one('a.1', 'unhealthy', { parent: 'a' }), one('a.2', 'unhealthy', { parent: 'a.1' })];
    const snapshot = snapshotOf([one('a', 'unhealthy'), ...parts, one('b')]);
    expect(ask(snapshot, { most: { count: 1 } })[1]).toBe('1 of 2 devices are ready.');
    const rounds = [one('a', 'healthy', { parent: 'b' }), one('b', 'healthy', { parent: 'a' })];
    expect(ask(snapshotOf(rounds))[0], 'parents in a circle').toBe(true);
  });

  it('counts what is expected and was never seen, and what is missing, once each', () => {
    const expected = [{ family: 'toy', expected: 4, present: 2 }];
    const snapshot = snapshotOf([one('a'), one('b'), one('c', 'unhealthy', { isMissing: true })], expected);
    expect(ask(snapshot, { most: { count: 1 } })[0]).toBe(false);
    expect(ask(snapshot, { most: { count: 2 } })).toEqual([
      true,
      '2 of 4 devices are ready.',
      '2 of 4 expected toy devices are present',
      'toy/c: missing',
    ]);
  });

  it('has the worst first, and a limit of lines', () => {
    const devices = Array.from({ length: 30 }, (_, n) => one(`d${n}`, n === 29 ? 'unhealthy' : 'unknown'));
    const [isReady, ...lines] = ask(snapshotOf(devices));
    expect([isReady, lines.length, lines[0], lines.at(-1)]).toEqual([false, 21, 'toy/d29: unhealthy', 'and 10 more']);
    expect(ask(snapshotOf([one('x'.repeat(500), 'unknown')]))[1]?.length).toBeLessThanOrEqual(200);
  });
});

describe('the devices of a resource', () => {
  const listed = (ids: Readonly<Record<string, readonly string[]>>) =>
    podResources([allocation({ deviceId: 'h' })], {
      allocatable: { devices: Object.entries(ids).map(([resource, deviceIds]) => ({ resource, deviceIds })), cpus: [], memory: [] },
    });
  const devices = [
    one('a'),
    one('h', 'unhealthy'),
    one('o', 'unhealthy'),
    one('w', 'unhealthy'),
    one('f'),
    one('k', 'unhealthy', { kind: 'other' }),
  ];
  const resolver = new Resolver(
    devices.map((state) => state.device),
    { pools: [], families: new Map() },
  );
  const of = (ids: Readonly<Record<string, readonly string[]>>) =>
    resourceDevices('example.com/toy', { devices, podResources: listed(ids) }, resolver, undefined);

  it('are those that the kubelet lists, those that pods hold, and the sick ones that its plugin may withhold', () => {
    const found = of({ 'example.com/toy': ['a', 'nosuch'], 'example.com/more': ['o'] });
    expect(found).toEqual({ devices: new Set(['toy/a', 'toy/h']), possible: new Set(['toy/w', 'toy/f']), unresolved: 1 });
    const answer = ask(snapshotOf(devices), { resource: 'example.com/toy' }, { devicesOf: () => found });
    expect(answer).toEqual([false, 'example.com/toy: no known device has 1 of its ids', 'toy/h: unhealthy', 'toy/w: unhealthy']);
  });

  it('are exact where this agent serves them', () => {
    const served = { byId: new Map([['a', ['toy/a']]]) };
    expect(resourceDevices('example.com/toy', { devices, podResources: podResources([]) }, resolver, served)).toEqual({
      devices: new Set(['toy/a']),
      possible: new Set(),
      unresolved: 0,
    });
  });

  it('are not known before the kubelet told', () => {
    expect(resourceDevices('example.com/toy', { devices, podResources: podResources([]) }, resolver, undefined)).toBeUndefined();
    expect(ask(snapshotOf(devices), { resource: 'example.com/toy' })).toEqual([
      false,
      'example.com/toy: the kubelet has not told which devices it has',
    ]);
  });
});
