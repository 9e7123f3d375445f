import { describe, expect, it } from 'vitest';
import { overlapOf, overlapProblems } from '../../src/model/plugin-overlap.ts';
import type { DeviceSelector, PluginResource } from '../../src/model/plugin-resource.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { healthByState } from '../../src/plugin/offers/inventory.ts';
import { ResourceOffers } from '../../src/plugin/offers/resource-offers.ts';
import { ManualClock } from '../kubelet/support/manual-clock.ts';
import { deviceState } from './support.ts';

const gpus: DeviceSelector = { family: 'nvidia', kind: 'gpu' };
const of = (select: PluginResource['select'], more: Partial<PluginResource> = {}): PluginResource => ({
  resource: 'a.b/c',
  select: select as DeviceSelector,
  ...more,
});

describe('two resources', () => {
  it.each<[string, PluginResource, PluginResource]>([
    ['certain', of(gpus), of(gpus, { replicas: 4 })],
    ['certain', of({ family: 'nvidia' }), of({ ...gpus, model: '.*H100.*' })],
    ['certain', of({ family: 'fpga', kind: ['card', 'port'] }), of({ family: 'fpga', kind: 'port' })],
    ['certain', of([{ family: 'fpga' }, gpus]), of({ ...gpus, devices: ['GPU-1'] })],
    ['certain', { resource: 'a.b/c', paths: ['/dev/tty*'] }, { resource: 'a.b/d', paths: ['/dev/x', '/dev/tty*'] }],
    ['possible', of({ ...gpus, model: '.*H100.*' }), of({ ...gpus, model: '.*SXM.*' })],
    ['possible', of({ ...gpus, numaNode: 1 }), of({ ...gpus, driver: 'nvidia' })],
    ['none', of(gpus), of({ family: 'nvidia', kind: 'mig' })],
    ['none', of({ ...gpus, hasParts: false }), of({ ...gpus, hasParts: true })],
    ['none', of({ pciVendor: '0x10DE' }), of({ pciVendor: '8086' })],
    ['none', of({ ...gpus, devices: ['GPU-1'] }), of({ ...gpus, devices: ['GPU-2'] })],
    ['none', of(gpus), of(gpus, { replicas: 4, allowOverlap: true })],
    ['none', of(gpus), { resource: 'a.b/d', paths: ['/dev/nvidia0'] }],
  ])('overlap: %s', (expected, a, b) => {
    expect(overlapOf(a, b)).toBe(expected);
    expect(overlapOf(b, a)).toBe(expected);
  });

  it('that offer the same devices are refused with the remedy', () => {
    const problems = overlapProblems([
      of(gpus),
      of(gpus, { resource: 'a.b/share', replicas: 4 }),
      of({ family: 'fpga' }, { resource: 'a.b/x' }),
    ]);
    expect(problems).toEqual([expect.stringMatching(/^resources "a.b\/c" and "a.b\/share" offer the same devices.*"allowOverlap: true"/)]);
  });

  it('that select the same device by different facts offer it once, by the first of them', () => {
    const states = ['GPU-1', 'GPU-2'].map((id, numaNode) => deviceState({ family: 'nvidia', kind: 'gpu', id, driver: 'nvidia', numaNode }));
    const [first, second] = [of({ ...gpus, numaNode: 1 }), of({ ...gpus, driver: 'nvidia' }, { resource: 'a.b/d' })];
    const idsOf = (resource: PluginResource, rivals: readonly PluginResource[]): string[] => {
      const store = { snapshot: () => ({ devices: states }) as unknown as Snapshot, subscribe: () => () => {} };
      const offers = new ResourceOffers(resource, {
        store,
        healthOf: healthByState,
        clock: new ManualClock(),
        missingRetentionMs: 1,
        rivals,
      });
      return offers.current().map(({ id }) => id);
    };
    expect(idsOf(first, [])).toEqual(['GPU-2']);
    expect(idsOf(second, [first])).toEqual(['GPU-1']);
  });
});
