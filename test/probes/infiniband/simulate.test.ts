import { afterEach, describe, expect, it } from 'vitest';
import type { Collection } from '../../../src/model/collection.ts';
import { family, resolve } from '../../../src/probes/infiniband/index.ts';
import { simulate } from '../../../src/sim/families/infiniband/simulate.ts';
import type { Scenario } from '../../../src/sim/family-simulation.ts';
import { findingIn, placeHardware, probeRoot, reportOf, valueIn } from './harness.ts';

const scenario = { counts: { infiniband: 2, 'infiniband.vf': 5 }, elapsedMs: 10_000 };
const cleanups: (() => void)[] = [];

function collectSimulated(part: Partial<Scenario> = {}): Collection {
  const placed = placeHardware(simulate({ ...scenario, ...part }));
  cleanups.push(placed.remove);
  return probeRoot(placed.root).collect();
}

afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

describe('the simulated node', () => {
  it('shows physical and virtual functions with their parents', () => {
    const collection = collectSimulated();
    const { reports, problems } = collection;
    expect(problems).toEqual([]);
    expect(reports.map(({ device }) => [device.id, device.kind, device.pciAddress, device.parent])).toEqual([
      ['mlx5_0', 'pf', '0000:10:00.0', undefined],
      ['mlx5_1', 'pf', '0000:20:00.0', undefined],
      ['mlx5_2', 'vf', '0000:10:00.1', 'mlx5_0'],
      ['mlx5_3', 'vf', '0000:20:00.1', 'mlx5_1'],
      ['mlx5_4', 'vf', '0000:10:00.2', 'mlx5_0'],
      ['mlx5_5', 'vf', '0000:20:00.2', 'mlx5_1'],
      ['mlx5_6', 'vf', '0000:10:00.3', 'mlx5_0'],
    ]);
    const { device } = reportOf(collection, 'mlx5_0');
    expect(device).toMatchObject({ model: 'MT4129', vendor: 'NVIDIA', driver: 'mlx5_core', firmware: '28.41.1000', numaNode: 0 });
    const pciPath = expect.stringMatching(/^pci[0-9a-f:]+\/[0-9a-f:.]+\/[0-9a-f:.]+$/);
    const characterDevices = ['uverbs0', 'umad0', 'issm0', 'rdma_cm'].map((name) => `/dev/infiniband/${name}`);
    expect(device).toMatchObject({ characterDevices, pciPath });
  });

  it('reads no counter as unreadable, and has a healthy port', () => {
    const report = reportOf(collectSimulated(), 'mlx5_0');
    expect(valueIn(report, 'device_infiniband_unreadable_files')).toBe(0);
    expect(valueIn(report, 'device_link_up', { port: '1' })).toBe(1);
    expect(report.findings.filter(({ status }) => status === true)).toEqual([]);
  });

  it('increases its counters by the traffic of the elapsed time', () => {
    const bytes = (elapsedMs: number) => valueIn(reportOf(collectSimulated({ elapsedMs }), 'mlx5_0'), 'device_received_bytes_total');
    expect(bytes(0)).toBe(0);
    expect(bytes(10_000)).toBe(4_100_000_000 * 10 * 4);
    expect(bytes(20_000)).toBe(4_100_000_000 * 20 * 4);
  });

  it('moves nothing on a card that is silent, whose port stays up', () => {
    const faults = [{ name: 'silent', device: 'mlx5_1', fromMs: 90_000, untilMs: 130_000 }];
    const bytes = (elapsedMs: number) =>
      valueIn(reportOf(collectSimulated({ elapsedMs, faults }), 'mlx5_1'), 'device_received_bytes_total');
    expect(bytes(120_000)).toBe(bytes(90_000));
    expect(Number(bytes(140_000))).toBeGreaterThan(Number(bytes(120_000)));
    expect(valueIn(reportOf(collectSimulated({ elapsedMs: 100_000, faults }), 'mlx5_1'), 'device_link_up')).toBe(1);
  });

  it('loses the link of a card, and of its functions, while the port is down', () => {
    const faults = [{ name: 'port-down', device: 'mlx5_1', fromMs: 90_000, untilMs: 130_000 }];
    const down = collectSimulated({ elapsedMs: 100_000, faults });
    expect(valueIn(reportOf(down, 'mlx5_0'), 'device_link_up')).toBe(1);
    expect(valueIn(reportOf(down, 'mlx5_1'), 'device_link_up')).toBe(0);
    expect(valueIn(reportOf(down, 'mlx5_3'), 'device_link_up')).toBe(0);
    expect(valueIn(reportOf(down, 'mlx5_1'), 'device_errors_total', { port: '1', kind: 'link_downed' })).toBe(1);
    expect(findingIn(reportOf(down, 'mlx5_1'), 'PortDown', '1')).toMatchObject({ level: false, atLeast: false, reason: 'LinkPolling' });
    const up = reportOf(collectSimulated({ elapsedMs: 130_000, faults }), 'mlx5_1');
    expect(valueIn(up, 'device_link_up')).toBe(1);
    expect(valueIn(up, 'device_errors_total', { port: '1', kind: 'link_downed' })).toBe(1);
    expect(valueIn(up, 'device_received_bytes_total'), 'no traffic while it was down').toBe(4_059_000_000 * 90 * 4);
  });

  it('counts the errors of a bad cable, and keeps the counts afterwards', () => {
    const faults = [{ name: 'errors', device: 'mlx5_0', fromMs: 10_000, untilMs: 70_000 }];
    const countsAt = (elapsedMs: number, id = 'mlx5_0'): unknown[] => {
      const report = reportOf(collectSimulated({ elapsedMs, faults }), id);
      return ['link_error_recovery', 'receive'].map((kind) => valueIn(report, 'device_errors_total', { port: '1', kind }));
    };
    expect([9_000, 40_000, 70_000, 900_000].map((ms) => countsAt(ms))).toEqual([
      [0, 0],
      [7, 600],
      [15, 1_200],
      [15, 1_200],
    ]);
    expect(countsAt(40_000, 'mlx5_1')).toEqual([0, 0]);
  });

  it('allocates ids that resolve, except those of the pool that needs a rule', () => {
    const { resources } = simulate(scenario);
    expect(resources.map(({ resource, deviceIds }) => [resource, deviceIds.length])).toEqual([
      ['device-agent.dev/vf', 5],
      ['nvidia.com/ib_pf', 1],
      ['rdma/hca_shared', 64],
    ]);
    const devices = collectSimulated().reports.map(({ device }) => device);
    for (const { resource, deviceIds } of resources) {
      const found = deviceIds.map((deviceId) => resolve({ resource, deviceId }, devices));
      if (resource === 'rdma/hca_shared') expect(found.flat()).toEqual([]);
      else expect(found.map((ids) => ids.length)).toEqual(deviceIds.map(() => 1));
    }
  });

  it('has an address for each of 136 functions and for 136 cards', () => {
    for (const [hcas, vfs] of [
      [8, 128],
      [136, 0],
      [1, 600],
    ] as const) {
      const { links } = simulate({ ...scenario, counts: { infiniband: hcas, 'infiniband.vf': vfs } });
      expect(Object.keys(links).filter((path) => path.startsWith('sys/bus/pci/devices/'))).toHaveLength(hcas + vfs);
    }
  });

  it('is nothing without cards, and the same for the same moment', () => {
    expect(simulate({ ...scenario, counts: { 'infiniband.vf': 5 } })).toEqual({ files: {}, links: {}, resources: [] });
    expect(simulate(scenario)).toEqual(simulate(scenario));
  });
});

describe('the simulated use', () => {
  const bytesOf = (id: string, elapsedMs: number, activeMs?: number): number => {
    const use = activeMs === undefined ? {} : { '0000:10:00.0': { activeMs } };
    return Number(valueIn(reportOf(collectSimulated({ elapsedMs, use }), id), 'device_received_bytes_total'));
  };

  it('gives traffic while a pod works on the device, and keeps the counter afterwards', () => {
    const working = bytesOf('mlx5_0', 20_000, 10_000);
    expect(working).toBeGreaterThan(10 * 1e9);
    expect(bytesOf('mlx5_0', 60_000, 10_000) - working).toBeLessThan(40 * 10_000);
  });

  it('is less than the threshold of use on a device that no pod held', () => {
    const { traffic } = family.activity ?? {};
    const perSecond = (bytesOf('mlx5_0', 600_000) - bytesOf('mlx5_0', 0)) / 600;
    expect(perSecond).toBeGreaterThan(0);
    expect(2 * perSecond).toBeLessThan(traffic?.above ?? 0);
  });

  it('does not concern the card of the pool, which is always in use', () => {
    expect(bytesOf('mlx5_1', 10_000)).toBeGreaterThan(1e9);
  });
});
