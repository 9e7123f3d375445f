import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Assembler } from '../../src/agent/assemble.ts';
import type { Clock } from '../../src/host/clock.ts';
import { createHost } from '../../src/host/host.ts';
import { createExposition } from '../../src/metrics/page/exposition.ts';
import type { Collection, DeviceReport, SideReport } from '../../src/model/collection.ts';
import type { Verdict } from '../../src/model/health.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { busConditions } from '../../src/probes/kit/pcie/bus-conditions.ts';
import type { OracleFamily } from '../oracle/family.ts';
import { linesOfSamples } from '../support/golden-samples.ts';
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

/** The file that declares metrics or conditions of a family, or all else of it. */
const codeOf = (family: string, part: string): string =>
  inCode.includes(family) ? `src/probes/${family}/${part}.ts` : `families/${family}.yaml`;

/** What a golden machine gives, with `{root}` in place of its temporary directory. */
interface Golden {
  readonly collection: Collection;
  readonly lines: string;
}

const loadFamily = async (name: string): Promise<DeviceFamily> => await (familyLoaders[name] as () => Promise<DeviceFamily>)();

async function readGolden({ family: familyName, folder }: (typeof cases)[number]): Promise<Golden> {
  const family = await loadFamily(familyName);
  const file = readMachine(join(folder, 'machine.yaml'));
  const machine = buildMachine(file);
  try {
    const collection = await collect(family, machine, file.reads);
    const snapshot = snapshotOf(family, collection);
    const page = await createExposition({ families: [family], snapshot: () => snapshot, agent: () => NO_STATS }).devices();
    const samples = linesOfSamples(
      page,
      collection.reports.map(({ device }) => device.id),
    );
    const lines = [...factsOf(collection), ...samples].map((line) => `${line}\n`);
    return { collection, lines: lines.join('').replaceAll(machine.root, '{root}') };
  } finally {
    machine.remove();
  }
}

const goldenByFolder = new Map<string, Promise<Golden>>();

/** Each machine is read once, by the first test that needs it. */
function goldenOf(machine: (typeof cases)[number]): Promise<Golden> {
  const golden = goldenByFolder.get(machine.folder) ?? readGolden(machine);
  goldenByFolder.set(machine.folder, golden);
  return golden;
}

/** What all golden machines of a family read from devices and from other sources. */
async function readsOf(name: string): Promise<readonly SideReport[]> {
  const parts: SideReport[] = [];
  for (const machine of cases.filter(({ family }) => family === name))
    for (const { read, outOfBand } of (await goldenOf(machine)).collection.reports) parts.push(...[read ?? [], outOfBand ?? []].flat());
  return parts;
}

/** JSON whose first members say what it is. */
function written(item: object): string {
  const first = ['type', 'code', 'instance', 'status', 'level', 'count', 'reason', 'message'];
  const rank = (name: string): string => (first.includes(name) ? String(first.indexOf(name)) : name);
  return JSON.stringify(Object.fromEntries(Object.entries(item).toSorted(([a], [b]) => (rank(a) < rank(b) ? -1 : 1))));
}

/** What devices have beside readings. */
const PARTS: Readonly<Record<string, (report: DeviceReport) => readonly object[] | undefined>> = {
  read: ({ read }) => read?.findings,
  outOfBand: ({ outOfBand }) => outOfBand?.findings,
  process: ({ read }) => read?.processes,
  peer: ({ device }) => device.peers,
};

/** A line for each problem, device and finding. A finding that several devices have stands once, with their numbers. */
function factsOf({ listing, problems, reports }: Collection): readonly string[] {
  const lines = [`listing ${listing}`, ...problems.map((problem) => `problem ${written(problem)}`)];
  reports.forEach((report, index) => {
    const parts = Object.entries(PARTS).flatMap(([name, of]) => (of(report) === undefined ? [] : [name]));
    lines.push([`device ${index + 1} ${report.device.id}:`, ...parts].join(' '));
  });
  for (const [name, of] of Object.entries(PARTS)) {
    const devices = new Map<string, number[]>();
    reports.forEach((report, index) => {
      for (const text of (of(report) ?? []).map(written)) devices.set(text, [...(devices.get(text) ?? []), index + 1]);
    });
    lines.push(...[...devices].map(([text, numbers]) => `${name} ${numbers} ${text}`));
  }
  return lines;
}

describe.each(cases)('$family on the machine $name', (machine) => {
  it('gives its golden page and findings', async () => {
    const { collection, lines } = await goldenOf(machine);
    const family = await loadFamily(machine.family);
    const declared = new Set(family.metrics.map((metric) => metric.name));
    for (const { device, read, outOfBand } of collection.reports) {
      for (const part of [read ?? [], outOfBand ?? []].flat()) {
        for (const reading of part.readings)
          expect(declared, `a metric that ${codeOf(machine.family, 'metrics')} does not declare`).toContain(reading.metric);
        for (const { type, reason } of part.findings)
          expect(
            family.conditions.find((condition) => condition.type === type)?.reasons,
            `a reason of ${type} that ${codeOf(machine.family, 'conditions')} does not declare`,
          ).toContain(reason);
      }
      expect(family.kinds, `the kind of ${device.id}`).toContain(device.kind);
      const isOutOfBand = (wanted: string): boolean => family.conditions.find(({ type }) => type === wanted)?.outOfBand === true;
      expect(
        (read?.findings ?? []).filter(({ type }) => isOutOfBand(type)),
        'reported by the device, and declared outOfBand',
      ).toEqual([]);
      expect(
        (outOfBand?.findings ?? []).filter(({ type }) => !isOutOfBand(type)),
        'reported outOfBand, and not declared so',
      ).toEqual([]);
    }
    const codes = family.problems.map(({ code }) => code);
    for (const { code } of collection.problems) expect(codes, codeOf(machine.family, 'declaration')).toContain(code);
    const { like, isReadAlike } = readMachine(join(machine.folder, 'machine.yaml'));
    const folder = isReadAlike === true ? join(machine.folder, '..', like as string) : machine.folder;
    const path = join(folder, 'expected.txt');
    const hint = `${path} differs: correct the code, or run "npm test -- conformance -u" and check the file`;
    await expect(lines, hint).toMatchFileSnapshot(join(process.cwd(), path));
  });
});

describe.each(Object.keys(familyLoaders))('family %s', (name) => {
  it('describes what is special about each of its machines', () => {
    for (const each of cases.filter(({ family }) => family === name))
      expect(readMachine(join(each.folder, 'machine.yaml')).about, each.name).toBeTruthy();
  });

  it('declares names, units and labels as Prometheus wants them', async () => {
    const family = await loadFamily(name);
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
      expect([...paths], `files that show ${fault}`).toEqual(
        expect.arrayContaining(own.flatMap(shownBy).map((path) => path.split(': ')[0])),
      );
    }
    const leaves = oracle.blindings.map((blinding) => blinding.leaves);
    expect(leaves, 'a device can go unread, and be read in part').toEqual(expect.arrayContaining(['unread', 'read']));
    for (const each of [oracle.faults, oracle.blindings]) expect(new Set(each.map((one) => one.name)).size).toBe(each.length);
  });
});

describe('every condition that holds on a golden machine', () => {
  it.each(Object.keys(familyLoaders))('of %s is reported as false by some golden machine', async (name) => {
    const findings = (await readsOf(name)).flatMap((part) => part.findings);
    // For a counter or a level, the policy decides both states.
    const typesWith = (value: boolean): Set<string> =>
      new Set(findings.flatMap(({ type, status = value }) => (status === value ? [type] : [])));
    const ends = typesWith(false);
    // What the bus shows is denied only of a device that was told otherwise before: bus.test.ts.
    const isOfBus = (wanted: string): boolean => busConditions.some(({ type }) => type === wanted);
    const endless = [...typesWith(true)].filter((type) => !ends.has(type) && !isOfBus(type)).sort();
    expect(endless, `add a machine that reports them as false: test/probes/${name}/<case>/machine.yaml`).toEqual(
      Object.keys(WITHOUT_END[name] ?? {}).sort(),
    );
  });
});

/** Metrics that the read of a machine does not give, with the test that has them. */
const ON_REQUEST: Readonly<Record<string, string>> = {
  device_nvidia_xid_errors_total: 'incidents/fault-ledger.test.ts',
  device_nvidia_driver_release_end_timestamp_seconds: 'nvidia/nvml-release.test.ts',
  // Of NVLinks, which only the library tells; pages of other families have it.
  device_link_speed_bytes_per_second: 'nvidia/nvlink-health.test.ts',
  device_fec_blocks_total: 'kit/ethernet-errors.test.ts',
  device_symbol_errors_total: 'kit/ethernet-errors.test.ts',
};

describe('every declared metric', () => {
  it.each(Object.keys(familyLoaders))('of %s appears on a golden page', async (name) => {
    const seen = new Set([
      ...(await readsOf(name)).flatMap((part) => [...part.readings].map(({ metric }) => metric)),
      ...Object.keys(ON_REQUEST),
    ]);
    const { metrics } = await loadFamily(name);
    const unseen = metrics.map(({ name: metric }) => metric).filter((metric) => !seen.has(metric));
    expect(unseen, `add what shows them to a machine: test/probes/${name}/<case>/machine.yaml`).toEqual([]);
  });
});
