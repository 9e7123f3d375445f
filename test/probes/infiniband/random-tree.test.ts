// Project: programs. Histories in number.
import { readdirSync } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { StepGuard } from '../../../src/host/fs/step-guard.ts';
import type { Collection, DeviceReport } from '../../../src/model/collection.ts';
import { hours, minutes } from '../../../src/model/duration.ts';
import { seeded } from '../../support/seeded.ts';
import { listed } from '../../support/snapshots.ts';
import { toldOf as toldBy } from '../../support/told.ts';
import { probeRoot } from './harness.ts';
import { RandomTree } from './random-tree.ts';

const TURNS = 7;
const openFiles = (): number => readdirSync('/proc/self/fd').length;

/** The file that feeds this series is the one that had a value first. The number of unreadable files also depends on that. */
const BY_HISTORY = /received_bytes|unreadable_files|CountersUnreadable/;

/** Returns the collection without values that depend on earlier reads of a device. */
function toldOf({ reports }: Collection) {
  return reports.map(toldBy).map(({ device, readings, findings }) => ({
    device,
    readings: [...readings].filter(({ metric }) => !BY_HISTORY.test(metric)),
    findings: findings
      .filter(({ type, instance }) => type !== 'RateDegraded' && !BY_HISTORY.test(type) && instance?.endsWith('/observed') !== true)
      .map((finding) => (finding.type === 'PortDown' ? { type: finding.type, instance: finding.instance } : finding)),
  }));
}

const seriesOf = (report: DeviceReport) =>
  new Map(
    [...toldBy(report).readings].map(({ metric, labels, value }) => [`${metric}${JSON.stringify(labels)}`, { value, port: labels?.port }]),
  );

/** Every value is read at each collection, so no value may be old or from another device. Missing files may be found later. */
function expectNothingOld(long: Collection, fresh: Collection, what: string): void {
  expect(
    long.reports.map(({ device }) => device.id),
    what,
  ).toEqual(fresh.reports.map(({ device }) => device.id));
  for (const [at, report] of fresh.reports.entries()) {
    const now = seriesOf(report);
    const ports = new Set([...now.values()].map(({ port }) => port));
    for (const [series, { value, port }] of seriesOf(long.reports[at] as DeviceReport)) {
      const isSlow = /_info|pcie/.test(series) || BY_HISTORY.test(series) || !ports.has(port);
      if (!isSlow && value !== now.get(series)?.value) expect(value, `${what}: ${report.device.id} ${series}`).toBe(now.get(series)?.value);
    }
  }
}

describe('a probe that has read a tree for a while', () => {
  it.each(Array.from({ length: 16 }, (_, seed) => seed + 1))('reports the same as a new probe (seed %i)', (seed) => {
    const pick = seeded(seed);
    const before = openFiles();
    const tree = new RandomTree(pick);
    const long = probeRoot(tree.root, {}, pick(2) === 0 ? new StepGuard() : undefined);
    long.clock.nowMs = 1;
    for (let turn = 0; turn < TURNS; turn += 1) {
      for (let changes = pick(6); changes > 0; changes -= 1) tree.change();
      const isSlow = pick(2) === 0;
      long.clock.nowMs += isSlow ? hours(1) + minutes(1) : 1_000;
      const told = long.collect();
      const begun = probeRoot(tree.root);
      const fresh = begun.collect();
      void begun.probe.close?.();
      const what = `turn ${turn} after ${tree.done.slice(-12).join('; ')}`;
      if (!isSlow) expectNothingOld(told, fresh, what);
      else if (!isDeepStrictEqual(toldOf(told), toldOf(fresh))) expect(toldOf(told), what).toEqual(toldOf(fresh));
    }
    void long.probe.close?.();
    tree.remove();
    expect(openFiles()).toBe(before);
  });

  it('reads a device alone as with all others, or says that this is not enough', () => {
    let alone = 0;
    for (let seed = 1; seed <= 12; seed += 1) {
      const pick = seeded(seed);
      const tree = new RandomTree(pick);
      const long = probeRoot(tree.root);
      for (let turn = 0; turn < TURNS; turn += 1) {
        long.clock.nowMs += 1_000;
        const known = long.collect().reports.map(({ device }) => device.id);
        for (let changes = pick(3); changes > 0; changes -= 1) tree.change();
        const ids = new Set(known.filter(() => pick(3) === 0));
        const reports = long.probe.readAgain?.(ids);
        if (reports === undefined) continue;
        alone += reports.length;
        const begun = probeRoot(tree.root);
        const fresh = begun.collect().reports.filter(({ device }) => ids.has(device.id));
        void begun.probe.close?.();
        const inOrder = fresh.flatMap(({ device }) => reports.filter((report) => report.device.id === device.id));
        expectNothingOld(listed(inOrder), listed(fresh), `seed ${seed}, turn ${turn} after ${tree.done.slice(-12).join('; ')}`);
        expect(inOrder).toHaveLength(ids.size);
      }
      void long.probe.close?.();
      tree.remove();
    }
    expect(alone).toBeGreaterThan(30);
  });
});
