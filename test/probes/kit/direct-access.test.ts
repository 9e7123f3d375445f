import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { readVirtualMachine } from '../../../src/host/facts.ts';
import { Tree } from '../../../src/host/fs/tree.ts';
import { DirectAccessReader, readDirectAccess } from '../../../src/probes/kit/pcie/function.ts';
import { readPeerMemory } from '../../../src/probes/nvidia/devices.ts';

const roots: string[] = [];
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});

function treeOf(files: Readonly<Record<string, string | Buffer>>): { readonly sys: Tree; readonly proc: Tree; readonly root: string } {
  const root = mkdtempSync(join(tmpdir(), 'device-agent-direct-'));
  roots.push(root);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    if (typeof content === 'string' && content.startsWith('-> ')) symlinkSync(content.slice(3), join(root, path));
    else writeFileSync(join(root, path), content);
  }
  return { sys: new Tree(join(root, 'sys')), proc: new Tree(join(root, 'proc')), root };
}

/** A configuration space whose second extended capability is ACS with these controls. */
function space(controls: number | undefined, length = 4_096): Buffer {
  const bytes = Buffer.alloc(4_096);
  bytes.writeUInt32LE(0x0001 | (1 << 16) | (0x150 << 20), 0x100);
  if (controls !== undefined) {
    bytes.writeUInt32LE(0x000d | (1 << 16), 0x150);
    bytes.writeUInt16LE(controls, 0x156);
  }
  return bytes.subarray(0, length);
}

const [PORT, GPU] = ['0000:10:01.0', '0000:11:00.0'];
const PATH = `pci0000:10/${PORT}/${GPU}`;
const withPort = (config: Buffer, status = 'active\n') => ({
  [`sys/bus/pci/devices/${PORT}/config`]: config,
  [`sys/bus/pci/devices/${PORT}/power/runtime_status`]: status,
});
const bridges = (redirects: boolean) => ({ bridges: [{ address: PORT, redirects }] });

describe('what decides direct access', () => {
  it.each([
    ['ACS with redirection', space(0x1d), bridges(true)],
    ['ACS without redirection', space(0x01), bridges(false)],
    ['no ACS', space(undefined), bridges(false)],
    ['a space that is cut, as without CAP_SYS_ADMIN', space(0x1d, 64), undefined],
    ['a bridge without extended space', space(undefined, 256), bridges(false)],
  ])('%s', (_, config, expected) => {
    expect(readDirectAccess(treeOf(withPort(config)).sys, GPU, PATH)).toEqual(expected);
  });

  it('is not read of a bridge that sleeps, because the read would wake it', () => {
    expect(readDirectAccess(treeOf(withPort(space(0x1d), 'suspended\n')).sys, GPU, PATH)).toBeUndefined();
  });

  it('has the mode of the IOMMU, from the group of the function', () => {
    const { sys } = treeOf({
      [`sys/bus/pci/devices/${GPU}/iommu_group`]: '-> ../../../../kernel/iommu_groups/12',
      'sys/kernel/iommu_groups/12/type': 'DMA-FQ\n',
    });
    expect(readDirectAccess(sys, GPU, PATH)).toEqual({ iommu: 'DMA-FQ' });
  });

  it('is read again only after the path changed', () => {
    const { sys, root } = treeOf(withPort(space(0x1d)));
    const reader = new DirectAccessReader(sys);
    expect(reader.of(GPU, PATH)).toEqual(bridges(true));
    writeFileSync(join(root, `sys/bus/pci/devices/${PORT}/config`), space(0));
    expect(reader.of(GPU, PATH)).toEqual(bridges(true));
    expect(reader.of(GPU, `pci0000:10/${PORT}/0000:11:00.1/${GPU}`)).toEqual(bridges(false));
  });
});

describe('a virtual machine', () => {
  const firmware = (vendor: string, product: string) => ({
    'sys/class/dmi/id/sys_vendor': vendor,
    'sys/class/dmi/id/product_name': product,
  });
  it.each([
    ['by its firmware', firmware('QEMU\n', 'Standard PC\n'), { is: true, name: 'QEMU Standard PC', from: '/sys/class/dmi/id' }],
    [
      'by the flag of its processor',
      { ...firmware('Amazon EC2', 'p5.48xlarge'), 'proc/cpuinfo': 'flags\t\t: fpu hypervisor sse\n' },
      { is: true, name: 'Amazon EC2 p5.48xlarge', from: '/proc/cpuinfo' },
    ],
    ['by the type of the hypervisor', { 'sys/hypervisor/type': 'xen\n' }, { is: true, name: 'xen', from: '/sys/hypervisor/type' }],
    [
      'not, without the flag',
      { ...firmware('NVIDIA', 'DGXA100'), 'proc/cpuinfo': 'flags\t\t: fpu sse\n' },
      { is: false, name: 'NVIDIA DGXA100', from: '/proc/cpuinfo' },
    ],
    ['unknown on a processor without such a line', { 'proc/cpuinfo': 'Features\t: fp asimd\n' }, undefined],
  ])('is found %s', (_, files, expected) => {
    const { sys, proc } = treeOf(files);
    expect(readVirtualMachine(sys, proc)).toEqual(expected);
  });
});

describe('memory of an NVIDIA GPU for others', () => {
  const version = (kind: string) => `NVRM version: NVIDIA UNIX ${kind}  550.54.15  Release Build\n`;
  const OPEN = version('Open Kernel Module for x86_64');
  it.each([
    ['by a module', { 'sys/module/nvidia_peermem/refcnt': '0\n' }, true],
    ['by dma-buf of the open kernel modules', { 'proc/driver/nvidia/version': OPEN, 'proc/sys/kernel/osrelease': '5.15.0-91\n' }, true],
    ['not, on a kernel without dma-buf for verbs', { 'proc/driver/nvidia/version': OPEN, 'proc/sys/kernel/osrelease': '5.4.0\n' }, false],
    ['not, with proprietary modules alone', { 'proc/driver/nvidia/version': version('x86_64 Kernel Module') }, false],
    ['unknown without a version of the kernel', { 'proc/driver/nvidia/version': OPEN }, undefined],
  ])('%s', (_, files, can) => {
    const { sys, proc } = treeOf(files);
    const answer = readPeerMemory({ sys, proc });
    expect(answer).toBeDefined();
    expect(answer?.can).toBe(can);
  });

  it('is absent where nothing could be read', () => {
    const { sys, proc } = treeOf({});
    expect(readPeerMemory({ sys, proc })).toBeUndefined();
  });
});
