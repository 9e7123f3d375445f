import { describe, expect, it } from 'vitest';
import type { LedgerEntry } from '../../src/accounting/ledger.ts';
import type { Grouping } from '../../src/accounting/query.ts';
import type { UsageRow } from '../../src/accounting/report.ts';
import type { ContainerUsage } from '../../src/model/usage.ts';
import { containerEntry, HOUR, HOUR_MS, START_MS, usageReport } from './sample.ts';

const report = (entries: readonly LedgerEntry[], fromHours: number, toHours: number, by: Grouping = 'namespace') =>
  usageReport(entries, { sinceMs: START_MS + fromHours * HOUR_MS, untilMs: START_MS + toHours * HOUR_MS, by });
const row = (rows: readonly UsageRow[], name: string): UsageRow => {
  const found = rows.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no row ${name}`);
  return found;
};

describe('usageReport', () => {
  it('counts what two agents saw of one container once, and a container that came back twice', () => {
    const began = (hour: number, atHour: number, part: Partial<ContainerUsage> = {}) => ({
      ...part,
      sinceMs: START_MS + hour * HOUR_MS,
      allocatedSeconds: (atHour - hour) * HOUR,
    });
    const twins = [containerEntry(4, began(1, 4)), containerEntry(3, began(1.001, 3)), containerEntry(2, began(0.999, 2))];
    const later = containerEntry(6, began(5, 6));
    expect(row(report([...twins, later], 0, 6).rows, 'ml').allocatedSeconds).toBe(4 * HOUR);
  });

  it('counts the difference of the totals at both ends of the span', () => {
    const entries = [1, 2, 3, 4].map((at) => containerEntry(at, { idleSeconds: at * 600, energyJoules: at * 1_000 }));
    expect(report(entries.slice(0, 3), 1, 3).rows).toEqual([
      {
        name: 'ml',
        containers: 1,
        allocatedSeconds: 2 * HOUR,
        shareSeconds: 2 * HOUR,
        idleSeconds: 1_200,
        idleRatio: 1_200 / 7_200,
        idleShareSeconds: 1_200,
        unobservedSeconds: 0,
        busySeconds: {},
        energyJoules: 2_000,
      },
    ]);
  });

  it('has the cost of the shares that have a price, of the model before that of the family', () => {
    const span = { sinceMs: START_MS, untilMs: START_MS + 10 * HOUR_MS, by: 'pod' as const };
    const costOf = (prices: Readonly<Record<string, number>>): number | undefined =>
      usageReport([containerEntry(2, { model: 'T1' })], { ...span, prices }).rows[0]?.cost;
    expect(costOf({ toy: 2, T1: 4 })).toBeCloseTo(8);
    expect(costOf({ toy: 2 })).toBeCloseTo(4);
    expect(costOf({ other: 2 })).toBeUndefined();
    expect(costOf({ toy: 0 })).toBe(0);
  });

  it('counts only the devices of a family that is asked for', () => {
    const entries = [containerEntry(2), containerEntry(3, { device: 'other/0' })];
    const span = { sinceMs: START_MS, untilMs: START_MS + 10 * HOUR_MS, by: 'pod' as const };
    expect(usageReport(entries, span).total.allocatedSeconds).toBe(5 * HOUR);
    expect(usageReport(entries, { ...span, family: 'other' })).toMatchObject({ family: 'other', total: { allocatedSeconds: 3 * HOUR } });
    expect(usageReport(entries, { ...span, family: 'none' }).rows).toEqual([]);
  });

  it('takes a part of the time between two lines for a begin that lies between them', () => {
    // From hour 1 to hour 2 it was idle for 40 minutes, a quarter of which is 10 minutes.
    const entries = [
      containerEntry(1, { idleSeconds: 0 }),
      containerEntry(2, { idleSeconds: 2_400 }),
      containerEntry(3, { idleSeconds: 2_400 }),
    ];
    expect(report(entries, 1.75, 3).total).toMatchObject({ allocatedSeconds: 1.25 * HOUR, idleSeconds: 600 });
    expect(report(entries, 0.5, 3).total).toMatchObject({ allocatedSeconds: 2.5 * HOUR, idleSeconds: 2_400 });
  });

  it('counts from the begin of an account that began within the span', () => {
    expect(report([containerEntry(5)], -10, 10).total.allocatedSeconds).toBe(5 * HOUR);
    expect(report([containerEntry(4)], 1, 10).total.allocatedSeconds).toBe(3 * HOUR);
  });

  it('counts nothing twice when lines are repeated or come out of order', () => {
    const entries = [3, 1, 2, 2, 3, 1].map((at) => containerEntry(at));
    expect(report(entries, 0.5, 10).total).toMatchObject({ containers: 1, allocatedSeconds: 2.5 * HOUR });
  });

  it('takes an account whose UID becomes known later as one account', () => {
    expect(report([containerEntry(1), containerEntry(2, { uid: 'u-1' })], 0, 10).total.allocatedSeconds).toBe(2 * HOUR);
  });

  it('tells two accounts of one pod name apart by their begin', () => {
    const next = containerEntry(4, { sinceMs: START_MS + 3 * HOUR_MS, allocatedSeconds: HOUR, shareSeconds: HOUR, uid: 'u-2' });
    expect(report([containerEntry(2, { uid: 'u-1', endedAtMs: START_MS + 2 * HOUR_MS }), next], 0, 10).total).toMatchObject({
      containers: 2,
      allocatedSeconds: 3 * HOUR,
    });
  });

  it('leaves out what ended before the span, and what begins after it', () => {
    const ended = containerEntry(1, { endedAtMs: START_MS + HOUR_MS });
    const later = containerEntry(9, { pod: 'later', sinceMs: START_MS + 8 * HOUR_MS });
    expect(report([containerEntry(0.5), ended, later], 2, 6)).toMatchObject({ rows: [], total: { containers: 0, allocatedSeconds: 0 } });
  });

  it('counts time that went back after a crash once', () => {
    const entries = [containerEntry(2), containerEntry(2.1, { allocatedSeconds: 1.9 * HOUR }), containerEntry(3)];
    expect(report(entries.slice(0, 2), 2, 2.1).total.allocatedSeconds).toBe(0);
    expect(report(entries, 0, 3).total.allocatedSeconds).toBe(3 * HOUR);
  });

  it('gives each holder of a shared device its share, and of its idle time the same part', () => {
    const entries = ['a', 'b', 'c', 'd'].map((pod) => containerEntry(4, { pod, shareSeconds: HOUR, idleSeconds: 2 * HOUR }));
    const { rows, total } = report(entries, 0, 4, 'pod');
    expect(rows.map(({ name, shareSeconds, idleShareSeconds }) => [name, shareSeconds, idleShareSeconds])).toEqual(
      ['a', 'b', 'c', 'd'].map((pod) => [`ml/${pod}`, HOUR, HOUR / 2]),
    );
    expect(total).toMatchObject({
      containers: 4,
      allocatedSeconds: 16 * HOUR,
      shareSeconds: 4 * HOUR,
      idleShareSeconds: 2 * HOUR,
      idleRatio: 0.5,
    });
  });

  it('does not count unobserved time as idle or busy', () => {
    const [only] = report([containerEntry(4, { unobservedSeconds: 3 * HOUR, idleSeconds: HOUR })], 0, 4).rows;
    expect(only).toMatchObject({ unobservedSeconds: 3 * HOUR, idleRatio: 1 });
    expect(report([containerEntry(4, { unobservedSeconds: 4 * HOUR })], 0, 4).rows[0]).not.toHaveProperty('idleRatio');
  });

  it('sorts by idle share, then by share', () => {
    const entries = [
      containerEntry(4, { namespace: 'busy', device: 'toy/1' }),
      containerEntry(4, { namespace: 'waste', device: 'toy/2', idleSeconds: 3 * HOUR }),
      containerEntry(4, { namespace: 'some', device: 'toy/3', idleSeconds: HOUR }),
      containerEntry(2, { namespace: 'also', device: 'toy/4' }),
    ];
    expect(report(entries, 0, 4).rows.map(({ name }) => name)).toEqual(['waste', 'some', 'busy', 'also']);
  });

  it('groups by resource, device and label', () => {
    const entries = [
      containerEntry(2, { labels: { team: 'vision' } }),
      containerEntry(2, { pod: 'other', device: 'toy/toy-1', resource: 'example.com/more', labels: { team: 'speech' } }),
      containerEntry(1, { pod: 'plain', device: 'toy/toy-2' }),
    ];
    expect(report(entries, 0, 4, 'resource').rows.map(({ name }) => name)).toEqual(['example.com/toy', 'example.com/more']);
    expect(report(entries, 0, 4, 'label:team').rows.map(({ name, shareSeconds }) => [name, shareSeconds])).toEqual([
      ['speech', 2 * HOUR],
      ['vision', 2 * HOUR],
      ['', HOUR],
    ]);
    expect(report(entries, 0, 4, 'label:constructor').rows.map(({ name }) => name)).toEqual(['']);
    expect(row(report(entries, 0, 4, 'device').rows, 'toy/toy-1').shareSeconds).toBe(2 * HOUR);
  });

  it('leaves out what no account told, and adds what some told', () => {
    const entries = [
      containerEntry(2, { receivedBytes: 2n ** 60n, busySeconds: { traffic: 60 } }),
      containerEntry(2, { device: 'toy/toy-1', busySeconds: { compute: 30, traffic: 5 }, energyEstimatedJoules: 7 }),
    ];
    const [only] = report(entries, 0, 4).rows;
    expect(only).toMatchObject({ receivedBytes: 2n ** 60n, energyEstimatedJoules: 7, busySeconds: { compute: 30, traffic: 65 } });
    expect(only).not.toHaveProperty('energyJoules');
  });
});
