import { describe, expect, it } from 'vitest';
import { Assembler } from '../../src/agent/assemble.ts';
import type { Origins } from '../../src/join/name-conflicts.ts';
import { Resolver } from '../../src/join/resolve.ts';
import { claimDeviceKey } from '../../src/model/claim-hardware.ts';
import type { Origin } from '../../src/model/declaration.ts';
import type { Device } from '../../src/model/device.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { allocation, device, familyState, listed, lookAt, podResources, report } from '../support/snapshots.ts';

const GPUS = Array.from({ length: 8 }, (_, n) =>
  device({ family: 'gpu', id: `GPU-${n}`, aliases: [`0000:0${n}:00.0`], uuid: `GPU-${n}`, pciAddress: `0000:0${n}:00.0` }),
);
const HELD = podResources(GPUS.map(({ id }) => allocation({ resource: 'nvidia.com/gpu', deviceId: id })));

const origins = (map: Readonly<Record<string, Origin>>): Origins => new Map(Object.entries(map));

/** One snapshot of an agent with these families and devices. */
function snapshotOf(devices: readonly Device[], from: Readonly<Record<string, Origin>>, resolve?: () => string[]): Snapshot {
  const families = new Map(resolve === undefined ? [] : [['evil', resolve]]);
  const assembler = new Assembler(
    { rules: { pools: [], families, origins: origins(from) }, specs: new Map(), staleAfterMs: 1e6, missingRetentionMs: 1e6 },
    () => new Map(),
  );
  const names = [...new Set(devices.map(({ family }) => family))];
  const inputs = names.map((family) => ({
    state: familyState(family),
    latest: lookAt(listed(devices.filter((one) => one.family === family).map((one) => report({ device: one }))), 0),
  }));
  return assembler.assemble({ families: inputs, podResources: HELD, checkpoint: [] }, { nowMs: 0, monotonicMs: 0 });
}

const holdersIn = ({ devices }: Snapshot): Readonly<Record<string, number>> =>
  Object.fromEntries(devices.map(({ key, holders }) => [key, holders.length]));
const problemsOf = ({ families }: Snapshot, name: string): readonly string[] =>
  families.find(({ family }) => family === name)?.problems.map(({ code, message }) => `${code}: ${message}`) ?? [];
const heldGpus = Object.fromEntries(GPUS.map(({ id }) => [`gpu/${id}`, 1]));

describe.each(['administrator', 'package'] as const)('a declaration (%s) with the names of all GPUs', (origin) => {
  it('as aliases takes no holder', () => {
    const thief = device({ family: 'evil', id: 'e0', aliases: GPUS.flatMap(({ id, aliases }) => [id.toLowerCase(), ...aliases]) });
    const snapshot = snapshotOf([...GPUS, thief], { evil: origin });
    expect(holdersIn(snapshot)).toEqual({ ...heldGpus, 'evil/e0': 0 });
    expect(snapshot.allocations.every(({ unresolved }) => unresolved === undefined)).toBe(true);
    expect(snapshot.devices.find(({ key }) => key === 'evil/e0')?.device.aliases).toEqual([]);
    const told = problemsOf(snapshot, 'evil');
    expect(told[0]).toBe('name-conflict: the alias gpu-0 of evil/e0 is also a name of gpu/GPU-0, which keeps it');
    expect(told).toHaveLength(9);
    expect(told.at(-1)).toContain('more names of the family');
    expect(problemsOf(snapshot, 'gpu')).toEqual([]);
  });

  it('as ids takes no holder and no series', () => {
    const thieves = GPUS.map(({ id }) => device({ family: 'evil', id }));
    const snapshot = snapshotOf([...GPUS, ...thieves], { evil: origin });
    expect(holdersIn(snapshot)).toEqual(heldGpus);
    expect(problemsOf(snapshot, 'evil')[0]).toContain(
      'the id GPU-0 of evil/GPU-0 is also a name of gpu/GPU-0, which keeps it: the device is left out',
    );
  });

  it('as ids of its resources takes no holder', () => {
    const snapshot = snapshotOf([...GPUS, device({ family: 'evil', id: 'e0' })], { evil: origin }, () => ['e0']);
    expect(holdersIn(snapshot)).toEqual({ ...heldGpus, 'evil/e0': 0 });
  });
});

describe('a name of two families', () => {
  it('of the same origin gives neither the holder, and the problems name both', () => {
    const [a, b] = [device({ family: 'acme', id: 'GPU-0' }), device({ family: 'zeta', id: 'z0', aliases: ['gpu-0'] })];
    const snapshot = snapshotOf([a, b], { acme: 'administrator', zeta: 'administrator' });
    expect(holdersIn(snapshot)).toEqual({ 'acme/GPU-0': 0, 'zeta/z0': 0 });
    expect(snapshot.allocations[0]).toMatchObject({ unresolved: 'ambiguous' });
    expect(problemsOf(snapshot, 'acme')).toEqual([
      'name-conflict: the id GPU-0 of acme/GPU-0 is also a name of zeta/z0, and neither gets the holders of this name',
    ]);
    expect(problemsOf(snapshot, 'zeta')).toEqual([
      'name-conflict: the alias gpu-0 of zeta/z0 is also a name of acme/GPU-0, and neither gets the holders of this name',
    ]);
  });

  it('leaves a device of the administrator whose id is an alias of a GPU, without its holders', () => {
    const link = device({ family: 'acme', id: '0000:00:00.0' });
    const snapshot = snapshotOf([...GPUS, link], { acme: 'administrator' });
    expect(holdersIn(snapshot)).toEqual({ ...heldGpus, 'acme/0000:00:00.0': 0 });
  });

  it('or an address of two families leaves the holder of a claim at the more trusted one', () => {
    const [gpu] = GPUS as [Device];
    const link = device({ family: 'acme', id: 'link', pciAddress: '0000:00:00.0' });
    const claim = { name: 'c', namespace: 'ml', driver: 'gpu.example', pool: 'n', device: 'd0' };
    const hardware = { by: 'metadata' as const, pciAddress: '0000:00:00.0' };
    const claims = new Map([[claimDeviceKey(claim), [hardware]]]);
    const found = (from: Readonly<Record<string, Origin>>): readonly string[] =>
      new Resolver([link, gpu], { pools: [], families: new Map(), claims, origins: origins(from) }).resolve(
        allocation({ deviceId: 'n/d0', claim }),
      ).devices;
    expect(found({ acme: 'administrator' })).toEqual(['gpu/GPU-0']);
    expect(found({})).toEqual([]);
  });
});
