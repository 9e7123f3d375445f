import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Assembler, type Inputs, type Judged } from '../../src/agent/assemble.ts';
import { CollectionDecoder, CollectionEncoder } from '../../src/agent/collection-delta.ts';
import { servedIds } from '../../src/agent/served.ts';
import { SharedBoard } from '../../src/agent/shared-board.ts';
import type { Allocation } from '../../src/model/allocation.ts';
import type { Collection } from '../../src/model/collection.ts';
import type { Verdict } from '../../src/model/health.ts';
import type { MetricSpec } from '../../src/model/metric.ts';
import { allocation, familyState, podResources } from '../support/snapshots.ts';
import { type Choose, copied, RandomProbe, seeded } from './random-collections.ts';

const FAMILIES = ['toy', 'wire'];
const TURN_MS = 1_000;
const spec = (name: string, type: MetricSpec['type']): [string, MetricSpec] => [
  name,
  { name, type, help: '', labels: [], source: '', container: true },
];
const newest = { resource: 'example.com/newest', select: { driver: '1' }, pool: 2 };

/** By what a report says alone. */
const judge = (devices: readonly Judged[], nowMs: number): ReadonlyMap<string, Verdict> =>
  new Map(
    devices.map(({ key, report, stale }) => {
      const isSick = report.findings.some(({ status }) => status === true);
      return [key, { state: stale ? 'unknown' : isSick ? 'unhealthy' : 'healthy', sinceMs: nowMs, conditions: [] }];
    }),
  );

const assembler = (): Assembler =>
  new Assembler(
    {
      rules: { pools: [{ resource: 'example.com/pool', devices: ['d1*'] }], families: new Map() },
      served: (known) => servedIds([newest], known),
      specs: new Map([spec('m0', 'gauge'), spec('m1', 'counter'), spec('m2', 'gauge')]),
      staleAfterMs: 5 * TURN_MS,
      missingRetentionMs: 20 * TURN_MS,
    },
    judge,
  );

function link(): (collection: Collection) => Collection {
  const board = new SharedBoard();
  const [encoder, decoder] = [new CollectionEncoder(board), new CollectionDecoder(board)];
  return (collection) => decoder.decode(structuredClone(encoder.encode(collection)));
}

function allocations(pick: Choose): Allocation[] {
  return Array.from({ length: pick(6) }, () => {
    const resource = ['example.com/toy', 'example.com/pool', 'example.com/newest'][pick(3)] as string;
    return allocation({ resource, deviceId: resource === 'example.com/toy' ? `d${pick(5)}` : `${pick(2)}`, pod: `p${pick(3)}` });
  });
}

describe('a snapshot made of what changed', () => {
  it.each(Array.from({ length: 30 }, (_, seed) => seed + 1))('is the one made of everything anew (seed %i)', (seed) => {
    const pick = seeded(seed);
    const parts = FAMILIES.map((family) => ({
      family,
      probe: new RandomProbe(pick, family),
      send: link(),
      kept: undefined as Told | undefined,
    }));
    const [quick, plain] = [assembler(), assembler()];
    let held = podResources([]);
    for (let turn = 0; turn < 150; turn += 1) {
      const nowMs = turn * TURN_MS;
      for (const part of parts) {
        // Now and then a family does not answer.
        if (pick(6) === 0) continue;
        const told = part.probe.collect();
        part.kept = { quick: part.send(told), plain: told, readAtMs: nowMs };
      }
      if (pick(4) === 0) held = podResources(allocations(pick));
      else if (pick(3) === 0) held = structuredClone(held);
      const inputs = (of: (told: Told) => Collection): Inputs => ({
        families: parts.map(({ family, kept }) => ({
          state: familyState(family),
          latest: kept && { collection: of(kept), readAtMs: kept.readAtMs },
        })),
        podResources: held,
        checkpoint: [],
      });
      const one = quick.assemble(
        inputs(({ quick }) => quick),
        nowMs,
      );
      const other = plain.assemble(
        inputs(({ plain }) => copied(plain)),
        nowMs,
      );
      if (!isDeepStrictEqual(one, other)) expect(one, `turn ${turn}`).toEqual(other);
    }
  });
});

interface Told {
  readonly quick: Collection;
  readonly plain: Collection;
  readonly readAtMs: number;
}
