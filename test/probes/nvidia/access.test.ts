import { afterEach, describe, expect, it } from 'vitest';
import type { Device } from '../../../src/model/device.ts';
import { access } from '../../../src/probes/nvidia/devices.ts';
import { documentText, emptyMachine, gpuText, type Machine, machineOf, reportOf, UUIDS } from './harness.ts';

const machines: Machine[] = [];
const keep = (machine: Machine): Machine => {
  machines.push(machine);
  return machine;
};
afterEach(() => {
  for (const machine of machines.splice(0)) machine.remove();
});

const nodesOf = (device: Device): readonly string[] => access(device).deviceNodes.map(({ path }) => path);

describe('what a container needs for a GPU', () => {
  it('is its node (by minor), the existing control nodes, its id for the runtime, and its CDI name', async () => {
    const { device } = reportOf(
      await keep(machineOf('hopper-that-tells-everything')).collect(),
      'GPU-40000000-0000-4000-8000-000000000001',
    );
    expect(access(device)).toEqual({
      deviceNodes: [
        { path: '/dev/nvidiactl', permissions: 'rw' },
        { path: '/dev/nvidia-uvm', permissions: 'rw' },
        { path: '/dev/nvidia0', permissions: 'rw' },
      ],
      visible: {
        variable: 'NVIDIA_VISIBLE_DEVICES',
        directory: '/var/run/nvidia-container-devices',
        ids: { uuid: 'GPU-40000000-0000-4000-8000-000000000001', index: '0' },
      },
      cdiDevices: ['nvidia.com/gpu=GPU-40000000-0000-4000-8000-000000000001'],
    });
  });

  it('includes the position of the GPU, for schedulers', async () => {
    const { device } = reportOf(
      await keep(machineOf('hopper-that-tells-everything')).collect(),
      'GPU-40000000-0000-4000-8000-000000000001',
    );
    expect(device).toMatchObject({
      index: '0',
      minor: 0,
      moduleId: 2,
      pciVendor: '0x10de',
      pciDevice: '0x2330',
      pciPath: 'pci0000:15/0000:15:01.0/0000:16:00.0/0000:17:00.0/0000:19:00.0',
    });
  });

  it('names the node by the minor when the minor differs from the index', async () => {
    const collection = await keep(machineOf('reset-flags-and-fabric-failing')).collect();
    const [first, second] = collection.reports.map(({ device }) => device) as [Device, Device];
    expect([first.index, nodesOf(first).at(-1)]).toEqual(['0', '/dev/nvidia1']);
    expect([second.index, nodesOf(second).at(-1)]).toEqual(['1', '/dev/nvidia0']);
  });

  it('takes the minor from the kernel driver when the document has none', async () => {
    const machine = keep(emptyMachine());
    machine.show(documentText(gpuText().replace('<minor_number>0</minor_number>', '<minor_number>N/A</minor_number>')));
    machine.write('proc/driver/nvidia/gpus/0000:10:00.0/information', 'Model: \t Test\nDevice Minor: \t 5\n');
    expect(nodesOf(reportOf(await machine.collect(), UUIDS[0]).device)).toContain('/dev/nvidia5');
  });

  it('has no path below /sys when the function does not exist', async () => {
    const machine = keep(emptyMachine());
    machine.show(documentText(gpuText()));
    expect(reportOf(await machine.collect(), UUIDS[0]).device).not.toHaveProperty('pciPath');
  });

  it('does not call a PCI address a UUID', () => {
    const device: Device = {
      family: 'nvidia',
      id: '0000:10:00.0',
      kind: 'gpu',
      aliases: [],
      index: '4',
      characterDevices: ['/dev/nvidiactl'],
    };
    expect(access(device).visible?.ids).toEqual({ index: '4' });
    expect(access(device).cdiDevices).toEqual(['nvidia.com/gpu=4']);
    expect(access({ family: 'nvidia', id: '0000:10:00.0', kind: 'gpu', aliases: [] })).toMatchObject({
      deviceNodes: [],
      visible: { ids: {} },
      cdiDevices: [],
    });
  });
});

describe('what a container needs for a MIG instance', () => {
  it('is its GPU’s node and its two capabilities, from the list of all', async () => {
    const collection = await keep(machineOf('mig-with-two-in-one-gpu-instance')).collect();
    const { device } = reportOf(collection, 'MIG-a1000000-0000-5000-8000-000000000011');
    expect(nodesOf(device)).toEqual([
      '/dev/nvidiactl',
      '/dev/nvidia-uvm',
      '/dev/nvidia3',
      '/dev/nvidia-caps/nvidia-cap426',
      '/dev/nvidia-caps/nvidia-cap428',
    ]);
    expect(access(device).visible?.ids).toEqual({ uuid: 'MIG-a1000000-0000-5000-8000-000000000011', index: '0:1' });
    expect(access(device).cdiDevices).toEqual(['nvidia.com/gpu=MIG-a1000000-0000-5000-8000-000000000011']);
    expect(device).toMatchObject({ profile: '2c.3g.20gb', pciPath: 'pci0000:c0/0000:c0:01.1/0000:c1:00.0' });
  });

  it('finds the capabilities in their own files too', async () => {
    const machine = keep(machineOf('mig-listing-fails'));
    machine.write('proc/driver/nvidia/capabilities/gpu0/mig/gi7/access', 'DeviceFileMinor: 66\nDeviceFileMode: 292\nDeviceFileModify: 1\n');
    machine.write('proc/driver/nvidia/capabilities/gpu0/mig/gi7/ci0/access', 'DeviceFileMinor: 67\n');
    const collection = await machine.collect();
    const { device } = collection.reports.find((report) => report.device.kind === 'mig') as (typeof collection.reports)[number];
    expect(nodesOf(device)).toEqual([
      '/dev/nvidiactl',
      '/dev/nvidia-uvm',
      '/dev/nvidia0',
      '/dev/nvidia-caps/nvidia-cap66',
      '/dev/nvidia-caps/nvidia-cap67',
    ]);
    expect(access(device).visible?.ids).toEqual({ uuid: 'MIG-GPU-aaaaaaaa-0000-4000-8000-000000000001/7/0', index: '0:0' });
    expect(access(device).cdiDevices).toEqual(['nvidia.com/gpu=0:0']);
  });
});
