import { describe, expect, it } from 'vitest';
import type { KmsgMessage } from '../../src/host/kernel-log/reader.ts';
import { LineCollector, lineMatcher, marksOf } from '../../src/incidents/kernel-log.ts';
import { device } from '../support/snapshots.ts';

const gpu = marksOf(
  device({
    id: 'GPU-5e1f0000-0000-4000-8000-000000000001',
    uuid: 'GPU-5e1f0000-0000-4000-8000-000000000001',
    index: '0',
    aliases: ['0'],
    pciAddress: '0000:3b:00.0',
    pciPath: 'pci0000:3a/0000:3a:00.0/0000:3b:00.0',
  }),
);
const hca = marksOf(device({ id: 'mlx5_1', pciAddress: '0008:01:00.1', netdevs: ['ib1'] }));
const message = (text: string, part: Partial<KmsgMessage> = {}): KmsgMessage => ({
  level: 3,
  origin: 'kernel',
  seq: 1,
  timeUsec: 1,
  text,
  timeMs: 0,
  live: true,
  ...part,
});

describe('a line of the kernel log', () => {
  it.each([
    ['NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus.', gpu, true],
    ['NVRM: Xid (PCI:00000000:3B:00): 79, GPU has fallen off the bus.', gpu, true],
    ['NVRM: Xid (PCI:0000:3b:01): 79, GPU has fallen off the bus.', gpu, false],
    ['NVRM: GPU at PCI:0000:3b:00: GPU-5e1f0000-0000-4000-8000-000000000001', gpu, true],
    ['nvidia 0000:3b:00.0: AER: can not recover', gpu, true],
    ['nvidia 3b:00.0: reset', gpu, true],
    ['nvidia 0001:3b:00.0: reset', gpu, false],
    ['nvidia 0000:3b:00.01: no address', gpu, false],
    ['pcieport 0000:3a:00.0: AER: Uncorrected (Fatal) error received', gpu, true],
    ['pcieport 0000:3a:00.0: pciehp: Slot(1): Link Down', gpu, true],
    ['pcieport 0000:3a:00.0: PME: Signaling with IRQ 40', gpu, false],
    ['pcieport 0000:40:00.0: AER: Corrected error received: 0000:3b:00.0', gpu, true],
    ['usb 1-1: new device number 0', gpu, false],
    ['mlx5_core 0008:01:00.1: Port module event: module 0, Cable unplugged', hca, true],
    ['mlx5_core 01:00.1: Port module event', hca, false],
    ['infiniband mlx5_1: create_qp failed', hca, true],
    ['infiniband mlx5_10: create_qp failed', hca, false],
    ['ib1: link becomes ready', hca, true],
    ['IPv6: ib10: link becomes ready', hca, false],
  ] as const)('%s', (text, marks, isAbout) => {
    expect(lineMatcher(marks)({ text })).toBe(isAbout);
  });

  it('also names a device by its field DEVICE', () => {
    expect(lineMatcher(gpu)({ text: 'it failed', device: '+pci:0000:3b:00.0' })).toBe(true);
    expect(lineMatcher(gpu)({ text: 'it failed', device: '+pci:0000:3c:00.0' })).toBe(false);
  });

  it('of a device without address and name is about nothing', () => {
    expect(lineMatcher({ ports: [], names: [] })({ text: 'anything' })).toBe(false);
  });

  it('is kept as one short line without control characters, with its time, and only from the kernel', () => {
    const collector = new LineCollector([hca, gpu]);
    for (let n = 0; n < 60; n += 1) collector.take(message(`mlx5_1: ${n}`, { timeMs: 1_000 }));
    const { timeMs, ...timeless } = message('mlx5_1: \u001b[31mred\nsecond \u202eline \u0007');
    expect(timeMs).toBe(0);
    collector.take(timeless);
    collector.take(message(`mlx5_1: ${'x'.repeat(9_000)}`));
    collector.take(message('mlx5_1: a program may say anything', { origin: 'program' }));
    collector.take(message('mlx5_1[4711]: a process may have any name', { origin: 'about-process' }));
    const [own, other] = collector.parts('a problem');
    expect(own).toMatchObject({ earlier: 12, problem: 'a problem' });
    expect(own?.lines).toHaveLength(50);
    expect(own?.lines[0]).toEqual({ text: 'mlx5_1: 12', time: '1970-01-01T00:00:01.000Z' });
    expect(own?.lines.at(-2)).toEqual({ text: 'mlx5_1:  [31mred second  line' });
    expect(own?.lines.at(-1)?.text).toHaveLength(500);
    expect(other).toEqual({ lines: [], problem: 'a problem' });
  });
});
