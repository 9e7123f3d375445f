import { describe, expect, it } from 'vitest';
import { dranetNames } from '../../../src/probes/kit/network.ts';
import { feedList } from '../../../src/server/feed/feed-list.ts';
import { allocation } from '../../support/snapshots.ts';
import { broken, gpu, HEALTHY, snapshotOf } from './support.ts';

const rules = { pool: 'node-1', claimNames: dranetNames };
const listOf = (devices: Parameters<typeof snapshotOf>[0], part = {}) => feedList(snapshotOf(devices, part), rules, undefined).devices;
const namesOf = (devices: Parameters<typeof snapshotOf>[0], part = {}): string[][] =>
  listOf(devices, part).map(({ names }) => names.map(({ pool, device }) => `${pool} ${device}`).sort());

describe('the list of the feed', () => {
  it('names a device by what a driver can know of it, as DNS labels', () => {
    const hca = gpu({ id: 'mlx5_0', uuid: 'x', aliases: ['7', '../etc', 'uverbs0'], pciAddress: '0000:8a:00.0', netdevs: ['eth_0'] });
    expect(namesOf([hca])).toEqual([
      ['node-1 0000-8a-00-0', 'node-1 mlx5-0', 'node-1 net-mv2gqxzq', 'node-1 pci-0000-8a-00-0', 'node-1 uverbs0', 'node-1 x'],
    ]);
  });

  it('gives a name of two devices to neither, and that of a part to the whole', () => {
    const [one, two] = [
      gpu({ id: 'a', uuid: 'ua', aliases: ['same'] }),
      gpu({ id: 'b', uuid: 'ub', aliases: ['same'], pciAddress: '0000:3c:00.0' }),
    ];
    expect(namesOf([one, two]).flat()).not.toContain('node-1 same');
    const part = gpu({ id: 'mig', uuid: 'mig', parent: 'a' });
    expect(namesOf([one, part])[0]).toContain('node-1 0000-3b-00-0');
    expect(namesOf([one, part])[1]).toEqual(['node-1 mig']);
  });

  it('names a device as the claim does that holds it alone', () => {
    const claim = { name: 'c', namespace: 'ml', driver: 'gizmo.example.com', pool: 'racks', device: 'g-0' };
    const held = (devices: string[]) => [{ allocation: allocation({ deviceId: 'racks/g-0', claim }), devices, held: false }];
    expect(namesOf([gpu()], { allocations: held(['nvidia/GPU-aa']) })[0]).toContain('racks g-0');
    const both = [gpu(), gpu({ id: 'b', uuid: 'b', pciAddress: '0000:3c:00.0' })];
    expect(namesOf(both, { allocations: held(['nvidia/GPU-aa', 'nvidia/b']) }).flat()).not.toContain('racks g-0');
  });

  it('keeps a degraded device in service and tells why', () => {
    const verdict = { ...broken({ severity: 'degraded' }), state: 'degraded' as const };
    expect(listOf([gpu({}, verdict)])[0]).toMatchObject({ health: 'HEALTHY', message: expect.stringContaining('port 1 is down') });
    expect(listOf([gpu({}, { ...HEALTHY, state: 'unknown' })])[0]).toMatchObject({ health: 'UNKNOWN', message: '' });
  });

  it('has messages of 1024 bytes and one line at most', () => {
    const [told] = listOf([gpu({}, broken({ message: `a\nb ${'ü'.repeat(2_000)}` }))]);
    expect(Buffer.byteLength(told?.message ?? '')).toBeLessThanOrEqual(1_024);
    expect(told?.message).toMatch(/^PortDown \(Polling\): a b ü+\.\.\.$/);
  });

  it('has the same signature while nothing but readings change', () => {
    const signature = (readAtMs: number) => feedList(snapshotOf([{ ...gpu(), readAtMs }]), rules, undefined).signature;
    expect(signature(1)).toBe(signature(2));
  });
});
