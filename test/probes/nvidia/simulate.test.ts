import { afterEach, describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/model/collection.ts';
import type { Reading } from '../../../src/model/metric.ts';
import { resolve } from '../../../src/probes/nvidia/devices.ts';
import { family } from '../../../src/probes/nvidia/index.ts';
import { simulate } from '../../../src/sim/families/nvidia/simulate.ts';
import type { Scenario, SimulatedUse } from '../../../src/sim/family-simulation.ts';
import { kernelLogText } from '../../../src/sim/kernel-log.ts';
import { type Told, toldOf } from '../../support/told.ts';
import { type Machine, placeHardware, reportOf, valueIn } from './harness.ts';

const scenario = { counts: { nvidia: 4 }, elapsedMs: 10_000 };
const machines: Machine[] = [];
afterEach(() => {
  for (const machine of machines.splice(0)) machine.remove();
});

async function collectSimulated(part: Partial<Scenario> = {}): Promise<Collection> {
  const machine = placeHardware(simulate({ ...scenario, ...part }));
  machines.push(machine);
  return await machine.collect();
}

const SECOND = 'GPU-5e1f0000-0000-4000-8000-000000000002';

describe('the simulated node', () => {
  it.each([
    [1, 1, 0],
    [2, 2, 0],
    [4, 4, 3],
    [16, 16, 3],
  ])('of %d GPUs is read as %d GPUs and %d instances, each under the ids of its resources', async (gpus, whole, split) => {
    const collection = await collectSimulated({ counts: { nvidia: gpus } });
    expect(collection.problems).toEqual([]);
    expect(collection.listing).toBe('complete');
    const kinds = collection.reports.map(({ device }) => device.kind);
    expect([kinds.filter((kind) => kind === 'gpu').length, kinds.filter((kind) => kind === 'mig').length]).toEqual([whole, split]);
    const devices = collection.reports.map(({ device }) => device);
    const offered = simulate({ ...scenario, counts: { nvidia: gpus } }).resources.flatMap(({ resource, deviceIds }) =>
      deviceIds.map((deviceId) => ({ resource, deviceId })),
    );
    expect(offered).toHaveLength(split === 0 ? whole : whole - 1 + split);
    for (const { resource, deviceId } of offered) expect(resolve({ resource, deviceId }, devices)).toEqual([deviceId]);
  });

  it('reports the position of each GPU and the nodes of an instance', async () => {
    const { reports } = await collectSimulated();
    const [first] = reports;
    expect(first?.device).toMatchObject({
      pciAddress: '0008:01:00.0',
      numaNode: 0,
      model: 'NVIDIA H100 80GB HBM3',
      driver: 'nvidia',
      driverVersion: '580.105.08',
    });
    expect(first?.device).toMatchObject({ index: '0', minor: 0, pciPath: 'pci0008:00/0008:00:01.0/0008:01:00.0' });
    const instance = reports.find(({ device }) => device.kind === 'mig');
    expect(instance?.device).toMatchObject({ parent: 'GPU-5e1f0000-0000-4000-8000-000000000004', numaNode: 1 });
    expect(instance?.device.characterDevices?.filter((name) => name.includes('caps'))).toHaveLength(2);
    expect(instance?.device.profile).toBe('1g.10gb');
  });

  it.each([
    ['hot', ['ThermalSlowdown']],
    ['ecc', ['UncorrectableEcc', 'RowRemapPending']],
    ['xid79', ['GpuLost']],
    ['xid31', []],
    ['stranger', []],
    ['spin', []],
  ])('has the fault %s from its beginning to its end, on one GPU only', async (name, types) => {
    const faults = [{ name, device: SECOND, fromMs: 60_000, untilMs: 120_000 }];
    const holding = async (elapsedMs: number, id = SECOND): Promise<readonly string[]> =>
      reportOf(await collectSimulated({ elapsedMs, faults }), id)
        .findings.filter(({ status }) => status === true)
        .map(({ type }) => type);
    expect(await holding(59_999)).toEqual([]);
    expect(await holding(60_000)).toEqual(types);
    expect(await holding(60_000, 'GPU-5e1f0000-0000-4000-8000-000000000001')).toEqual([]);
    expect(await holding(120_000)).toEqual([]);
  });

  it('shows a stranger as a process outside of pods, with its memory', async () => {
    const faults = [{ name: 'stranger', device: SECOND, fromMs: 0 }];
    const { read } = (await collectSimulated({ faults, use: {} })).reports.find(({ device }) => device.id === SECOND) ?? {};
    expect(read?.processes).toEqual([expect.objectContaining({ pid: 50_001, name: 'xmrig', memoryUsedBytes: 6_000 * 1_048_576 })]);
    expect(read?.processes?.[0]).not.toHaveProperty('podUid');
  });

  it('adds a line to the kernel log for each fault that has one, and never changes a line', () => {
    const faults = [
      { name: 'xid31', device: SECOND, fromMs: 1_000, untilMs: 2_000 },
      { name: 'hot', device: SECOND, fromMs: 3_000 },
      { name: 'xid79', device: SECOND, fromMs: 4_000, untilMs: 5_000 },
    ];
    const logAt = (elapsedMs: number): string => kernelLogText(simulate({ ...scenario, elapsedMs, faults }).kernelLog ?? []);
    expect([0, 1_000, 3_000, 4_000, 9_000].map((ms) => logAt(ms).trimEnd().split('\n').length)).toEqual([1, 2, 2, 4, 4]);
    for (const ms of [0, 1_000, 4_000]) expect(logAt(9_000).startsWith(logAt(ms))).toBe(true);
    expect(logAt(9_000)).toContain('4,3,4000000,-;NVRM: Xid (PCI:0008:02:00): 79');
  });

  it('has a program that never answers while it hangs', () => {
    const programOf = (faults: Scenario['faults']): string =>
      simulate({ ...scenario, ...(faults && { faults }) }).files['bin/nvidia-smi'] as string;
    expect(programOf([{ name: 'hung-program', fromMs: 0 }])).toContain('sleep');
    expect(programOf([{ name: 'hung-program', fromMs: 0, untilMs: 10_000 }])).toBe(programOf(undefined));
  });

  it('has counters that never fall', async () => {
    const counters = new Set(family.metrics.filter(({ type }) => type === 'counter').map(({ name }) => name));
    const before = new Map<string, number | bigint>();
    const nameOf = ({ metric, labels }: Reading): string => `${metric}${JSON.stringify(labels ?? {})}`;
    for (let elapsedMs = 0; elapsedMs <= 400_000; elapsedMs += 25_000) {
      const faults = [
        { name: 'hot', device: SECOND, fromMs: 60_000, untilMs: 200_000 },
        { name: 'ecc', device: SECOND, fromMs: 120_000 },
      ];
      const { reports } = await collectSimulated({ counts: { nvidia: 2 }, elapsedMs, faults });
      for (const { device, readings } of reports.map(toldOf)) {
        for (const reading of readings.filter(({ metric }) => counters.has(metric))) {
          const name = `${device.id} ${nameOf(reading)}`;
          expect(reading.value, name).toBeGreaterThanOrEqual(before.get(name) ?? 0);
          before.set(name, reading.value);
        }
      }
    }
    expect([...before.values()].some((value) => value > 0)).toBe(true);
  });

  it('changes its load over time', async () => {
    const loads = new Set<number | bigint | undefined>();
    for (const elapsedMs of [0, 20_000, 40_000]) {
      loads.add(valueIn(reportOf(await collectSimulated({ elapsedMs }), SECOND), 'device_utilization_ratio', { engine: 'gpu' }));
    }
    expect(loads.size).toBe(3);
  });

  it('is nothing without GPUs, and the same for the same moment', () => {
    expect(simulate({ ...scenario, counts: {} })).toMatchObject({ files: {}, links: {}, resources: [] });
    expect(simulate(scenario)).toEqual(simulate(scenario));
  });
});

describe('the simulated use', () => {
  const uuid = (number: number): string => `GPU-5e1f0000-0000-4000-8000-00000000000${number}`;
  const instance = (number: number): string => `MIG-5e1f0000-0000-4000-8000-00000000000${number}`;
  const POD = '5b3c8f0e-1d2a-4c6b-9e7f-0123456789ab';
  const heldBy = (podUid: string, isIdle = false): SimulatedUse => ({ activeMs: 0, holder: { podUid, program: 'worker', isIdle } });
  const utilization = (report: Told): unknown => valueIn(report, 'device_utilization_ratio', { engine: 'gpu' });

  it('is none on a GPU that no pod holds, and memory alone under an idle program', async () => {
    const collection = await collectSimulated({
      use: { [uuid(1)]: heldBy(POD), [uuid(2)]: heldBy(POD, true), [uuid(3)]: { activeMs: 9 } },
    });
    const [busy, idle, free] = [1, 2, 3].map((number) => reportOf(collection, uuid(number))) as [Told, Told, Told];
    expect(utilization(busy)).toBeGreaterThan(0.05);
    expect([utilization(idle), utilization(free)]).toEqual([0, 0]);
    const used = (report: Told): number => Number(valueIn(report, 'device_memory_used_bytes'));
    expect(used(idle)).toBeGreaterThan(1e10);
    expect(used(free)).toBe(0);
    expect(valueIn(free, 'device_nvidia_processes')).toBe(0);
  });

  it('belongs to one process of the pod on all its GPUs and instances', async () => {
    const OTHER = '6b3c8f0e-1d2a-4c6b-9e7f-0123456789ab';
    const use = { [uuid(1)]: heldBy(POD), [uuid(2)]: heldBy(POD, true), [instance(1)]: heldBy(OTHER) };
    const { reports } = await collectSimulated({ use });
    const owners = reports.map(({ device, read }) => [device.id, read?.processes?.map(({ pid, name, podUid }) => [pid, name, podUid])]);
    expect(owners).toEqual([
      [uuid(1), [[20_000, 'worker', POD]]],
      [uuid(2), [[20_000, 'worker', POD]]],
      [uuid(3), undefined],
      [uuid(4), [[20_026, 'worker', OTHER]]],
      [instance(0), undefined],
      [instance(1), [[20_026, 'worker', OTHER]]],
      [instance(2), undefined],
    ]);
  });

  it('of another pod on the same GPU is another process', () => {
    const startOf = (podUid: string): string | undefined =>
      simulate({ ...scenario, use: { [uuid(1)]: heldBy(podUid) } }).files['proc/20000/stat'];
    expect(startOf(POD)).toBe(startOf(POD));
    expect(startOf(POD)).not.toBe(startOf('6b3c8f0e-1d2a-4c6b-9e7f-0123456789ab'));
  });
});
