import { describe, expect, it } from 'vitest';
import { entriesOf, entryReader, PodLabels, toRecord } from '../../../src/accounting/ledger/entry.ts';
import { parseQuery } from '../../../src/accounting/ledger/report.ts';
import type { Snapshot } from '../../../src/model/snapshot.ts';
import { containerEntry, deviceEntry, START_MS } from './sample.ts';

const entryOf = await entryReader();
const back = (entry: Parameters<typeof toRecord>[0]) => entryOf(JSON.parse(JSON.stringify(toRecord(entry))));

describe('entries', () => {
  it('come back from JSON as they were', () => {
    const entry = containerEntry(3, {
      receivedBytes: 18_446_744_073_709_551_615n,
      transmittedBytes: 12,
      labels: { team: 'a' },
      uid: 'u',
      model: 'M',
    });
    expect(back(entry)).toEqual(entry);
    expect(back(deviceEntry(2, { parent: 'toy/whole' }))).toEqual(deviceEntry(2, { parent: 'toy/whole' }));
  });

  it.each([
    {},
    { kind: 'pod' },
    { ...containerEntry(1), namespace: 1 },
    { ...containerEntry(1), idleSeconds: -1 },
    { ...containerEntry(1), idleSeconds: null },
    { ...containerEntry(1), busySeconds: { compute: 'x' } },
    { ...containerEntry(1), busySeconds: undefined },
    { ...containerEntry(1), labels: { team: 1 } },
    { ...containerEntry(1), energyJoules: 'much' },
    { ...deviceEntry(1), parent: 7 },
    { ...deviceEntry(1), unallocatedSeconds: Number.NaN },
  ])('of a foreign form are refused: %j', (record) => {
    expect(entryOf(record as Record<string, unknown>)).toBeUndefined();
  });

  it('have facts of the device, and the labels of the pod as long as a snapshot has the account', () => {
    const { kind: _, atMs: __, family: ___, ...account } = containerEntry(1, { uid: 'u-1' });
    const snapshotOf = (uid: string | undefined, one: object = account) =>
      ({
        takenAtMs: START_MS,
        devices: [{ key: 'toy/toy-0', device: { family: 'toy', id: 'toy-0', model: 'T1', parent: 'toy-w' } }],
        usage: { containers: [one], devices: [] },
        pods: new Map(uid === undefined ? [] : [['ml\u0000train-0', { uid, labels: { team: `of ${uid}` } }]]),
      }) as unknown as Snapshot;
    const labels = new PodLabels();
    const entryAt = (snapshot: Snapshot) => {
      labels.update(snapshot);
      return entriesOf(snapshot, (one) => labels.of(one))[0];
    };
    expect(entryAt(snapshotOf('u-2'))).not.toHaveProperty('labels');
    expect(entryAt(snapshotOf('u-1'))).toMatchObject({ labels: { team: 'of u-1' }, model: 'T1', parent: 'toy/toy-w' });
    const ended = { ...account, endedAtMs: START_MS };
    expect(entryAt(snapshotOf(undefined, ended))).toMatchObject({ labels: { team: 'of u-1' } });
    expect(entryAt(snapshotOf('u-2', ended))).toMatchObject({ labels: { team: 'of u-1' } });
    labels.update({ ...snapshotOf('u-2'), usage: { containers: [], devices: [] } });
    expect(labels.of(account)).toBeUndefined();
  });
});

describe('parseQuery', () => {
  it('takes durations and groups', () => {
    expect(parseQuery({}).query).toEqual({ since: 86_400_000, by: 'namespace' });
    expect(parseQuery({ since: '7d', by: 'label:app.kubernetes.io/name' }).query).toEqual({
      since: 604_800_000,
      by: 'label:app.kubernetes.io/name',
    });
  });

  it.each([
    [{ since: '0' }, /^since must/],
    [{ since: 'yesterday' }, /^since must/],
    [{ since: ['1h', '2h'] }, /^since must/],
    [{ since: '3651d' }, /^since must/],
    [{ by: 'node' }, /^by must/],
    [{ by: 'label:' }, /^by must/],
    [{ by: 'label:a\nb' }, /^by must/],
  ])('refuses %j', (texts, problem) => {
    expect(parseQuery(texts).problem).toMatch(problem);
  });
});
