import { describe, expect, it } from 'vitest';
import { CollectionDecoder, CollectionEncoder } from '../../src/agent/collection-delta.ts';
import { SharedBoard } from '../../src/agent/shared-board.ts';
import type { Collection, DeviceReport } from '../../src/model/collection.ts';
import { Readings } from '../../src/model/readings.ts';
import { device, report } from '../support/snapshots.ts';

/** As between threads: on the board what fits there, the rest as a message, through which nothing but plain data comes. */
function link(ways: string[] = []): (collection: Collection) => Collection {
  const board = new SharedBoard();
  const encoder = new CollectionEncoder(board);
  const decoder = new CollectionDecoder(new SharedBoard(board.shared));
  return (collection) => {
    const delta = encoder.encode(collection);
    ways.push(delta === undefined ? 'board' : 'message');
    return decoder.decode(structuredClone(delta));
  };
}

const port = { port: '1' };
const hca = (id: string, ...values: (number | bigint)[]): DeviceReport =>
  report({
    device: device({ id }),
    readings: Readings.of(values.map((value, place) => ({ metric: `m${place}`, ...(place === 0 ? {} : { labels: port }), value }))),
    findings: [{ type: 'PortDown', instance: '1', reason: 'LinkDown', message: 'port 1 is active', status: false }],
  });
const of = (...reports: DeviceReport[]): Collection => ({ reports, problems: [] });

describe('a collection told as the difference to the one before', () => {
  it('arrives whole, whatever came before', () => {
    const send = link();
    const states: Collection[] = [
      of(hca('a', 1, 2), hca('b', 3)),
      of(hca('a', 1, 5), hca('b', 3)),
      of(hca('a', 2n ** 63n, 5), hca('b', 3)),
      of(hca('a', 7, 5), hca('c', 3), hca('b', 3)),
      of(hca('b', 3, 4)),
      { ...of(hca('b', 3, 4)), complete: false, problems: [{ code: 'x', message: 'y' }] },
      { ...of(), problems: [{ code: 'x', message: 'y' }] },
      of({ ...hca('b', 3, 4), processes: [{ pid: 1, memoryUsedBytes: 5 }] }),
      of({ ...hca('b', 3, 4), findings: [] }),
      of({ ...hca('b', 3, 4), device: device({ id: 'b', firmware: '2' }) }),
    ];
    for (const state of states) expect(send(state)).toEqual(state);
    for (const state of states.reverse()) expect(send(state)).toEqual(state);
  });

  it('goes over the board when only values changed, whole numbers of 63 bits included', () => {
    const ways: string[] = [];
    const send = link(ways);
    const series: (number | bigint)[][] = [
      [1, 2],
      [3, 2.5],
      [2n ** 53n, 2],
      [2n ** 63n - 1n, 2n ** 60n],
      [5, 2n ** 63n],
      [6, 7],
      [6, 7],
    ];
    for (const values of series) expect(send(of(hca('a', 0), hca('b', ...values)))).toEqual(of(hca('a', 0), hca('b', ...values)));
    expect(ways).toEqual(['message', 'board', 'board', 'board', 'message', 'board', 'board']);
    send({ ...of(hca('a', 0), hca('b', 6, 7)), complete: false });
    send({ ...of(hca('a', 0), hca('b', 6, 8)), complete: false });
    expect(send(of(hca('a', 0), hca('b', 6, 8)))).toEqual(of(hca('a', 0), hca('b', 6, 8)));
    expect(ways.slice(7)).toEqual(['message', 'board', 'message']);
  });

  it('goes as a message as far as more changed than the board holds', () => {
    const ways: string[] = [];
    const send = link(ways);
    const values = (start: number): number[] => Array.from({ length: 10_000 }, (_, n) => start + n);
    const both = (start: number): Collection => of(hca('a', ...values(start)), hca('b', ...values(start)));
    for (const start of [1, 2, 3]) expect(send(both(start))).toEqual(both(start));
    expect(ways).toEqual(['message', 'message', 'message']);
    expect(send(of(hca('a', ...values(9)), hca('b', ...values(3))))).toEqual(of(hca('a', ...values(9)), hca('b', ...values(3))));
    expect(ways.at(-1)).toBe('board');
  });

  it('is the same object when nothing changed, though the probe made everything anew', () => {
    const send = link();
    const first = send(of(hca('a', 1, 2), hca('b', 3)));
    expect(send(of(hca('a', 1, 2), hca('b', 3)))).toBe(first);
  });

  it('keeps all that did not change: reports, devices, findings, labels, readings', () => {
    const send = link();
    const first = send(of(hca('a', 1, 2), hca('b', 3)));
    const second = send(of(hca('a', 1, 9), hca('b', 3)));
    expect(second.reports[1]).toBe(first.reports[1]);
    const [before, now] = [first.reports[0], second.reports[0]] as [DeviceReport, DeviceReport];
    expect(now).not.toBe(before);
    expect(now.device).toBe(before.device);
    expect(now.findings).toBe(before.findings);
    expect(now.readings.series).toBe(before.readings.series);
    expect(now.readings.values).toEqual([1, 9]);
    expect(before.readings.values, 'what was handed out is not changed').toEqual([1, 2]);
  });

  it('takes a label that was left out as another series', () => {
    const send = link();
    const bare = of(report({ device: device({ id: 'a' }), readings: Readings.of([{ metric: 'm', value: 1 }]) }));
    const labelled = of(report({ device: device({ id: 'a' }), readings: Readings.of([{ metric: 'm', labels: port, value: 1 }]) }));
    for (const state of [bare, labelled, bare]) expect(send(state)).toEqual(state);
  });
});
