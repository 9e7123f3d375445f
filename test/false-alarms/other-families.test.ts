import { describe, expect, it } from 'vitest';
import { minutes } from '../../src/model/duration.ts';
import { family as amdgpu } from '../../src/probes/amdgpu/index.ts';
import { family as intelgpu } from '../../src/probes/intelgpu/index.ts';
import { family as netdev } from '../../src/probes/netdev/index.ts';
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
