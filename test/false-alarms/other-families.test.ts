// Project: programs. Histories in number.
import { rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { minutes, seconds } from '../../src/model/duration.ts';
import { family as amdgpu } from '../../src/probes/amdgpu/index.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { family as fpga } from '../../src/probes/fpga/index.ts';
import { family as intelgpu } from '../../src/probes/intelgpu/index.ts';
import { family as netdev } from '../../src/probes/netdev/index.ts';
import { family as nvidia } from '../../src/probes/nvidia/index.ts';
import { boardWith, functionAt, informationAt, uuidOf } from '../probes/nvidia/unshown-node.ts';
import { hardwareOf } from '../support/hardware.ts';
import { readMachine } from '../support/machine.ts';
import { watch } from './watched-node.ts';

describe('xpumanager 129', () => {
  it('an integrated GPU that the libraries of the vendor no longer know', async () => {
    const { files = {}, links = {} } = readMachine('test/probes/intelgpu/i915-integrated/machine.yaml');
    // Coffee Lake, UHD 630.
    const coffeeLake = { ...files, 'sys/devices/pci0000:00/0000:00:02.0/device': '0x3e98\n' };
    const node = await watch({ family: intelgpu, files: coffeeLake, links });
    await node.pass(minutes(10));
    expect(node.verdicts).toEqual({ '0000:00:02.0': 'healthy' });
    expect(node.problems).toEqual([]);
    expect(Object.values(node.offered ?? {})).toEqual(['Healthy']);
  });
});

describe('device-metrics-exporter 565', () => {
  it('sixteen GPUs with a file that blocks its reader for a second', async () => {
    const { files, links } = hardwareOf(amdgpu, { amdgpu: 16 }, 30_000);
    const cards = Object.keys(files).flatMap((path) => /^(.*)\/mem_info_vram_used$/.exec(path)?.[1] ?? []);
    expect(cards).toHaveLength(16);
    // A pipe blocks for ever, so that one read of it stops the whole family.
    const node = await watch({ family: amdgpu, files, links }, (tree) => {
      for (const card of cards) tree.hide('slow', `${card}/pcie_bw`, { kind: 'hang' });
    });
    await node.pass(minutes(5));
    expect(Object.values(node.verdicts)).toEqual(cards.map(() => 'healthy'));
    expect(node.snapshot.devices.every(({ readings }) => readings.length > 0)).toBe(true);
  });
});

describe('sriov-network-device-plugin 40', () => {
  it('a physical function whose interface is in the network of a pod', async () => {
    const { files, links, options = {} } = hardwareOf(netdev, { netdev: 2 }, 30_000);
    const node = await watch({ family: netdev, files, links, options });
    await node.pass(minutes(2));
    const before = node.verdicts;
    expect(new Set(Object.values(before))).toEqual(new Set(['healthy']));
    const [first = ''] = Object.keys(before);
    const net =
      Object.keys(files).flatMap((path) => (path.includes(`/${first}/net/`) ? [path.replace(/(\/net)\/.*$/, '$1')] : []))[0] ?? '';
    node.tree.hide('moved', net, { kind: 'absent' });
    for (const [path, target] of Object.entries(links)) if (target.includes(`/${first}/net/`)) node.tree.remove('moved', path);
    await node.pass(minutes(10));
    expect(node.verdicts).toEqual(before);
    expect(new Set(Object.values(node.offered ?? {}))).toEqual(new Set(['Healthy']));
  });
});

/** Three functions of the bus with what the PCI core knows of each. */
const onBus = (functions: Readonly<Record<string, Readonly<Record<string, string>>>>): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(functions).flatMap(([address, facts]) =>
      Object.entries({ numa_node: '0', power_state: 'D0', ...facts }).map(([name, text]) => [
        `sys/bus/pci/devices/${address}/${name}`,
        `${text}\n`,
      ]),
    ),
  );
const boundTo = (address: string, driver: string): Readonly<Record<string, string>> => ({
  [`sys/bus/pci/devices/${address}/driver`]: `../../../../bus/pci/drivers/${driver}`,
});
const LOG = { 'dev/kmsg': '6,0,0,-;Linux version 7.0\n' };

describe('dra-driver-nvidia-gpu 668', () => {
  it('a GPU that goes to a virtual machine and returns', async () => {
    const { node, show } = await boardWith('command', { count: 2 }, { gpus: [0, 1] });
    const healthy = Object.fromEntries([0, 1].map((index) => [uuidOf(index), 'healthy']));
    const away = { ...healthy, [uuidOf(1)]: 'healthy HandedOver info' };
    const link = join(node.tree.root, functionAt(1), 'driver');
    rmSync(link);
    node.tree.hide('away', dirname(informationAt(1)), { kind: 'absent' });
    show({ gpus: [0] });
    await node.pass(seconds(50));
    expect(node.verdicts).toEqual(healthy);
    symlinkSync('../../../../bus/pci/drivers/vfio-pci', link);
    await node.pass(minutes(30));
    await node.restart();
    expect(node.verdicts).toEqual(away);
    rmSync(link);
    symlinkSync('../../../../bus/pci/drivers/nvidia', link);
    node.tree.take('away');
    show({ gpus: [0, 1] });
    await node.pass(seconds(10));
    expect(node.verdicts).toEqual(healthy);
  });
});

describe('gpu-operator 711', () => {
  it('a node whose GPUs all belong to virtual machines', async () => {
    const facts = { vendor: '0x10de', device: '0x2236', class: '0x030200' };
    const [first, second] = ['0000:b3:00.0', '0000:b4:00.0'];
    const links = { ...boundTo(first, 'vfio-pci'), ...boundTo(second, 'vfio-pci') };
    const options = { 'smi-path': '{root}/bin/nvidia-smi', source: 'smi' };
    const node = await watch({ family: nvidia, files: { ...onBus({ [first]: facts, [second]: facts }), ...LOG }, links, options });
    await node.pass(minutes(10));
    expect([node.verdicts, node.problems]).toEqual([{ [first]: 'healthy HandedOver info', [second]: 'healthy HandedOver info' }, []]);
  });
});

describe('intel-device-plugins 681', () => {
  it('a QuickAssist function that nobody uses', async () => {
    const qat = (await familyLoaders.qat?.()) as DeviceFamily;
    const facts = { vendor: '0x8086', device: '0x4940', class: '0x0b4000' };
    const aer = { aer_dev_fatal: 'TOTAL_ERR_FATAL 0', aer_dev_correctable: 'RxErr 0\nTOTAL_ERR_COR 0' };
    const node = await watch({ family: qat, files: { ...onBus({ '0000:6b:00.0': { ...facts, ...aer }, '0000:70:00.0': facts }), ...LOG } });
    await node.pass(minutes(10));
    expect(node.verdicts).toEqual({ '0000:6b:00.0': 'healthy NotInUse info', '0000:70:00.0': 'unknown DeviceNotRead degraded' });
  });
});

describe('AVED 24', () => {
  it('a second function of a board that waits for a design', async () => {
    const facts = { vendor: '0x10ee', class: '0x120000', current_link_width: '8', max_link_width: '8' };
    const files = onBus({ '0000:a1:00.0': { ...facts, device: '0x50b4' }, '0000:a1:00.1': { ...facts, device: '0x50b5' } });
    const node = await watch({ family: fpga, files: { ...files, ...LOG }, links: boundTo('0000:a1:00.0', 'ami') });
    await node.pass(minutes(10));
    expect(node.verdicts).toEqual({ '0000:a1:00.0': 'healthy' });
  });
});
