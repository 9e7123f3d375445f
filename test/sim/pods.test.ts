import { describe, expect, it } from 'vitest';
import { simulatedFamilies } from '../../src/sim/families.ts';
import { mixed, planPods } from '../../src/sim/pods.ts';
import { hardwareOf } from '../support/hardware.ts';

const workload = (name: string, wants: readonly (readonly [string, number])[], unused?: number) => ({
  ...{ namespace: 'n', name, container: 'c', wants },
  ...(unused !== undefined && { unused }),
});
const ids = ['a', 'b', 'c', 'd'];

describe('the workloads of a simulated node', () => {
  it('take turns by family, without those of which the node has nothing', () => {
    const one = [workload('one', [['one/', 1]]), workload('absent', [['none/', 1]]), workload('more', [['one/', 2]])];
    const two = [
      workload('two', [
        ['none/', 1],
        ['two/x', 1],
      ]),
    ];
    const supplies = ['one/card', 'two/xyz'].map((resource) => ({ resource, deviceIds: ids }));
    expect(mixed([one, two], supplies).map(({ name }) => name)).toEqual(['one', 'two', 'more', 'front']);
    expect(mixed([one, two], []).map(({ name }) => name)).toEqual(['front']);
  });

  it('hold free devices, of which some stand idle', () => {
    const supplies = [{ resource: 'one/card', deviceIds: ids }];
    const workloads = [workload('small', [['one/', 1]]), workload('large', [['one/', 2]], 1)];
    expect(planPods(supplies, workloads, 4, 0).map(({ name, devices, idleIds }) => [name, devices, idleIds])).toEqual([
      ['small-0-0', [{ resource: 'one/card', deviceIds: ['a'] }], undefined],
      ['large-0-0', [{ resource: 'one/card', deviceIds: ['b', 'c'] }], ['c']],
      ['small-1-0', [{ resource: 'one/card', deviceIds: ['d'] }], undefined],
      ['large-1-0', [], undefined],
    ]);
  });

  it('replaces one pod after the other by a new one of the same workload', () => {
    const namesAt = (changes: number) => planPods([], [workload('job', [])], 2, changes).map(({ name }) => name);
    expect([0, 1, 2, 3].map(namesAt)).toEqual([
      ['job-0-0', 'job-1-0'],
      ['job-0-1', 'job-1-0'],
      ['job-0-1', 'job-1-1'],
      ['job-0-2', 'job-1-1'],
    ]);
  });
});

/** What programs of different families may share: the list of the devices of a bus or class has one entry of each. */
describe('the simulated hardware of all families together', () => {
  it.each([
    ['eight', () => 8],
    ['the most', (most: number) => most],
  ])('has no path of two families, with %s devices of each size', (_, countFor) => {
    const owners = new Map<string, string>();
    const shared: string[] = [];
    for (const family of simulatedFamilies) {
      const counts = Object.fromEntries(family.simulation.sizes.map(({ name, most }) => [name, countFor(most)]));
      const { files, links } = hardwareOf(family, counts);
      for (const path of [...Object.keys(files), ...Object.keys(links)]) {
        // The machine has one log for all.
        if (path === 'dev/kmsg') continue;
        const owner = owners.get(path);
        if (owner !== undefined && owner !== family.name) shared.push(`${path}: ${owner} and ${family.name}`);
        owners.set(path, family.name);
      }
    }
    expect(shared).toEqual([]);
  });

  it('has a holder for the devices of each family', () => {
    const parts = simulatedFamilies.map((family) => {
      const { resources } = hardwareOf(family, { [family.name]: 2 });
      return { name: family.name, workloads: family.simulation.workloads, resources };
    });
    const stock = parts.flatMap(({ resources }) => resources);
    const workloads = mixed(
      parts.map((part) => part.workloads),
      stock,
    );
    const held = new Set(planPods(stock, workloads, workloads.length, 0).flatMap(({ devices }) => devices.map(({ resource }) => resource)));
    for (const { name, resources } of parts) {
      expect(
        resources.some(({ resource }) => held.has(resource)),
        name,
      ).toBe(true);
    }
  });
});
