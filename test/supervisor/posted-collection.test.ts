import { describe, expect, it } from 'vitest';
import type { Collection, DeviceReport } from '../../src/model/collection.ts';
import type { Readings } from '../../src/model/readings.ts';
import { CollectionReceiver, CollectionSender, type PostedCollection } from '../../src/supervisor/posted-collection.ts';
import { RandomProbe } from '../support/random-collections.ts';
import { seeded } from '../support/seeded.ts';
import { device, listed, outOfBand, plain, report } from '../support/snapshots.ts';

/** Sender and receiver as between two threads, without the threads. */
function link(): { post(collection: Collection): Collection<Readings>; readonly posted: PostedCollection[] } {
  const [sender, receiver] = [new CollectionSender(), new CollectionReceiver()];
  const posted: PostedCollection[] = [];
  return {
    posted,
    post(collection) {
      const message = structuredClone(sender.encode(collection));
      posted.push(message);
      return receiver.decode(message);
    },
  };
}

const hca = (id: string, ...values: (number | bigint)[]): DeviceReport =>
  report({
    device: device({ id }),
    readings: values.map((value, at) => ({ metric: `m${at}`, ...(at === 0 ? {} : { labels: { port: '1' } }), value })),
    findings: [{ type: 'PortDown', instance: '1', reason: 'LinkDown', message: 'port 1 is active', status: false }],
  });

describe('a posted collection', () => {
  it.each(Array.from({ length: 30 }, (_, seed) => seed + 1))('arrives as it was sent, whatever came before (seed %i)', (seed) => {
    const probe = new RandomProbe(seeded(seed));
    const { post } = link();
    for (let turn = 0; turn < 100; turn += 1) {
      const sent = probe.collect();
      expect(plain(post(sent))).toStrictEqual(sent);
    }
  });

  it.each(Array.from({ length: 10 }, (_, seed) => seed + 1))('goes on after devices that were read again (seed %i)', (seed) => {
    const pick = seeded(seed);
    const probe = new RandomProbe(pick);
    const [sender, receiver] = [new CollectionSender(), new CollectionReceiver()];
    for (let turn = 0; turn < 60; turn += 1) {
      const sent = probe.collect();
      const before = receiver.decode(structuredClone(sender.encode(sent)));
      expect(plain(before)).toStrictEqual(sent);
      const next = probe.collect().reports;
      const again = next.filter((one) => pick(2) === 0 && one.read !== undefined);
      const reads = new Map(again.map((one) => [one.device.id, { read: one.read }]));
      const posted = reads.size < again.length ? undefined : sender.encodeReads(again);
      if (posted === undefined) continue;
      const read = receiver.decodeReads(structuredClone(posted));
      expect(read.ids).toEqual(again.map(({ device: { id } }) => id));
      const expected = sent.reports.map((one) => ({ ...one, ...reads.get(one.device.id) }));
      expect(plain({ ...sent, reports: read.reports }).reports).toStrictEqual(expected);
      for (const [at, report] of read.reports.entries()) if (!read.ids.includes(report.device.id)) expect(report).toBe(before.reports[at]);
    }
  });

  it('has the series of a device only when they changed', () => {
    const { post, posted } = link();
    const side = { ...hca('b', 3), outOfBand: outOfBand({ readings: [{ metric: 'x', value: 1 }] }) };
    const states = [
      listed([hca('a', 1, 2), hca('b', 3)]),
      listed([hca('a', 2n ** 63n, 5), hca('b', 4)]),
      listed([hca('a', 1, 2), side]),
      listed([hca('a', 1, 2)]),
      listed([hca('a', 7, 8, 9)]),
    ];
    for (const state of states) expect(plain(post(state))).toStrictEqual(state);
    const hasSeries = posted.map(({ reports }) => reports.map((one) => (one?.outOfBand ?? one?.read)?.series !== undefined));
    expect(hasSeries).toEqual([[true, true], [false, false], [false, true], [false], [true]]);
  });

  it('is numbers alone while nothing else changed, however the probe made its objects', () => {
    const { post, posted } = link();
    for (const value of [1, 2, 3]) post(listed([hca('a', value, 5), hca('b', 6)]));
    expect(posted.slice(1).map(({ reports, values }) => ({ reports, values }))).toEqual([
      { reports: [{ read: { hasValues: true } }, undefined], values: Float64Array.of(2, 5) },
      { reports: [{ read: { hasValues: true } }, undefined], values: Float64Array.of(3, 5) },
    ]);
  });

  it('arrives as the same objects where nothing changed', () => {
    const { post } = link();
    const [first, second, third] = [
      post(listed([hca('a', 1, 2, 3), hca('b', 4)])),
      post(listed([hca('a', 1, 7, 3), hca('b', 4)])),
      post(listed([hca('a', 1, 7, 3), hca('b', 4, 5)])),
    ].map(({ reports }) => reports);
    const [before, after] = [first?.[0]?.read, second?.[0]?.read];
    expect(second?.[1]).toBe(first?.[1]);
    expect(second?.[0]?.device).toBe(first?.[0]?.device);
    expect(after?.findings).toBe(before?.findings);
    expect(after?.readings.values).toEqual(Float64Array.of(1, 7, 3));
    expect(after?.readings.series).toBe(before?.readings.series);
    expect(third?.[0]).toBe(second?.[0]);
    expect(third?.[1]?.read?.readings.series).not.toBe(second?.[1]?.read?.readings.series);
  });

  it('has the times of values that an earlier read gave, and the same series before and after', () => {
    const { post, posted } = link();
    const [one, other] = [hca('a', 1, 2, 3), hca('b', 4, 5)];
    const kept = (report: DeviceReport, ...times: readonly (number | undefined)[]): DeviceReport => {
      const readings = [...(report.read?.readings ?? [])].map((reading, at) =>
        times[at] === undefined ? reading : { ...reading, readMs: times[at] },
      );
      return { ...report, read: { findings: [], ...report.read, readings } };
    };
    const states = [
      listed([one, other]),
      listed([kept(one, undefined, 7, 7), kept(other, 7, 9)]),
      listed([kept(one, undefined, undefined, 7), kept(other, undefined, 7)]),
      listed([one, other]),
    ];
    for (const state of states) expect(plain(post(state))).toStrictEqual(state);
    expect(posted.map(({ reports }) => reports.map((posted) => posted?.read?.times))).toEqual([
      [undefined, undefined],
      [
        [undefined, 7, 7],
        [7, 9],
      ],
      [
        [undefined, undefined, 7],
        [undefined, 7],
      ],
      [[], []],
    ]);
  });

  it('has the findings of a device only when they changed', () => {
    const { post, posted } = link();
    const reason = { type: 'PortDown', instance: '1', reason: 'LinkDown', message: 'port 1 is down' };
    const down = report({ device: device({ id: 'b' }), findings: [{ ...reason, status: true }] });
    const states = [
      listed([hca('a', 1), hca('b', 1)]),
      listed([hca('a', 2), hca('b', 2)]),
      listed([hca('a', 2), down]),
      listed([hca('a', 2), { device: device({ id: 'b' }) }]),
      listed([hca('a', 2), down]),
      listed([down, hca('a', 2)]),
    ];
    for (const state of states) expect(plain(post(state))).toStrictEqual(state);
    expect(posted.map(({ reports }) => reports.map((one) => one?.read?.findings !== undefined))).toEqual([
      [true, true],
      [false, false],
      [false, true],
      [false, false],
      [false, true],
      [true, true],
    ]);
  });

  it('keeps the names and states of processes', () => {
    const { read, ...rest } = hca('a', 1);
    const processes = [{ pid: 7, name: 'python', isStuck: true as const, memoryUsedBytes: 5, podUid: 'u', containerId: 'c' }, { pid: 8 }];
    const sent = listed([{ ...rest, read: { readings: [], findings: [], ...read, processes } }]);
    expect(plain(link().post(sent))).toStrictEqual(sent);
  });

  it('is refused by a receiver that never had its series', () => {
    const sender = new CollectionSender();
    sender.encode(listed([hca('a', 1)]));
    expect(() => new CollectionReceiver().decode(sender.encode(listed([hca('a', 2)])))).toThrow('a device was never posted');
  });
});
