import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/host/clock.ts';
import { createHost } from '../../src/host/host.ts';
import { nearness } from '../../src/model/locality.ts';
import type { Preference } from '../../src/model/plugin-resource.ts';
import type { DeviceState } from '../../src/model/snapshot.ts';
import { type PreferenceRequest, placementsOf, preferenceOf, preferredIds } from '../../src/plugin/allocation/preferred.ts';
import { healthByState, takeInventory } from '../../src/plugin/offers/inventory.ts';
import { family } from '../../src/probes/nvidia/index.ts';
import { buildMachine, readMachine } from '../support/machine.ts';
import { probeOptions } from '../support/probe-options.ts';
import { seededRandom } from '../support/seeded.ts';
import { deviceState, TOY } from './support.ts';

/**
 * Eight GPUs on two NUMA nodes: 0 to 3 and 4 to 7. Behind one PCIe switch each: 0 1, 2 3, 4 5, 6 7. NVLink joins others than the
 * switches do: 0 3, 1 2, 4 7, 5 6.
 */
const LINKED: Readonly<Record<number, number>> = { 0: 3, 3: 0, 1: 2, 2: 1, 4: 7, 7: 4, 5: 6, 6: 5 };
/** Root complex, root port, the switch's upstream port, its downstream port, the GPU. */
const pathOf = (at: number): string => {
  const [node, pair] = [at >> 2, (at >> 1) & 1];
  const [root, first] = [node === 0 ? '00' : '80', node * 0x80 + 1 + pair * 0x10];
  const bus = (more: number): string => (first + more).toString(16).padStart(2, '0');
  return `pci0000:${root}/0000:${root}:0${pair + 1}.0/0000:${bus(0)}:00.0/0000:${bus(1)}:0${at & 1}.0/0000:${bus(2 + (at & 1))}:00.0`;
};
const gpus = Array.from({ length: 8 }, (_, at) =>
  deviceState({
    id: `g${at}`,
    numaNode: at < 4 ? 0 : 1,
    pciPath: pathOf(at),
    peers: [{ device: `g${LINKED[at]}`, links: 4, path: 'NV4' }],
  }),
);
const plain = placementsOf(takeInventory(TOY, gpus, healthByState));
const replicated = placementsOf(takeInventory({ ...TOY, replicas: 4 }, gpus, healthByState));
const every = plain.map(({ id }) => id);

const names = (text: string): string[] => (text === '' ? [] : text.split(' '));
const prefer = (available: string, must: string, size: number, all = plain, preference: Preference = 'aligned'): string =>
  preferredIds({ available: names(available), mustInclude: names(must), size }, all, preference)
    .sort()
    .join(' ');

describe('preferred allocation on 8 GPUs with NVLink pairs and 2 NUMA nodes', () => {
  const ALL = every.join(' ');

  it.each([
    ['a pair by NVLink', ALL, '', 2, 'g0 g3'],
    ['the partner of what is fixed', ALL, 'g5', 2, 'g5 g6'],
    ['the pair that is still whole', 'g0 g1 g2 g4 g5', '', 2, 'g1 g2'],
    ['one switch where no NVLink is to be had', 'g0 g1 g4 g6', '', 2, 'g0 g1'],
    ['one NUMA node where no switch is to be had', 'g0 g2 g4', '', 2, 'g0 g2'],
    ['two switches under one root rather than across nodes', 'g1 g3 g4', '', 2, 'g1 g3'],
    ['one node for four', ALL, '', 4, 'g0 g1 g2 g3'],
    ['the other node for four when this one is short', 'g0 g1 g2 g4 g5 g6 g7', '', 4, 'g4 g5 g6 g7'],
    ['two pairs for four when neither node is whole', 'g0 g1 g3 g4 g5 g7', '', 4, 'g0 g3 g4 g7'],
    ['a pair and a neighbour by switch for three', ALL, '', 3, 'g0 g1 g2'],
    ['the one whose partner is gone, so that pairs stay whole', 'g0 g1 g2 g3 g4 g6 g7', '', 1, 'g6'],
    ['six without leaving a pair torn', ALL, '', 6, 'g0 g1 g2 g3 g4 g7'],
    ['all of them', ALL, '', 8, ALL],
    ['what there is when more is asked for', 'g6 g1', '', 4, 'g1 g6'],
    ['both fixed ones, however far apart', ALL, 'g0 g7', 2, 'g0 g7'],
    ['the partners of both fixed ones', ALL, 'g0 g7', 4, 'g0 g3 g4 g7'],
    ['nothing', ALL, '', 0, ''],
  ])('proposes %s', (_, available, must, size, expected) => {
    expect(prefer(available, must, size)).toBe(expected);
    expect(prefer(names(available).reverse().join(' '), must, size)).toBe(expected);
  });

  it('takes different GPUs before a second replica of one', () => {
    expect(prefer(replicated.map(({ id }) => id).join(' '), '', 2, replicated)).toBe('g0::0 g3::0');
    expect(prefer('g0::0 g0::1 g7::2', '', 2, replicated)).toBe('g0::0 g7::2');
  });

  it('keeps to the parts of one board, even where the way to it is not known', () => {
    const parts = ['a', 'b', 'a', 'b', 'a'].map((parent, at) => deviceState({ id: `vf${at}`, parent, numaNode: 0 }));
    const places = placementsOf(takeInventory(TOY, parts, healthByState));
    expect(prefer('vf0 vf1 vf2 vf3 vf4', '', 3, places)).toBe('vf0 vf2 vf4');
    expect(prefer('vf0 vf1 vf2 vf3 vf4', 'vf1', 2, places)).toBe('vf1 vf3');
  });

  it('approaches the best set where there are too many to try: 8 of 32 replicas are the 8 GPUs', () => {
    const proposed = preferredIds({ available: replicated.map(({ id }) => id), mustInclude: [], size: 8 }, replicated, 'aligned');
    expect(new Set(proposed.map((id) => id.split('::')[0])).size).toBe(8);
  });

  it('thins a crowd of replicas out without losing a device or what is fixed', () => {
    const crowd = placementsOf(takeInventory({ ...TOY, replicas: 200 }, gpus, healthByState));
    const request = { available: crowd.map(({ id }) => id), mustInclude: ['g7::199'], size: 8 };
    const proposed = preferredIds(request, crowd, 'aligned');
    expect(proposed).toContain('g7::199');
    expect(new Set(proposed.map((id) => id.split('::')[0])).size).toBe(8);
  });

  it('works with NUMA nodes alone, and without anything', () => {
    const bare = (nodes: readonly (number | undefined)[]) =>
      placementsOf(
        takeInventory(
          TOY,
          nodes.map((numaNode, at) => deviceState(numaNode === undefined ? { id: `g${at}` } : { id: `g${at}`, numaNode })),
          healthByState,
        ),
      );
    expect(prefer('g0 g1 g2', '', 2, bare([0, 1, 1]))).toBe('g1 g2');
    expect(prefer('g2 g1 g0', '', 2, bare([undefined, undefined, undefined]))).toBe('g0 g1');
  });
});

/** What the agent reads on one of the machines that stand for real ones. */
async function readGpus(machine: string): Promise<readonly DeviceState[]> {
  const { root, options, remove } = buildMachine(readMachine(join('test/probes/nvidia', machine, 'machine.yaml')));
  const host = createHost({ sysfs: join(root, 'sys'), procfs: join(root, 'proc'), dev: join(root, 'dev') }, systemClock);
  const probe = family.createProbe(host, probeOptions(family, options));
  try {
    return (await probe.collect()).reports.map(({ device }) => deviceState(device));
  } finally {
    await probe.close?.();
    remove();
  }
}

describe('preferred allocation on machines with NVLink', () => {
  it.each([
    ['four-gpus-joined-in-pairs', '1 2 3 4', '', 2, '1 4'],
    ['four-gpus-joined-in-pairs', '1 2 3', '', 2, '2 3'],
    ['four-gpus-joined-in-pairs', '1 2 3 4', '1 2', 3, '1 2 3'],
    // The one with two links down is the last that a set would have.
    ['eight-hoppers-on-switches', '1 2 3 4 5 6 7 8', '', 7, '1 2 3 4 5 6 8'],
    ['eight-hoppers-on-switches', '5 6 7 8', '', 3, '5 6 8'],
  ])('%s: of %s, with %s, %i are %s', async (machine, available, must, size, expected) => {
    const states = await readGpus(machine);
    const ids = (text: string): string[] => names(text).map((at) => states[Number(at) - 1]?.device.id ?? '');
    const all = placementsOf(takeInventory({ ...TOY, select: { family: 'nvidia' } }, states, healthByState));
    expect(preferredIds({ available: ids(available), mustInclude: ids(must), size }, all, 'aligned').sort()).toEqual(ids(expected));
  });
});

describe('nearness', () => {
  const at = (index: number) => plain[index] as (typeof plain)[number];
  it('goes by links, then switch, root, node', () => {
    expect(nearness(at(0), at(3))).toBe(430);
    expect(nearness(at(0), at(1))).toBe(50);
    expect(nearness(at(0), at(2))).toBe(30);
    expect(nearness(at(0), at(4))).toBe(10);
    const [here, there] = [0, 1].map((slot) => ({
      id: '',
      device: `d${slot}`,
      physical: `d${slot}`,
      numaNode: 0,
      pciPath: [],
      links: new Map(),
    }));
    expect(nearness(here as never, there as never)).toBe(20);
  });
});

describe('preferred allocation by use', () => {
  const mig = placementsOf(
    takeInventory(
      TOY,
      ['a', 'b'].flatMap((gpu) => [0, 1, 2].map((slice) => deviceState({ id: `${gpu}${slice}`, parent: gpu }))),
      healthByState,
    ),
  );

  it.each([
    ['spread', 'over GPUs', 'g0::0 g0::1 g1::0 g1::1', '', 2, replicated, 'g0::0 g1::0'],
    ['spread', 'to the GPU used least', 'g0::3 g1::2 g1::3', '', 1, replicated, 'g1::2'],
    ['spread', 'counting what is fixed', 'g0::0 g0::1 g0::2 g0::3 g1::1 g1::2 g1::3', 'g0::0', 2, replicated, 'g0::0 g0::1'],
    ['spread', 'over the GPUs of MIG instances', 'a0 a1 a2 b0 b1 b2', '', 2, mig, 'a0 b0'],
    ['packed', 'on one GPU', 'g0::0 g0::1 g1::0 g1::1', '', 2, replicated, 'g0::0 g0::1'],
    ['packed', 'on the GPU used most', 'g0::1 g0::2 g0::3 g1::3', '', 2, replicated, 'g0::1 g1::3'],
    ['packed', 'MIG instances where some are in use', 'a0 a1 a2 b1 b2', '', 2, mig, 'b1 b2'],
    ['none', 'as it comes, the fixed ones first', 'g2 g1 g0', 'g0', 2, plain, 'g0 g2'],
  ] as const)('%s: %s', (preference, _, available, must, size, all, expected) => {
    expect(prefer(available, must, size, all, preference)).toBe(expected);
  });

  it('refuses a request that fixes more than it wants', () => {
    expect(() => prefer('g0 g1', 'g0 g1', 1)).toThrow('2 devices must be included in an allocation of 1');
  });

  it('follows the kind of resource where nothing is configured', () => {
    expect(preferenceOf(TOY)).toBe('aligned');
    expect(preferenceOf({ ...TOY, replicas: 2 })).toBe('spread');
    expect(preferenceOf({ ...TOY, pool: 9 })).toBe('none');
    expect(preferenceOf({ ...TOY, replicas: 2, preferred: 'packed' })).toBe('packed');
  });
});

describe('5,000 places', () => {
  const COUNT = 5_000;

  it.each([
    ['aligned', 1, COUNT],
    ['aligned', 1, COUNT / 2],
    ['spread', 1, COUNT / 2],
    ['spread', 100, COUNT / 2],
    ['packed', 100, COUNT / 2],
    ['packed', COUNT, COUNT / 2],
  ] as const)('%s, %i on each device, are looked at a few times each to propose %i', (preference, replicas, size) => {
    let looks = 0;
    const all = Array.from({ length: COUNT }, (_, at) => {
      const device = `d${Math.floor(at / replicas)}`;
      return {
        id: `p${at}`,
        get device() {
          looks += 1;
          return device;
        },
        get physical() {
          looks += 1;
          return device;
        },
        pciPath: [],
        links: new Map<string, number>(),
      };
    });
    const request = { available: all.map(({ id }) => id), mustInclude: ['p7'], size };
    const proposed = preferredIds(request, all, preference);
    expect(new Set(proposed).size).toBe(size);
    expect(proposed).toContain('p7');
    expect(looks).toBeLessThan(10 * COUNT);
  });
});

describe('10,000 random requests', () => {
  it('are answered with a subset of the right size that has the fixed ones, and always alike', () => {
    const random = seededRandom(20_260_131);
    const below = (limit: number): number => Math.floor(random() * limit);
    const preferences: readonly Preference[] = ['aligned', 'spread', 'packed', 'none'];
    for (let round = 0; round < 10_000; round += 1) {
      const all = round % 2 === 0 ? plain : replicated;
      const available = shuffled(all.map(({ id }) => id)).slice(0, below(all.length + 1));
      // Ids that the inventory no longer knows come too: the kubelet's copy is older than ours.
      if (round % 7 === 0) available.push('gone-1', 'gone-0');
      const size = below(available.length + 3);
      const mustInclude = available.slice(0, below(Math.min(size, available.length) + 1));
      const request: PreferenceRequest = { available: shuffled(available), mustInclude, size };
      const preference = preferences[below(preferences.length)] as Preference;
      const answer = preferredIds(request, all, preference);
      const told = JSON.stringify({ request, preference, answer });
      expect(new Set(answer).size, told).toBe(answer.length);
      expect(answer.length, told).toBe(Math.min(size, available.length));
      expect(
        answer.every((id) => available.includes(id)),
        told,
      ).toBe(true);
      expect(
        mustInclude.every((id) => answer.includes(id)),
        told,
      ).toBe(true);
      const again = preferredIds({ ...request, available: [...request.available] }, all, preference);
      expect(again, told).toEqual(answer);
      if (preference !== 'none') expect(preferredIds({ ...request, available: [...available] }, all, preference), told).toEqual(answer);
    }

    function shuffled<T>(values: readonly T[]): T[] {
      return values
        .map((value) => [random(), value] as const)
        .sort(([a], [b]) => a - b)
        .map(([, value]) => value);
    }
  });
});
