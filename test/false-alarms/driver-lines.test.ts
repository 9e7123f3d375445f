import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { minutes, seconds } from '../../src/model/duration.ts';
import { familyLoaders } from '../../src/probes/families.ts';
import type { DeviceFamily } from '../../src/probes/family.ts';
import { family as intelgpu } from '../../src/probes/intelgpu/index.ts';
import { family as netdev } from '../../src/probes/netdev/index.ts';
import { family as nvme } from '../../src/probes/nvme/index.ts';
import { hardwareOf } from '../support/hardware.ts';
import { type WatchedNode, watch } from './watched-node.ts';

/** A line that a driver prints with a PCI function. */
const about = (address: string, line: string): string => `${line}\n SUBSYSTEM=pci\n DEVICE=+pci:${address}`;
/** Address of a function that a driver of a simulated machine has. */
const boundTo = (links: Readonly<Record<string, string>>, driver: string): string =>
  Object.entries(links).flatMap(([path, target]) =>
    target.endsWith(`/drivers/${driver}`) ? (/([0-9a-f:]+\.\d)\/driver$/.exec(path)?.[1] ?? []) : [],
  )[0] ?? '';

/** The verdicts soon after the lines, and later. Then the same driver prints a line that is a fault, and its condition shows that lines count. */
async function verdictsAfter(
  node: WatchedNode,
  lines: readonly string[],
  [line, condition]: readonly [line: string, condition: string],
): Promise<readonly (readonly string[])[]> {
  node.log(...lines);
  await node.pass(seconds(10));
  const soon = Object.values(node.verdicts);
  await node.pass(minutes(20));
  const late = Object.values(node.verdicts);
  node.log(line);
  await node.pass(seconds(10));
  expect(Object.values(node.verdicts).join()).toContain(condition);
  return [soon, late];
}

const always = (...verdicts: readonly string[]): readonly (readonly string[])[] => [verdicts, verdicts];

describe('Linux drivers/nvme/host/ioctl.c', () => {
  it('a controller that an operator resets', async () => {
    const { files, links, options = {} } = hardwareOf(nvme, { nvme: 1 }, 30_000);
    const node = await watch({ family: nvme, files, links, options });
    const printed = (text: string): string => `nvme nvme0: ${text}\n SUBSYSTEM=nvme\n DEVICE=c242:0`;
    const lines = ['resetting controller', '8/0/0 default/read/poll queues', 'Shutdown timeout set to 8 seconds'].map(printed);
    const fault = [printed('Disabling device after reset failure: -19'), 'ControllerFailed'] as const;
    expect(await verdictsAfter(node, lines, fault)).toEqual(always('healthy', 'healthy'));
  });
});

describe('Linux drivers/net/ethernet/intel/iavf/iavf_main.c', () => {
  it('virtual functions that are made, reset and left while pods start', async () => {
    const { files, links, options = {} } = hardwareOf(netdev, { netdev: 2 }, 30_000);
    const address = boundTo(links, 'ice');
    const bound = Object.entries(links).map(([path, target]) => [path, path.includes(address) ? target.replace('/ice', '/iavf') : target]);
    const node = await watch({ family: netdev, files, links: Object.fromEntries(bound), options });
    const before = Object.values(node.verdicts);
    const printed = (text: string): string => about(address, `iavf ${address}: ${text}`);
    const start = [
      'Removing device',
      'Multiqueue Enabled: Queue pair count = 16',
      'Reset indication received from the PF',
      'Scheduling reset task',
      'Hardware came out of reset. Attempting reinit.',
      'PF returned error -5 (IAVF_ERR_PARAM) to our request 14',
      'MAC address: 02:00:00:00:00:01',
      'GRO is enabled',
    ].map(printed);
    const ofCard = ['VF 3 is now trusted', 'Enabling 8 VFs', 'Setting MAC 02:00:00:00:00:01 on VF 3. VF driver will be reinitialized'];
    const lines = [...ofCard.map((text) => about(address, `ice ${address}: ${text}`)), ...start, ...start, ...start];
    expect(before.every((verdict) => verdict === 'healthy')).toBe(true);
    const fault = [printed('Reset never finished (1)'), 'FirmwareDead'] as const;
    expect(await verdictsAfter(node, lines, fault)).toEqual(always(...before));
  });
});

describe('Linux drivers/gpu/drm/i915/gt/uc/intel_uc.c', () => {
  it('a GuC whose driver loads it', async () => {
    const { files, links, options = {} } = hardwareOf(intelgpu, { intelgpu: 1 }, 30_000);
    const address = boundTo(links, 'xe');
    const node = await watch({ family: intelgpu, files, links, options });
    const texts = [
      'Using GuC firmware from xe/bmg_guc_70.bin version 70.44.1',
      'Tile0: GT0: Using HuC firmware from xe/bmg_huc.bin version 8.2.10',
      'GT0: GuC firmware i915/dg2_guc_70.bin version 70.29.2',
      'GT0: GUC: load failed: status = 0x400000A0, time = 3ms, freq = 2400MHz, ret = 0',
      'GT0: GUC: submission enabled',
      'GT0: GUC: SLPC enabled',
      'GT0: HuC: authenticated for all workloads',
    ];
    const printed = (text: string): string => about(address, `xe ${address}: [drm] ${text}`);
    const fault = [printed('declared device 0000:03:00.0 as wedged'), 'Wedged'] as const;
    expect(await verdictsAfter(node, texts.map(printed), fault)).toEqual(always('healthy'));
  });
});

describe('Linux drivers/gpu/drm/i915/gt/intel_reset.c', () => {
  it('a context of a program that hung, and that the driver ended', async () => {
    const { files, links, options = {} } = hardwareOf(intelgpu, { intelgpu: 1 }, 30_000);
    const address = boundTo(links, 'xe');
    const node = await watch({ family: intelgpu, files, links, options });
    const texts = [
      'GPU HANG: ecode 12:1:85dffffb, in train [4711]',
      'Resetting rcs0 for preemption time out',
      'train[4711] context reset due to GPU hang',
      'Tile0: GT0: Engine reset: engine_class=ccs, logical_mask: 0x1, guc_id=2, state=0x3',
      'Tile0: GT0: Timedout job: seqno=4294967169, lrc_seqno=4294967169, guc_id=2, flags=0x0 in train [4711]',
    ];
    const printed = (text: string): string => about(address, `xe ${address}: [drm] ${text}`);
    const fault = [printed('declared device 0000:03:00.0 as wedged'), 'Wedged'] as const;
    expect(await verdictsAfter(node, texts.map(printed), fault)).toEqual(always('healthy'));
  });
});

describe('Linux drivers/crypto/intel/qat/qat_common/adf_sysfs.c', () => {
  it('a QuickAssist function that an operator switches off and on', async () => {
    const qat = (await familyLoaders.qat?.()) as DeviceFamily;
    const [address, virtual] = ['0000:6b:00.0', '0000:6b:00.1'];
    const at = (function_: string): string => `sys/devices/pci0000:00/${function_}`;
    const facts = (function_: string, device: string): readonly (readonly [string, string])[] =>
      Object.entries({ vendor: '0x8086', device, class: '0x0b4000', numa_node: '0', power_state: 'D0' }).map(([name, text]) => [
        `${at(function_)}/${name}`,
        `${text}\n`,
      ]);
    const links = Object.fromEntries(
      [address, virtual].flatMap((one) => [
        [`sys/bus/pci/devices/${one}`, `../../../devices/pci0000:00/${one}`],
        [`${at(one)}/driver`, `../../../bus/pci/drivers/${one === address ? '4xxx' : 'vfio-pci'}`],
        [`${at(one)}/iommu_group`, `../../../kernel/iommu_groups/${one === address ? 7 : 8}`],
      ]),
    );
    const files = Object.fromEntries([...facts(address, '0x4940'), ...facts(virtual, '0x4941')]);
    const state = `${at(address)}/qat/state`;
    const node = await watch({
      family: qat,
      files: { ...files, [state]: 'up\n', 'dev/kmsg': '6,0,0,-;Linux version 7.0\n' },
      links: { ...links, [`${at(virtual)}/physfn`]: `../${address}` },
    });
    expect(node.verdicts).toEqual({ [address]: 'healthy', [virtual]: 'healthy' });
    const printed = (text: string): string => about(address, `4xxx ${address}: ${text}`);
    node.log(printed('Stopping device qat_dev0'), printed('qat_dev0 stopped 8 acceleration engines'));
    node.tree.write(state, () => 'down\n');
    await node.pass(seconds(5));
    expect(Object.values(node.verdicts)).toEqual(['healthy DeviceDown info', 'healthy']);
    node.tree.write(state, () => 'up\n');
    const lines = ['Starting device qat_dev0', 'qat_dev0 started 8 acceleration engines'].map(printed);
    const fault = [printed('Restart device failed'), 'RestartFailed'] as const;
    expect((await verdictsAfter(node, lines, fault))[1]).toEqual(['healthy', 'healthy']);
  });
});

describe('Linux drivers/pci/pci.c', () => {
  it('a function that is reset on its way to a virtual machine', async () => {
    const { files, links, options = {} } = hardwareOf(intelgpu, { intelgpu: 2 }, 30_000);
    const address = boundTo(links, 'xe');
    const node = await watch({ family: intelgpu, files, links, options });
    const path = Object.keys(links).find((one) => one.endsWith(`${address}/driver`)) ?? '';
    const link = join(node.tree.root, path);
    rmSync(link, { force: true });
    mkdirSync(dirname(link), { recursive: true });
    symlinkSync('../../../bus/pci/drivers/vfio-pci', link);
    const texts = [
      'not ready 1023ms after FLR; waiting',
      'not ready 2047ms after FLR; waiting',
      'ready 2047ms after FLR',
      'resetting',
      'reset done',
      'vfio_bar_restore: reset recovery - restoring BARs',
    ];
    const printed = (text: string): string => about(address, `vfio-pci ${address}: ${text}`);
    const fault = [printed('not ready 65535ms after FLR; giving up'), 'FunctionResetFailed'] as const;
    const verdicts = await verdictsAfter(node, texts.map(printed), fault);
    expect(verdicts.map((one) => [...one].sort())).toEqual(always('healthy', 'healthy HandedOver info'));
  });
});
