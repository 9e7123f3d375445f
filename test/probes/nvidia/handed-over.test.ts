import { dirname } from 'node:path';
import { describe, expect, it } from 'vitest';
import { minutes, seconds } from '../../../src/model/duration.ts';
import { ownsNumbers, resolve } from '../../../src/probes/nvidia/devices.ts';
import type { WatchedNode } from '../../false-alarms/watched-node.ts';
import { addressOf, bind, boardWith, functionAt, informationAt, type Shown, type Source, uuidOf } from './unshown-node.ts';

const SOURCES: readonly Source[] = ['library', 'command'];
const [HOME, AWAY] = [uuidOf(0), uuidOf(1)];

const statesOf = (node: WatchedNode): Readonly<Record<string, string>> =>
  Object.fromEntries(node.snapshot.devices.map(({ device, verdict }) => [device.id, verdict.state]));
const conditionsOf = (node: WatchedNode, id: string): readonly string[] =>
  node.snapshot.devices.find(({ device }) => device.id === id)?.verdict.conditions.map(({ type }) => type) ?? [];

describe.each(SOURCES)('a GPU that goes to a virtual machine and back, by the %s', (source) => {
  const group = { [`${functionAt(1)}/iommu_group`]: '../../../../kernel/iommu_groups/42' };
  const [both, one]: readonly [Shown, Shown] = [{ gpus: [0, 1] }, { gpus: [0] }];
  const allWell = { [HOME]: 'healthy', [AWAY]: 'healthy' };

  it('is never a fault: unbound, overridden and bound by the driver of claims, in use over restarts, and back', async () => {
    const { node, show } = await boardWith(source, { count: 2, links: group }, both);
    expect(statesOf(node)).toEqual(allWell);
    bind(node, 1, undefined);
    node.tree.hide('away', dirname(informationAt(1)), { kind: 'absent' });
    show(one);
    await node.pass(seconds(50));
    expect([statesOf(node), conditionsOf(node, AWAY)]).toEqual([allWell, []]);
    node.tree.write(`${functionAt(1)}/driver_override`, () => 'vfio-pci\n');
    await node.pass(seconds(10));
    expect(conditionsOf(node, AWAY)).toEqual(['HandedOver']);
    bind(node, 1, 'vfio-pci');
    await node.pass(minutes(10));
    await node.restart();
    await node.pass(minutes(10));
    expect([statesOf(node), conditionsOf(node, AWAY)]).toEqual([allWell, ['HandedOver']]);
    const device = node.snapshot.devices.find(({ device: { id } }) => id === AWAY)?.device;
    expect(device).toMatchObject({ driver: 'vfio-pci', unserved: 'handed-over', characterDevices: ['/dev/vfio/vfio', '/dev/vfio/42'] });
    expect(Object.keys(node.offered ?? {})).not.toContain(AWAY);
    node.tree.write(`${functionAt(1)}/driver_override`, () => '(null)\n');
    bind(node, 1, 'nvidia');
    node.tree.take('away');
    show(both);
    await node.pass(seconds(10));
    expect([statesOf(node), conditionsOf(node, AWAY)]).toEqual([allWell, []]);
  });

  it('is the same for an agent without memory, which knows it by its address until it returns', async () => {
    const { node, show } = await boardWith(source, { count: 2, links: group, drivers: { 1: 'vfio-pci' } }, one);
    await node.pass(minutes(5));
    expect([statesOf(node), conditionsOf(node, addressOf(1)), node.problems]).toEqual([
      { [HOME]: 'healthy', [addressOf(1)]: 'healthy' },
      ['HandedOver'],
      [],
    ]);
    bind(node, 1, 'nvidia');
    show(both);
    await node.pass(minutes(2));
    expect([statesOf(node), conditionsOf(node, AWAY)]).toEqual([allWell, []]);
  });

  it('is a fault when no driver takes it back', async () => {
    const { node, show } = await boardWith(source, { count: 2, links: group }, both);
    bind(node, 1, 'vfio-pci');
    node.tree.hide('away', dirname(informationAt(1)), { kind: 'absent' });
    show(one);
    await node.pass(minutes(5));
    await node.restart();
    bind(node, 1, undefined);
    await node.pass(seconds(50));
    expect(statesOf(node)).toEqual(allWell);
    await node.pass(minutes(1));
    expect([statesOf(node), conditionsOf(node, AWAY)]).toEqual([{ ...allWell, [AWAY]: 'unhealthy' }, ['DriverUnbound']]);
  });
});

describe.each(SOURCES)('a GPU that leaves the bus in the read that tells why, by the %s', (source) => {
  it('is missing, with its Xid as the cause', async () => {
    const { node, show } = await boardWith(source, { count: 2 }, { gpus: [0, 1] });
    node.log(`NVRM: Xid (PCI:${addressOf(1).slice(0, -2)}): 79, pid=4711, name=python3, GPU has fallen off the bus.`);
    for (const path of [dirname(informationAt(1)), functionAt(1)]) node.tree.hide('gone', path, { kind: 'absent' });
    show({ gpus: [0] });
    await node.pass(seconds(90));
    expect(node.verdicts[AWAY]).toMatch(/^unhealthy /);
    expect(conditionsOf(node, AWAY)).toEqual(expect.arrayContaining(['DeviceMissing', 'Xid']));
    expect(conditionsOf(node, HOME)).toEqual([]);
  });
});

describe('ids of the plugins for virtual machines', () => {
  const gpu = { family: 'nvidia', kind: 'gpu', aliases: [] };
  const devices = [
    { ...gpu, id: 'served', characterDevices: ['/dev/nvidia42'] },
    { ...gpu, id: 'away', minor: 1, unserved: 'handed-over' as const, characterDevices: ['/dev/vfio/vfio', '/dev/vfio/42'] },
  ];
  const allocation = { namespace: 'vms', pod: 'vm1', container: 'compute', numaNodes: [] };

  it('are IOMMU groups of GPUs that were handed over', () => {
    const named = (resource: string, deviceId: string) => resolve({ ...allocation, resource, deviceId }, devices);
    expect(named('nvidia.com/GA102GL_A10', '42')).toEqual(['away']);
    expect(named('nvidia.com/GA102GL_A10', '4')).toEqual([]);
    expect(
      ['nvidia.com/GA102GL_A10', 'nvidia.com/gpu', 'nvidia.com/gpu.shared', 'nvidia.com/mig-1g.5gb', 'example.com/a'].map(ownsNumbers),
    ).toEqual([true, false, false, false, false]);
  });

  it('of claims have the number of the GPU', () => {
    const claim = { driver: 'gpu.nvidia.com', pool: 'node1', device: 'gpu-vfio-1', name: 'c', namespace: 'vms' };
    expect(resolve({ ...allocation, resource: 'gpu.nvidia.com', deviceId: 'gpu-vfio-1', claim } as never, devices)).toEqual(['away']);
  });
});
