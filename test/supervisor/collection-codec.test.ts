import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { Collection, DeviceReport } from '../../src/model/collection.ts';
import { Readings } from '../../src/model/readings.ts';
import { CollectionDecoder, CollectionEncoder, type EncodedCollection } from '../../src/supervisor/collection-codec.ts';
import { copied, RandomProbe } from '../support/random-collections.ts';
import { seeded } from '../support/seeded.ts';
import { aside, device, listed, report } from '../support/snapshots.ts';

const TURNS = 200;

/** Encoder and decoder as between threads, without the threads: through a message comes nothing but plain data. */
function link(): (collection: Collection, messages?: EncodedCollection[]) => Collection {
  const [encoder, decoder] = [new CollectionEncoder(), new CollectionDecoder()];
  return (collection, messages) => {
    const message = structuredClone(encoder.encode(collection));
    messages?.push(message);
    return decoder.decode(message);
  };
}

/** Only what differs is worth the making of a list. */
function same(arrived: Collection, told: Collection, what: string): void {
  if (!isDeepStrictEqual(arrived, told)) expect(arrived, what).toStrictEqual(told);
}

const port = { port: '1' };
const hca = (id: string, ...values: (number | bigint)[]): DeviceReport =>
  report({
    device: device({ id }),
    readings: Readings.of(values.map((value, place) => ({ metric: `m${place}`, ...(place === 0 ? {} : { labels: port }), value }))),
    findings: [{ type: 'PortDown', instance: '1', reason: 'LinkDown', message: 'port 1 is active', status: false }],
  });
const xid = aside({
  readings: Readings.of([{ metric: 'xids', value: 2n ** 60n }]),
  findings: [{ type: 'Xid', instance: '79', reason: 'Logged', message: 'Xid 79', status: true }],
});

describe('collections that follow each other in any order', () => {
  it.each(Array.from({ length: 40 }, (_, seed) => seed + 1))('arrive as they were told (seed %i)', (seed) => {
    const probe = new RandomProbe(seeded(seed));
    const send = link();
    let earlier: { readonly told: Collection; readonly arrived: Collection } | undefined;
    for (let turn = 0; turn < TURNS; turn += 1) {
      const told = probe.collect();
      const arrived = send(told);
      same(arrived, told, `turn ${turn}`);
      if (earlier !== undefined) same(earlier.arrived, earlier.told, `what was handed out before turn ${turn}`);
      earlier = { told: copied(told), arrived };
    }
  });
});

describe('a collection on its way', () => {
  it('arrives whole, whatever came before', () => {
    const send = link();
    const states: Collection[] = [
      listed([hca('a', 1, 2), hca('b', 3)]),
      listed([hca('a', 2n ** 63n, 5), hca('b', 3)]),
      listed([hca('a', 7, 5), hca('c', 3), hca('b', 3)]),
      listed([hca('b', 3, 4)], { listing: 'partial', problems: [{ code: 'x', message: 'y' }], source: 'nvidia-smi' }),
      listed([], { listing: 'absent' }),
      listed([report({ ...hca('b').read, device: device({ id: 'b' }), processes: [{ pid: 1, memoryUsedBytes: 5 }] })]),
      listed([{ ...hca('a', 1), aside: xid }, { device: device({ id: 'b' }), aside: xid }, { device: device({ id: 'c' }) }]),
      listed([{ device: device({ id: 'a' }), aside: xid }]),
      listed([{ ...hca('a', 9), aside: aside({}) }]),
    ];
    for (const state of states) expect(send(state)).toStrictEqual(state);
    for (const state of states.reverse()) expect(send(state)).toStrictEqual(state);
  });

  it('brings its series along once, as long as they stay the same, though the probe makes them anew', () => {
    const send = link();
    const messages: EncodedCollection[] = [];
    const parts = (): unknown[] =>
      messages
        .splice(0)
        .flatMap(({ reports }) => reports.flatMap(({ read, aside: other }) => [read, other].map((part) => part?.readings.series?.length)));
    const state = (a: number, b: number): Collection => listed([{ ...hca('a', a, a), aside: xid }, hca('b', b)]);
    send(state(1, 2), messages);
    expect(parts()).toEqual([2, 1, 1, undefined]);
    send(state(1, 2), messages);
    send(copied(state(3, 4)), messages);
    expect(parts()).toEqual(Array.from({ length: 8 }, () => undefined));
    send(listed([hca('a', 1, 1, 5), hca('b', 2)]), messages);
    expect(parts(), 'another series').toEqual([3, undefined, undefined, undefined]);
    send(state(1, 2), messages);
    expect(parts(), 'what went comes anew').toEqual([2, 1, undefined, undefined]);
    send(listed([]), messages);
    send(listed([hca('b', 2)]), messages);
    expect(parts()).toEqual([1, undefined]);
  });

  it('takes a label that was left out as another series', () => {
    const send = link();
    const bare = listed([report({ device: device({ id: 'a' }), readings: Readings.of([{ metric: 'm', value: 1 }]) })]);
    const labelled = listed([report({ device: device({ id: 'a' }), readings: Readings.of([{ metric: 'm', labels: port, value: 1 }]) })]);
    for (const state of [bare, labelled, bare]) expect(send(state)).toEqual(state);
  });

  it('shares its series with the one before, and nothing that was handed out changes', () => {
    const send = link();
    const first = send(listed([hca('a', 1, 2)]));
    const second = send(listed([hca('a', 1, 9)]));
    expect(second.reports[0]?.read?.readings.series).toBe(first.reports[0]?.read?.readings.series);
    expect(first.reports[0]?.read?.readings.values).toEqual([1, 2]);
  });

  it('is not made up where its series never came', () => {
    const encoder = new CollectionEncoder();
    encoder.encode(listed([hca('a', 1)]));
    const later = encoder.encode(listed([hca('a', 2)]));
    expect(() => new CollectionDecoder().decode(later)).toThrow('the series of toy/a read were never sent');
  });
});
