import { describe, expect, it } from 'vitest';
import { type IncidentRecord, summaryOf } from '../../src/incidents/record.ts';
import { IncidentRecorder, MOST_PER_HOUR } from '../../src/incidents/recorder.ts';
import type { HealthEvent } from '../../src/model/events.ts';
import { Readings } from '../../src/model/readings.ts';
import type { DeviceState, Snapshot } from '../../src/model/snapshot.ts';
import { incidentText } from '../../src/server/pages/incident-text.ts';
import { device, podResources } from '../support/snapshots.ts';
import { changed, held, snapshot, state, T0, verdict } from './scene.ts';

const SPECS = new Map<string, { readonly type: 'gauge' | 'counter'; readonly wiped: true }>([
  ['device_nvidia_ecc_errors_total', { type: 'counter', wiped: true }],
  ['device_link_up', { type: 'gauge', wiped: true }],
  ['device_infiniband_port_state', { type: 'gauge', wiped: true }],
]);

function begin(kernel = { lines: [{ text: 'toy a failed' }] }, recorded?: ReadonlySet<string>, pagesUrl?: string) {
  const saved = new Map<string, IncidentRecord>();
  let saves = 0;
  const recorder = new IncidentRecorder(
    {
      place: () => ({ node: 'node-1', agentVersion: '1.2.3', host: { kernel: '6.1', model: 'Box' }, pagesUrl }),
      eventsOf: () => [],
      kernelLines: () => Promise.resolve(kernel),
      save: (record) => {
        saves += 1;
        saved.set(record.id, record);
      },
      isTaken: (id) => saved.has(id),
    },
    { periodMs: 600_000, intervalMs: 10_000, specs: SPECS, ...(recorded === undefined ? {} : { recordMs: 60_000, recorded }) },
    [],
  );
  const step = (atMs: number, devices: readonly DeviceState[], events: readonly HealthEvent[] = [], part: Partial<Snapshot> = {}): void => {
    recorder.judged(events);
    recorder.take({ ...snapshot(devices, atMs), ...part });
  };
  return { recorder, saved, step, records: () => [...saved.values()], saves: () => saves };
}

const bad = (part: Partial<DeviceState> = {}, id = 'a'): DeviceState => state({ id, verdict: verdict('unhealthy'), ...part });

describe('a record of an agent with an address for people', () => {
  it('names its page, also in its text', () => {
    const { step, records } = begin(undefined, undefined, 'https://node-1.devices.example');
    step(T0, [state({})]);
    step(T0 + 10_000, [bad()], [changed('healthy', 'unhealthy', T0 + 10_000)]);
    const [record] = records() as [IncidentRecord];
    const url = `https://node-1.devices.example/incidents/${record.id}`;
    expect(record.url).toBe(url);
    expect(incidentText(record).split('\n').slice(0, 2)).toEqual([`Incident ${record.id} on node node-1`, `Page: ${url}`]);
    expect(record).not.toHaveProperty('pagesUrl');
  });
});

describe('a record of an incident while the kubelet does not answer', () => {
  const silent = { podResources: podResources([], { problem: { reason: 'socket-missing', message: 'no such socket' } }) };
  const at = T0 + 2_000_000;

  it('still hits a pod that the kubelet named last, and that no answer has ended', () => {
    const { step, records } = begin();
    step(T0, [state({ holders: [held('train')] })]);
    step(at - 600_000, [state({ readAtMs: at - 600_000 })], [], silent);
    step(at, [bad({ readAtMs: at })], [changed('healthy', 'unhealthy', at)], silent);
    const [record] = records() as [IncidentRecord];
    expect(record).toMatchObject({ holdersUnknown: true, holders: [{ pod: 'train', since: '2026-11-23T20:00:00.000Z' }] });
    expect(record.holders[0]).not.toHaveProperty('until');
    expect(incidentText(record)).toContain('The kubelet did not answer then, so others may hold it, too.');
    expect(summaryOf(record)).toMatchObject({ holders: [expect.stringContaining('train')], holdersUnknown: true });
  });

  it('ends the span of a pod with the next answer', () => {
    const { step, records } = begin();
    step(T0, [state({ holders: [held('train')] })]);
    step(at - 300_000, [state({ readAtMs: at - 300_000 })], [], silent);
    step(at - 200_000, [state({ readAtMs: at - 200_000 })]);
    step(at, [bad({ readAtMs: at })], [changed('healthy', 'unhealthy', at)]);
    expect(records()[0]).toMatchObject({ holders: [{ pod: 'train', until: new Date(at - 200_000).toISOString() }] });
    expect(records()[0]).not.toHaveProperty('holdersUnknown');
  });

  it('does not say that nobody held the device', () => {
    const { step, records } = begin();
    step(at, [bad({ readAtMs: at })], [changed('unknown', 'unhealthy', at)], silent);
    const [record] = records() as [IncidentRecord];
    expect(incidentText(record)).toContain('WHO WAS HIT\n  The kubelet did not say who held the device.\n');
  });
});

describe('a record of an incident', () => {
  it('has the verdicts, the holders now and before, the readings and the state that a reset wipes', async () => {
    const { step, records } = begin();
    const readings = (value: number) => [
      { metric: 'device_temperature_celsius', labels: { sensor: 'core' }, value },
      { metric: 'device_nvidia_ecc_errors_total', value: 2n ** 60n },
    ];
    step(T0, [state({ holders: [held('first')], readings: Readings.of(readings(40)) })]);
    step(T0 + 10_000, [
      state({
        holders: [held('second')],
        readings: Readings.of(readings(41)),
        readAtMs: T0 + 10_000,
        processes: [{ pid: 7, name: 'train' }],
      }),
    ]);
    const at = T0 + 20_000;
    step(at, [bad({ readings: Readings.of(readings(99)), readAtMs: at })], [changed('healthy', 'unhealthy', at)]);
    await Promise.resolve();
    expect(records()).toHaveLength(1);
    expect(records()[0]).toMatchObject({
      id: '20261123-200020-toy-a',
      time: '2026-11-23T20:00:20.000Z',
      node: 'node-1',
      agentVersion: '1.2.3',
      device: { key: 'toy/a', id: 'a' },
      before: { state: 'healthy', conditions: [] },
      after: { state: 'unhealthy', conditions: [{ type: 'TooHot', remedy: 'reset' }] },
      holders: [
        { pod: 'second', since: '2026-11-23T20:00:10.000Z', until: '2026-11-23T20:00:20.000Z' },
        { pod: 'first', since: '2026-11-23T20:00:00.000Z', until: '2026-11-23T20:00:10.000Z' },
      ],
      processes: [{ pid: 7, name: 'train' }],
      processesReadAt: '2026-11-23T20:00:10.000Z',
      state: [{ metric: 'device_nvidia_ecc_errors_total', value: (2n ** 60n).toString() }],
      kernel: { lines: [{ text: 'toy a failed' }] },
    });
    expect(records()[0]?.readings.series[0]?.values).toEqual([40, 41, 99]);
  });

  it('hits who gets the device while the fault lasts, also when they are gone again; and nobody after it', () => {
    const { step, records, saves } = begin();
    const at = (second: number): number => T0 + second * 1_000;
    step(at(0), [state({ holders: [held('first')] })]);
    step(at(10), [bad({ holders: [held('first')] })], [changed('healthy', 'unhealthy', at(10))]);
    step(at(20), [bad({ holders: [held('second')] })]);
    step(at(30), [bad()]);
    const saved = saves();
    step(at(40), [bad()]);
    step(at(50), [state({ holders: [held('third')] })], [changed('unhealthy', 'healthy', at(50))]);
    expect(saves(), 'only what is new is saved').toBe(saved);
    const [record] = records() as [IncidentRecord];
    const spans = record.holders.map(({ pod, since, until }) => [pod, since.slice(17, 19), until?.slice(17, 19)]);
    expect(spans).toEqual([
      ['first', '00', '20'],
      ['second', '20', '30'],
    ]);
    expect(summaryOf(record).holders.map((name) => name.split('/')[1])).toEqual(['first', 'second']);
  });

  it('of a card hits who holds a function of it, although that function is read well', () => {
    const { step, records } = begin();
    const part = device({ id: 'vf', parent: 'a' });
    const well = state({ id: 'vf', device: part, holders: [held('guest')] });
    step(T0, [state(), well]);
    step(T0 + 10_000, [bad(), well], [changed('healthy', 'unhealthy', T0 + 10_000)]);
    expect(records().map((record) => summaryOf(record).holders)).toEqual([[expect.stringContaining('/guest/')]]);
  });

  it('of a device that is gone has its last readings and processes with their times', () => {
    const { step, records } = begin();
    step(T0, [state({ readings: Readings.of([{ metric: 'device_link_up', labels: { port: '1' }, value: 1 }]) })]);
    const at = T0 + 60_000;
    step(at, [state({ verdict: verdict('unknown'), missingSinceMs: at })], [changed('healthy', 'unknown', at)]);
    expect(records()[0]).toMatchObject({
      missingSince: '2026-11-23T20:01:00.000Z',
      state: [{ metric: 'device_link_up', value: 1, time: '2026-11-23T20:00:00.000Z' }],
      readings: { times: ['2026-11-23T20:00:00.000Z'] },
    });
  });

  it('shows one value for a metric whose label is a state', () => {
    const { step, records } = begin();
    const port = (name: string) => [{ metric: 'device_infiniband_port_state', labels: { port: '1', state: name }, value: 1 }];
    step(T0, [state({ readings: Readings.of(port('active')) })]);
    const at = T0 + 10_000;
    step(at, [bad({ readings: Readings.of(port('down')), readAtMs: at })], [changed('healthy', 'unhealthy', at)]);
    expect(records()[0]?.state.map(({ labels }) => labels.state)).toEqual(['down']);
  });

  it('is made for a container whose wait begins, once for all its devices, and reaches back to the work before', () => {
    const { step, records } = begin(undefined, new Set(['Stalled']));
    const readings = (value: number) => [{ metric: 'device_temperature_celsius', labels: { sensor: 'core' }, value }];
    for (let at = 0; at < 20; at += 1) {
      const both = ['a', 'b'].map((id) =>
        state({ id, holders: [held('job')], readings: Readings.of(readings(at)), readAtMs: T0 + at * 10_000 }),
      );
      step(T0 + at * 10_000, both);
    }
    const atMs = T0 + 200_000;
    const begun = (id: string, condition = 'Stalled'): HealthEvent => {
      const { to: _, from: __, ...event } = changed('healthy', 'degraded', atMs, id);
      return { ...event, transition: 'raised', condition, severity: 'info', holders: [held('job')] };
    };
    step(
      atMs,
      ['a', 'b'].map((id) => state({ id, holders: [held('job')], readings: Readings.of(readings(50)), readAtMs: atMs })),
      [begun('a', 'IdleHeld'), begun('a'), begun('b')],
    );
    expect(records()).toHaveLength(1);
    expect(records()[0]).toMatchObject({
      device: { key: 'toy/a' },
      before: { state: 'healthy' },
      after: { state: 'healthy' },
      changes: [{ condition: 'Stalled' }],
      holders: [{ pod: 'job' }],
    });
    expect(records()[0]?.readings.times).toHaveLength(21);
    expect(incidentText(records()[0] as IncidentRecord)).toContain('2026-11-23 20:03:20 UTC: toy/a stayed healthy.');
  });

  it('has what begins to count within a minute, in the order of the verdict, and nothing later', () => {
    const { step, records } = begin();
    const [first] = verdict('unhealthy', T0).conditions;
    const named = (type: string, sinceMs: number) => ({ ...(first as NonNullable<typeof first>), type, sinceMs });
    const told = (atMs: number, types: readonly string[]) => {
      const conditions = types.map((type) => named(type, type === 'Error' ? T0 : atMs));
      const [condition = ''] = types;
      const { to: _, from: __, ...event } = changed('healthy', 'unhealthy', atMs);
      const events = atMs === T0 ? [changed('healthy', 'unhealthy', atMs)] : [{ ...event, transition: 'raised' as const, condition }];
      const pending = atMs === T0 ? [{ ...named('Lost', T0), countsAtMs: T0 + 2_000 }] : [];
      step(atMs, [bad({ verdict: { ...verdict('unhealthy', T0), conditions, pending }, readAtMs: atMs })], events);
      return (records()[0] as IncidentRecord).after.conditions?.map(({ type }) => type);
    };
    step(T0 - 10_000, [state()]);
    const waiting = () => records()[0]?.after.pending?.map(({ type }) => type);
    expect(told(T0, ['Error'])).toEqual(['Error']);
    expect(waiting()).toEqual(['Lost']);
    expect(told(T0 + 2_000, ['Lost', 'Error']), 'the device is gone a moment later').toEqual(['Lost', 'Error']);
    expect(waiting(), 'it waits no more').toBeUndefined();
    expect(told(T0 + 30_000, ['Other', 'Error']), 'what ended stays').toEqual(['Other', 'Error', 'Lost']);
    expect(told(T0 + 90_000, ['Late', 'Error'])).toEqual(['Other', 'Error', 'Lost']);
    expect(records()).toHaveLength(1);
  });

  it('tells when its fault began, where its condition counts only after a time, and never of a restart', () => {
    const beganOf = (before: 'healthy' | 'unknown'): string | undefined => {
      const { step, records } = begin();
      step(T0 - 40_000, [state()]);
      const late = { ...verdict('unhealthy', T0 - 30_000), sinceMs: T0 };
      step(T0, [bad({ verdict: late, readAtMs: T0 })], [changed(before, 'unhealthy', T0)]);
      return summaryOf(records()[0] as IncidentRecord).began;
    };
    expect([beganOf('healthy'), beganOf('unknown')]).toEqual([new Date(T0 - 30_000).toISOString(), undefined]);
  });

  it('takes further changes within ten seconds, and other devices that fail at about that time', () => {
    const { step, records } = begin();
    step(T0, [state(), state({ id: 'b' }), state({ id: 'c' })]);
    const all = (): DeviceState[] => [bad(), bad({}, 'b'), bad({}, 'c')];
    step(T0 + 1_000, all(), [changed('healthy', 'degraded', T0 + 1_000), changed('healthy', 'unknown', T0 + 1_000, 'b')]);
    step(T0 + 4_000, all(), [changed('degraded', 'unhealthy', T0 + 4_000), changed('healthy', 'unhealthy', T0 + 4_000, 'c')]);
    expect(records()).toHaveLength(3);
    expect(records()[0]).toMatchObject({
      changes: [{ to: 'degraded' }, { from: 'degraded', to: 'unhealthy', time: '2026-11-23T20:00:04.000Z' }],
      others: [
        { device: 'toy/b', to: 'unknown' },
        { device: 'toy/c', to: 'unhealthy' },
      ],
    });
    expect(records()[2]?.others.map(({ device }) => device)).toEqual(['toy/a', 'toy/b']);
    step(T0 + 90_000, all(), [changed('healthy', 'unhealthy', T0 + 90_000)]);
    expect(records()[3]).toMatchObject({ others: [] });
  });

  it('is not made when a device becomes healthy', () => {
    const { step, records } = begin();
    step(T0, [state()], [changed('degraded', 'healthy')]);
    expect(records()).toEqual([]);
  });

  it('stays bounded over 10,000 changes, and says how many are missing', () => {
    const { step, records } = begin();
    const every = 3_600_000 / 10_000;
    for (let n = 0; n < 10_000; n += 1) {
      const at = T0 + n * every;
      step(at, [n % 2 === 0 ? bad() : state()], [n % 2 === 0 ? changed('healthy', 'unhealthy', at) : changed('unhealthy', 'healthy', at)]);
    }
    expect(records()).toHaveLength(MOST_PER_HOUR);
    const joined = records().reduce((sum, { changes, furtherChanges = 0 }) => sum + changes.length + furtherChanges, 0);
    const suppressed = records().at(-1)?.suppressed?.count ?? 0;
    expect(suppressed).toBeGreaterThan(4_000);
    expect(joined).toBeLessThan(MOST_PER_HOUR * 40);
    expect(Math.max(...records().map((record) => JSON.stringify(record).length))).toBeLessThan(20_000);
  });

  it('has no control characters and no hidden ones, whoever wrote the text', async () => {
    const evil = '\u001b]0;x\u0007\n<script>alert(1)</script>\u202e\u009b31m';
    const { step, records } = begin({ lines: [{ text: evil }] });
    const event = { ...changed('healthy', 'unhealthy'), message: evil };
    step(T0, [bad({ holders: [held(evil)], processes: [{ pid: 1, name: evil }] })], [event]);
    await Promise.resolve();
    const [record] = records() as [IncidentRecord];
    expect(JSON.stringify(record)).not.toMatch(/[\p{Cc}\p{Cf}]|\\u00|\\n/u);
    const text = incidentText(record);
    expect(text.replaceAll('\n', '')).not.toMatch(/[\p{Cc}\p{Cf}]/u);
    expect(text.match(/<script>/g)?.length).toBe(3);
  });
});
