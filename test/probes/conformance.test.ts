import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { Assembler } from '../../src/agent/assemble.ts';
import type { Clock } from '../../src/host/clock.ts';
import { createHost } from '../../src/host/host.ts';
import { createExposition } from '../../src/metrics/page/exposition.ts';
import type { Collection, DeviceReport } from '../../src/model/collection.ts';
import type { Finding, Verdict } from '../../src/model/health.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import type { OracleFamily } from '../oracle/family.ts';
import { buildMachine, type Machine, readMachine } from '../support/machine.ts';
import { probeOptions } from '../support/probe-options.ts';
import { familyState, lookAt, podResources } from '../support/snapshots.ts';

/** A clock that does not move, so that a golden page depends only on the machine. */
const NOW_MS = Date.parse('2026-01-01T00:00:00Z');
const frozenClock: Clock = { now: () => NOW_MS, monotonic: () => 0, after: () => () => {} };

const cases = Object.keys(familyLoaders).flatMap((family) => {
  const folder = join('test/probes', family);
  const names = existsSync(folder) ? readdirSync(folder).filter((name) => existsSync(join(folder, name, 'machine.yaml'))) : [];
  return names.sort().map((name) => ({ family, name, folder: join(folder, name) }));
});

const NO_STATS = { node: 'node-1', version: '0', podResourcesRequests: [], podResourcesDurations: [] };

/** Metrics seen on any golden page, per family. */
const seen = new Map<string, Set<string>>();
/** Conditions that some golden machine reports as true and as false, per family. */
const told = { true: new Map<string, Set<string>>(), false: new Map<string, Set<string>>() };

/** Conditions that hold on some golden machine and that no machine can report as false, with the reason. */
const WITHOUT_END: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  neuron: {
    HbmUncorrectable: 'the driver prints 0 for a register that it cannot read',
    HbmRepairable: 'the driver prints 0 for a register that it cannot read',
    SramUncorrectable: 'the driver prints 0 for a register that it cannot read',
  },
};

/** Families with a folder of code. The oracle of the declared ones is that of test/probes/declared, whose code they share. */
const inCode = Object.keys(familyLoaders).filter((name) => existsSync(join('src/probes', name, 'index.ts')));

function note(family: string, { type, status }: Finding): void {
  // For a counter or a level, the policy decides both states.
  for (const value of status === undefined ? [true, false] : status === 'unknown' ? [] : [status]) {
    const types = told[`${value}`];
    types.set(family, (types.get(family) ?? new Set()).add(type));
  }
}

async function collect(family: DeviceFamily, { root, options, change }: Machine, reads: number = 1): Promise<Collection> {
  let elapsedMs = 0;
  const clock: Clock = { ...frozenClock, monotonic: () => elapsedMs };
  const host = createHost(
    { sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev'), share: join(root, 'share') },
    clock,
  );
  const probe = family.createProbe(host, probeOptions(family, options));
  try {
    for (let read = 1; read < reads; read += 1) {
      await probe.collect();
      elapsedMs += 60_000;
      if (read === reads - 1) change();
    }
    return await probe.collect();
  } finally {
    await probe.close?.();
  }
}

function snapshotOf(family: DeviceFamily, collection: Collection): Snapshot {
  const settings = { rules: { pools: [], families: new Map() }, specs: new Map(), staleAfterMs: 60_000, missingRetentionMs: 60_000 };
  const unjudged = (): ReadonlyMap<string, Verdict> => new Map();
  const families = [{ state: { ...familyState(family.name), problems: collection.problems }, latest: lookAt(collection, NOW_MS, 0) }];
  const inputs = { families, podResources: podResources([]), checkpoint: [] };
  return new Assembler(settings, unjudged).assemble(inputs, { nowMs: NOW_MS, monotonicMs: 0 });
}

/** By device, of those that have it. */
function byDevice<T>({ reports }: Collection, of: (report: DeviceReport) => T | undefined): Readonly<Record<string, T>> {
  return Object.fromEntries(
    reports.flatMap((report): [string, T][] => {
      const value = of(report);
      return value === undefined ? [] : [[report.device.id, value]];
    }),
  );
}

describe.each(cases)('$family on the machine $name', ({ family: familyName, folder }) => {
  it('gives its golden page and findings', async () => {
    const family = await (familyLoaders[familyName] as () => Promise<DeviceFamily>)();
    const file = readMachine(join(folder, 'machine.yaml'));
    const machine = buildMachine(file);
    try {
      const collection = await collect(family, machine, file.reads);
      const snapshot = snapshotOf(family, collection);
      const page = await createExposition({ families: [family], snapshot: () => snapshot, agent: () => NO_STATS }).devices();
      const facts = {
        listing: collection.listing,
        problems: collection.problems,
        findings: byDevice(collection, ({ read }) => read?.findings),
        ...(collection.reports.some(({ outOfBand }) => outOfBand !== undefined)
          ? { outOfBand: byDevice(collection, ({ outOfBand }) => outOfBand?.findings) }
          : {}),
        processes: byDevice(collection, ({ read }) => read?.processes),
        ...(collection.reports.some(({ device }) => device.peers !== undefined)
          ? { peers: byDevice(collection, ({ device }) => device.peers) }
          : {}),
      };
      const declared = new Set(family.metrics.map((metric) => metric.name));
      for (const part of collection.reports.flatMap(({ read, outOfBand }) => [read ?? [], outOfBand ?? []].flat())) {
        for (const reading of part.readings) {
          expect(declared, 'a reading of a metric that is not declared').toContain(reading.metric);
          seen.set(familyName, (seen.get(familyName) ?? new Set()).add(reading.metric));
        }
        for (const finding of part.findings) {
          expect(family.conditions.find(({ type }) => type === finding.type)?.reasons, finding.type).toContain(finding.reason);
          note(familyName, finding);
        }
      }
      for (const { device } of collection.reports) expect(family.kinds, `the kind of ${device.id}`).toContain(device.kind);
      for (const { read, outOfBand } of collection.reports) {
        const isOutOfBand = (wanted: string): boolean => family.conditions.find(({ type }) => type === wanted)?.outOfBand === true;
        expect(
          (read?.findings ?? []).filter(({ type }) => isOutOfBand(type)),
          'told by the device, and declared outOfBand',
        ).toEqual([]);
        expect(
          (outOfBand?.findings ?? []).filter(({ type }) => !isOutOfBand(type)),
          'told outOfBand, and not declared so',
        ).toEqual([]);
      }
      for (const problem of collection.problems) expect(family.problems.map(({ code }) => code)).toContain(problem.code);
      await expect(page).toMatchFileSnapshot(join(process.cwd(), folder, 'expected.prom'));
      const text = `${JSON.stringify(facts, null, 2).replaceAll(machine.root, '{root}')}\n`;
      const golden = join(process.cwd(), folder, 'expected.json');
      const kept = existsSync(golden) ? readFileSync(golden, 'utf8') : text;
      // The order of the members of an object has no meaning.
      await expect(isDeepStrictEqual(JSON.parse(text), JSON.parse(kept)) ? kept : text).toMatchFileSnapshot(golden);
    } finally {
      machine.remove();
    }
  });
});

describe.each(Object.keys(familyLoaders))('family %s', (name) => {
  it('describes what is special about each of its machines', () => {
    for (const each of cases.filter(({ family }) => family === name))
      expect(readMachine(join(each.folder, 'machine.yaml')).about, each.name).toBeTruthy();
  });

  it('declares names, units and labels as Prometheus wants them', async () => {
    const family = await (familyLoaders[name] as () => Promise<DeviceFamily>)();
    expect(family.name).toBe(name);
    for (const metric of family.metrics) {
      expect(metric.name).toMatch(/^device_[a-z0-9_]+$/);
      expect(metric.name.endsWith('_total'), `${metric.name} is a ${metric.type}`).toBe(metric.type === 'counter');
      expect(metric.source, `${metric.name} names its source`).not.toBe('');
      expect(metric.labels).not.toContain('device');
    }
    expect(new Set(family.metrics.map((metric) => metric.name)).size).toBe(family.metrics.length);
  });
});

describe.each(inCode)('oracle of %s', (name) => {
  it('declares conditions for its devices, and problems for failed reads', async () => {
    for (const file of ['oracle.ts', 'oracle.test.ts']) expect(readdirSync(join('test/probes', name))).toContain(file);
    const { oracle } = (await import(`./${name}/oracle.ts`)) as { readonly oracle: OracleFamily };
    expect(oracle.family).toBe(await familyLoaders[name]?.());
    const declared = new Set(oracle.family.conditions.map(({ type }) => type));
    const devices = oracle.devices.map(({ id }) => id);
    const paths = new Set(Object.keys(oracle.machine().files));
    expect([devices.length > 0, oracle.faults.length > 0], 'it has devices and faults').toEqual([true, true]);
    for (const { name: fault, condition, alsoRaises = [], shadows = [], devices: own = devices, shownBy } of oracle.faults) {
      const types = [condition, ...alsoRaises, ...shadows.map((shadow) => shadow.condition)];
      expect([...declared], `conditions of ${fault}`).toEqual(expect.arrayContaining(types));
      expect(devices, `devices of ${fault}`).toEqual(expect.arrayContaining([...own, ...shadows.map(({ device }) => device)]));
      expect([...paths], `files that show ${fault}`).toEqual(expect.arrayContaining(own.flatMap(shownBy)));
    }
    const leaves = oracle.blindings.map((blinding) => blinding.leaves);
    expect(leaves, 'a device can go unread, and be read in part').toEqual(expect.arrayContaining(['unread', 'read']));
    for (const each of [oracle.faults, oracle.blindings]) expect(new Set(each.map((one) => one.name)).size).toBe(each.length);
  });
});

describe('every condition that holds on a golden machine', () => {
  it.each(Object.keys(familyLoaders))('of %s is reported as false by some golden machine', (name) => {
    const types = (status: 'true' | 'false'): string[] => [...(told[status].get(name) ?? [])].sort();
    const ends = new Set(types('false'));
    expect(types('true').filter((type) => !ends.has(type))).toEqual(Object.keys(WITHOUT_END[name] ?? {}).sort());
  });
});

describe('every declared metric', () => {
  it.each(Object.keys(familyLoaders))('of %s appears on a golden page', async (name) => {
    const family = await (familyLoaders[name] as () => Promise<DeviceFamily>)();
    const missing = family.metrics.map((metric) => metric.name).filter((metric) => seen.get(name)?.has(metric) !== true);
    expect(missing).toEqual([]);
  });
});
