import { describe, expect, it } from 'vitest';
import { parseKmsgRecord } from '../../../src/host/kernel-log/record.ts';
import { forgedRecords, logOf } from '../../support/forged-records.ts';

const originOf = (record: string) => parseKmsgRecord(record)?.origin;

describe('the origin of a record', () => {
  it.each(forgedRecords('0000:03:00.0'))('is never the kernel alone: $title', (record) => {
    const origin = originOf(logOf([record]));
    if (record.flag === undefined) expect(origin).toBe(record.priority < 8 ? 'about-process' : 'program');
    else expect(origin).toMatch(/^(?:about-process|piece)$/);
  });

  it.each([
    'NVRM: Xid (PCI:0000:3b:00): 31, pid=7194, name=python, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS',
    'NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:00): 13, pid=9, name=a[9]: x, Graphics SM Warp Exception',
    'NVRM: GPU 0000:18:00.0: GPU has fallen off the bus.',
    'nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)',
    '[drm] Initialized xe 1.1.0 for 0000:03:00.0 on minor 0',
    'EXT4-fs (vda1): mounted filesystem',
    'mlx5_core 0000:5d:00.0: Port module event: module 0, Cable unplugged',
    'IPv6: ADDRCONF(NETDEV_CHANGE): ib0: link becomes ready',
    '{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 1',
  ])('is the kernel: %s', (text) => {
    expect(originOf(`4,1,2,-;${text}`)).toBe('kernel');
  });

  it.each(['c', '+', 'c,caller=T4711'])('is a piece of a message with the flag %s', (flag) => {
    expect(originOf(`4,1,2,${flag};nvme0n1: I/O error, dev nvme0n1, sector 0`)).toBe('piece');
    expect(originOf(`12,1,2,${flag};nvme0n1: I/O error, dev nvme0n1, sector 0`)).toBe('program');
  });

  it.each(['x: a: potentially unexpected fatal signal 11.', 'a cgroup mems_allowed=0-1'])('is about a process: %s', (text) => {
    expect(originOf(`6,1,2,-;${text}`)).toBe('about-process');
  });

  it('is the kernel when the record has a device, which no process can add', () => {
    const text = 'vfio-pci 0000:3b:00.0: vfio-noiommu device opened by user (a:4711)';
    expect(originOf(`4,1,2,-;${text}\n SUBSYSTEM=pci\n DEVICE=+pci:0000:3b:00.0\n`)).toBe('kernel');
    const name = String.raw`x\x0a SUBSYSTEM=pci\x0a DEVICE=+pci:0000:3b:00.0`;
    expect(parseKmsgRecord(`6,1,2,-;${name}[4711]: segfault at 0`)).not.toHaveProperty('device');
  });
});
