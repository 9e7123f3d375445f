import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { DeviceAccess } from '../../src/model/access.ts';
import type { Device } from '../../src/model/device.ts';
import type { HealthState } from '../../src/model/health.ts';
import type { PluginResource } from '../../src/model/plugin-resource.ts';
import { type Access, allocateContainer } from '../../src/plugin/allocation/allocate.ts';
import { Refusal } from '../../src/plugin/allocation/answer.ts';
import { healthByState, takeInventory } from '../../src/plugin/offers/inventory.ts';
import { access as fpga } from '../../src/probes/fpga/index.ts';
import { nodeAccess, SRIOV_VARIABLE } from '../../src/probes/kit/node-access.ts';
import { deviceState, TOY, toyAccess } from './support.ts';

interface Case {
  readonly name: string;
  readonly resource: PluginResource;
  readonly ids: readonly string[];
  readonly devices: readonly (Partial<Device> & Pick<Device, 'id'> & { readonly health?: HealthState })[];
  readonly paths?: readonly string[];
  readonly access?: Readonly<Record<string, DeviceAccess>>;
  readonly expected: object;
}

const FAMILIES: Readonly<Record<string, Access>> = { fpga, infiniband: (device) => nodeAccess(device, SRIOV_VARIABLE) };
const cases = parse(readFileSync(new URL('./allocate.yaml', import.meta.url), 'utf8')) as readonly Case[];

function allocate({ resource, devices, paths = [], access }: Case, ids: readonly string[]): object {
  const states = devices.map(({ health, ...device }) => deviceState(device, health));
  const offers = takeInventory(
    resource,
    states,
    healthByState,
    paths.map((path) => ({ path, present: true })),
  );
  const accessOf: Access = access === undefined ? (device) => FAMILIES[device.family]?.(device) : (device) => access[device.id];
  return allocateContainer(ids, offers, resource, accessOf, healthByState);
}

describe('allocateContainer', () => {
  it.each(cases.map((entry) => [entry.name, entry] as const))('%s', (_, entry) => {
    expect(allocate(entry, entry.ids)).toEqual(entry.expected);
  });

  it('gives the same answer whatever the order of the ids and however often they are named', () => {
    for (const entry of cases) {
      expect(allocate(entry, [...entry.ids, ...entry.ids].reverse()), entry.name).toEqual(entry.expected);
    }
  });

  const offers = takeInventory(
    TOY,
    [
      deviceState({ id: 't0' }),
      deviceState({ id: 't1' }, 'unhealthy'),
      deviceState({ id: 't2' }, 'unknown'),
      { ...deviceState({ id: 't3' }), missingSinceMs: 1_700_000_000_000 },
      deviceState({ id: 't4' }, 'degraded'),
    ],
    healthByState,
  );
  const refused: readonly (readonly [string, readonly string[], string, string])[] = [
    ['an id that is unknown', ['t0', 't9'], 'unknown-device', 'example.com/toy has no device "t9"'],
    ['every id that is unknown', ['t8', 't9'], 'unknown-device', 'example.com/toy has no device "t8", "t9"'],
    ['a replica of a resource without replicas', ['t0::0'], 'unknown-device', 'example.com/toy has no device "t0::0"'],
    [
      'an unhealthy device, with the reason',
      ['t0', 't1'],
      'unhealthy-device',
      'device "t1" of example.com/toy must not be used: unhealthy; Fault/Broken: error count 3',
    ],
    ['a device that the policy tells as unhealthy', ['t2'], 'unhealthy-device', 'device "t2" of example.com/toy must not be used: unknown'],
    [
      'a missing device',
      ['t3'],
      'unhealthy-device',
      'device "t3" of example.com/toy must not be used: missing since 2023-11-14T22:13:20.000Z',
    ],
  ];
  it.each(refused)('refuses %s', (_, ids, reason, message) => {
    expect(() => allocateContainer(ids, offers, TOY, toyAccess, healthByState)).toThrow(expect.objectContaining({ reason, message }));
  });

  it('refuses with the first ids and a count, in one KiB at most, however many or long the ids are', () => {
    const many = Array.from({ length: 10_000 }, (_, n) => `unknown-${n}`);
    const long = ['x'.repeat(100_000), 'é\n"'.repeat(100_000)];
    for (const ids of [many, long, [...many, ...long]]) {
      const refusal = refusalOf(() => allocateContainer(ids, offers, TOY, toyAccess, healthByState));
      expect(refusal.reason).toBe('unknown-device');
      expect(Buffer.byteLength(refusal.message)).toBeLessThanOrEqual(1_024);
    }
    const { message } = refusalOf(() => allocateContainer(many, offers, TOY, toyAccess, healthByState));
    expect(message).toBe('example.com/toy has no device "unknown-0", "unknown-1", "unknown-2", "unknown-3", "unknown-4" and 9995 more');
  });

  it('refuses a pool of a thousand sick devices in one KiB', () => {
    const sick = Array.from({ length: 1_000 }, (_, n) => deviceState({ id: `sick-device-${n}` }, 'unhealthy'));
    const resource: PluginResource = { resource: 'example.com/pool', select: { family: 'toy' }, pool: 1 };
    const pool = takeInventory(resource, sick, healthByState);
    const refusal = refusalOf(() => allocateContainer(['0'], pool, resource, toyAccess, healthByState));
    expect(refusal.reason).toBe('unhealthy-device');
    expect(Buffer.byteLength(refusal.message)).toBeLessThanOrEqual(1_024);
  });

  it('hands a degraded device out', () => {
    expect(allocateContainer(['t4'], offers, TOY, toyAccess, healthByState).envs).toMatchObject({ TOYS: 't4' });
  });

  it('names as many devices as a process can start with, and leaves a longer list out as a whole', () => {
    const resource: PluginResource = { resource: 'example.com/pool', select: { family: 'toy' }, pool: 1 };
    const listOf = (count: number): string | undefined => {
      const pool = takeInventory(
        resource,
        Array.from({ length: count }, (_, n) => deviceState({ id: `device-${n}` })),
        healthByState,
      );
      return allocateContainer(['0'], pool, resource, toyAccess, healthByState).envs.DEVICE_AGENT_DEVICES_EXAMPLE_COM_POOL;
    };
    expect(listOf(1_000)?.split(',')).toHaveLength(1_000);
    expect(listOf(10_000)).toBeUndefined();
  });

  it('refuses a strategy that the devices have nothing for', () => {
    for (const strategy of ['volume-mounts', 'cdi-cri', 'cdi-annotations'] as const) {
      const resource: PluginResource = { ...TOY, allocation: { strategies: [strategy] } };
      expect(() => allocateContainer(['t0'], offers, resource, toyAccess, healthByState)).toThrow(
        expect.objectContaining({ reason: 'unsupported-strategy' }),
      );
    }
    expect(() => allocateContainer(['t0'], offers, TOY, () => undefined, healthByState)).toThrow('no access rules for toy device "t0"');
  });
});

function refusalOf(call: () => unknown): Refusal {
  try {
    call();
  } catch (error) {
    if (error instanceof Refusal) return error;
  }
  throw new Error('it was not refused');
}
