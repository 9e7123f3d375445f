import { describe, expect, it } from 'vitest';
import { placementFindings } from '../../src/agent/use.ts';
import { conditionPolicy, createPolicy } from '../../src/health/policy/policy.ts';
import { POOR_PLACEMENT } from '../../src/health/policy/use-conditions.ts';
import { localities } from '../../src/join/localities.ts';
import type { DeviceRole } from '../../src/model/container-locality.ts';
import type { Device } from '../../src/model/device.ts';
import type { HeldRecord } from '../../src/model/device-record.ts';
import type { HealthState, Verdict } from '../../src/model/health.ts';
import { TOPOLOGIES } from '../model/topologies.ts';
import { allocation } from '../support/snapshots.ts';

/** Eight GPUs on two NUMA nodes, linked in a cube, and four adapters. */
const devices = TOPOLOGIES[0]?.devices ?? [];
const keyOf = ({ family, id }: Device): string => `${family}/${id}`;
const byKey = new Map(devices.map((device) => [keyOf(device), device]));
const roles = new Map<string, DeviceRole>([
  ['nvidia', 'gpu'],
  ['infiniband', 'nic'],
]);

/** Findings while one container holds `own` and others hold `taken`. */
function findingsOf(own: readonly string[], taken: readonly string[], more: { readonly sick?: string; readonly unplaced?: string } = {}) {
  const deviceOf = (key: string): Device | undefined => {
    const device = byKey.get(key);
    if (device?.id !== more.unplaced || device === undefined) return device;
    const { pciPath: _, numaNode: __, peers: ___, ...rest } = device;
    return rest;
  };
  const facts = { device: deviceOf, roleOf: (family: string) => roles.get(family), cpuNodes: new Map<number, number>() };
  const holder = (id: string, pod: string) => allocation({ deviceId: id, pod });
  const states = own.map((id) => {
    const device = devices.find((one) => one.id === id) as Device;
    return { allocation: holder(id, 'train-0'), devices: [keyOf(device)], held: false };
  });
  const held = devices.map((device) => {
    const holders = own.includes(device.id)
      ? [holder(device.id, 'train-0')]
      : taken.includes(device.id)
        ? [holder(device.id, 'other')]
        : [];
    return { key: keyOf(device), device, holders } as unknown as HeldRecord;
  });
  const state = (id: string): HealthState => (id === more.sick ? 'unhealthy' : 'healthy');
  const verdicts = new Map(
    devices.map((device): [string, Verdict] => [keyOf(device), { state: state(device.id), sinceMs: 0, conditions: [] }]),
  );
  const near = localities(states, { ...facts, exclusive: [] });
  return placementFindings(held, near, verdicts, facts);
}

describe('a container with GPUs that are far from each other', () => {
  it('is told which free set is nearer', () => {
    const findings = findingsOf(['GPU0', 'GPU5', 'mlx5_0'], []);
    const expected = {
      type: POOR_PLACEMENT,
      status: true,
      reason: 'NearerSetFree',
      message:
        'ml/train-0/main has SYS between GPUs, SYS to the network; with nvidia/GPU2, nvidia/GPU3 it would have NV2 between GPUs, PHB to the network',
    };
    expect([findings.get('nvidia/GPU0'), findings.get('nvidia/GPU5')]).toEqual([expected, expected]);
    expect(findings.get('nvidia/GPU1')).toMatchObject({ status: false });
    expect(findings.has('infiniband/mlx5_0')).toBe(false);
  });

  it('is told nothing while no nearer set is free and sound', () => {
    const status = (...args: Parameters<typeof findingsOf>) => findingsOf(...args).get('nvidia/GPU0')?.status;
    const others = ['GPU1', 'GPU2', 'GPU3', 'GPU4', 'GPU6', 'GPU7'];
    expect(status(['GPU0', 'GPU5'], others)).toBe(false);
    expect(status(['GPU0', 'GPU5'], others.slice(1))).toBe(true);
    expect(status(['GPU0', 'GPU5'], others.slice(1), { sick: 'GPU1' })).toBe(false);
    expect(status(['GPU0', 'GPU3'], [])).toBe(false);
  });

  it('is not judged while a way of it is unknown', () => {
    expect(findingsOf(['GPU0', 'GPU5'], [], { unplaced: 'GPU5' }).has('nvidia/GPU0')).toBe(false);
  });
});

it('the condition is off unless the configuration enables it', () => {
  const enabled = (conditions: Readonly<Record<string, { enabled: boolean }>>) => {
    const { policy, problems } = createPolicy({ specs: { toy: [] }, config: { conditions } });
    expect(problems).toEqual([]);
    return conditionPolicy(policy, 'toy', POOR_PLACEMENT).enabled;
  };
  expect(enabled({})).toBe(false);
  expect(enabled({ '*.PoorPlacement': { enabled: true } })).toBe(true);
  expect(enabled({ 'toy.PoorPlacement': { enabled: true } })).toBe(true);
});
