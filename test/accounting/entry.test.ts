import { describe, expect, it } from 'vitest';
import { entryReader, toRecord } from '../../src/accounting/ledger.ts';
import { parseQuery } from '../../src/accounting/query.ts';
import { containerEntry } from './sample.ts';

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
  });

  it.each([
    {},
    { ...containerEntry(1), atMs: undefined },
    { ...containerEntry(1), namespace: 1 },
    { ...containerEntry(1), idleSeconds: -1 },
    { ...containerEntry(1), idleSeconds: null },
    { ...containerEntry(1), busySeconds: { compute: 'x' } },
    { ...containerEntry(1), busySeconds: undefined },
    { ...containerEntry(1), labels: { team: 1 } },
    { ...containerEntry(1), energyJoules: 'much' },
    { ...containerEntry(1), model: 7 },
    { ...containerEntry(1), allocatedSeconds: Number.NaN },
  ])('of a foreign form are refused: %j', (record) => {
    expect(entryOf(record as Record<string, unknown>)).toBeUndefined();
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
