import { once } from 'node:events';
import { isDeepStrictEqual } from 'node:util';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { CollectionDecoder, type CollectionDelta, CollectionEncoder } from '../../src/agent/collection-delta.ts';
import { SharedBoard } from '../../src/agent/shared-board.ts';
import type { Collection } from '../../src/model/collection.ts';
import { seeded } from '../support/seeded.ts';
import { copied, RandomProbe } from './random-collections.ts';

const TURNS = 200;
/** So few that now and then more changes than fits. */
const ROOM = 12;

/** Encoder and decoder as between threads, without the threads: through a message comes nothing but plain data. */
function link(): (collection: Collection) => Collection {
  const board = new SharedBoard(ROOM);
  const encoder = new CollectionEncoder(board);
  const decoder = new CollectionDecoder(new SharedBoard(board.shared));
  return (collection) => decoder.decode(structuredClone(encoder.encode(collection)));
}

/** A thread that is given collections as plain data, and tells them by the built encoder. */
const THREAD = `
const { parentPort, workerData } = require('node:worker_threads');
(async () => {
  const { CollectionEncoder } = await import(workerData.root + 'agent/collection-delta.js');
  const { SharedBoard } = await import(workerData.root + 'agent/shared-board.js');
  const { Readings } = await import(workerData.root + 'model/readings.js');
  const encoder = new CollectionEncoder(new SharedBoard(workerData.board));
  parentPort.on('message', (plain) => {
    const reports = plain.reports.map((report) => ({ ...report, readings: new Readings(report.readings.series, report.readings.values) }));
    parentPort.postMessage(encoder.encode({ ...plain, reports }));
  });
})();`;

/** What is no number differs from itself. */
const isSame = (a: Collection, b: Collection): boolean =>
  isDeepStrictEqual(a, b) && !a.reports.some(({ readings }) => readings.values.some(Number.isNaN));

/** Only what differs is worth the making of a list. */
function same(arrived: Collection, told: Collection, what: string): void {
  if (!isDeepStrictEqual(arrived, told)) expect(arrived, what).toStrictEqual(told);
}

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
      if (earlier !== undefined && isSame(told, earlier.told)) expect(arrived, `turn ${turn}`).toBe(earlier.arrived);
      earlier = { told: copied(told), arrived };
    }
  });

  it('arrive so from a real thread', async () => {
    const board = new SharedBoard(ROOM);
    const root = new URL('../../dist/', import.meta.url).href;
    const thread = new Worker(THREAD, { eval: true, workerData: { board: board.shared, root } });
    const decoder = new CollectionDecoder(board);
    const probe = new RandomProbe(seeded(99));
    for (let turn = 0; turn < 3 * TURNS; turn += 1) {
      const told = probe.collect();
      thread.postMessage(told);
      const [delta] = (await once(thread, 'message')) as [CollectionDelta | undefined];
      same(decoder.decode(delta), copied(told), `turn ${turn}`);
    }
    await thread.terminate();
  });
});
