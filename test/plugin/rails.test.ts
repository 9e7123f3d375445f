import { afterEach, describe, expect, it } from 'vitest';
import type { Device } from '../../src/model/device.ts';
import { comparePaths, PCIE_PATHS, pathBetween, placeOf } from '../../src/model/locality.ts';
import type { PluginResource } from '../../src/model/plugin-resource.ts';
import { Admission } from '../../src/plugin/allocation/allocate.ts';
import { type Placement, preferredIds } from '../../src/plugin/allocation/preferred.ts';
import { TOPOLOGIES } from '../model/topologies.ts';
import { seededRandom } from '../support/seeded.ts';
import { until } from '../support/until.ts';
import { type Bench, deviceState, listed, setUp } from './support.ts';

const isGpu = ({ id }: Device): boolean => id.startsWith('GPU');
const topology = (source: string): readonly Device[] => TOPOLOGIES.find((one) => one.source.includes(source))?.devices ?? [];

let bench: Bench | undefined;
afterEach(async () => {
  await bench?.close();
  bench = undefined;
});

describe('a container that asks for GPUs and for network devices', () => {
  const GPUS: PluginResource = { resource: 'example.com/gpu', select: { family: 'toy' } };
  const NICS: PluginResource = { resource: 'example.com/nic', select: { family: 'other' } };
  /** The adapters of this machine are numbered against the order of its GPUs. */
  const machine = topology('issue 1453').filter(({ id }) => id !== 'NIC0');

  it.each([
    ['GPUs first', [GPUS, NICS]],
    ['network devices first', [NICS, GPUS]],
  ])('gets those of one switch, %s', async (_, order) => {
    bench = setUp({ resources: [GPUS, NICS] });
    bench.store.publish(machine.map((one) => deviceState({ ...one, family: isGpu(one) ? 'toy' : 'other' })));
    await bench.manager.start();
    bench.plugin.start();
    const { manager } = bench;
    await until(() => listed(manager, GPUS.resource).length === 8 && listed(manager, NICS.resource).length === 8);
    const ways: (string | undefined)[] = [];
    for (let pod = 0; pod < 8; pod += 1) {
      const wants = order.map(({ resource }) => ({ resource, count: 1 }));
      const grants = await manager.admit({ podUid: `${pod}`, containers: [{ container: 'main', kind: 'app', wants, isRunning: false }] });
      const [one, other] = grants.map(({ deviceIds }) => machine.find(({ id }) => id === deviceIds[0]));
      ways.push(one && other && pathBetween(one, other));
    }
    expect(ways).toEqual(Array(8).fill('PIX'));
  });

  it('is not confused with a container that asks for the same again, or with one of a moment ago', () => {
    const admission = new Admission();
    const [gpu, nic] = [machine.find(isGpu), machine.find((one) => !isGpu(one))].map((one) => placeOf(one as Device));
    admission.granted('gpu', [gpu as never], 0);
    expect(admission.near('nic', 1_000)).toEqual([gpu]);
    expect(admission.near('nic', 1_001)).toEqual([]);
    expect(admission.near('gpu', 10)).toEqual([]);
    admission.granted('nic', [nic as never], 10);
    expect(admission.near('disk', 20)).toEqual([gpu, nic]);
    // The next container begins with a resource that is among the grants.
    admission.granted('gpu', [gpu as never], 30);
    expect(admission.near('nic', 40)).toEqual([gpu]);
  });
});

/** How containers that each ask for `count` GPUs, and then for as many network devices, are placed until the node is full. */
type Chooser = (free: readonly Device[], count: number, near: readonly Device[]) => readonly Device[];

const placement = (device: Device): Placement => ({ id: device.id, ...placeOf(device) });
const preferring: Chooser = (free, count, near) => {
  const request = { available: free.map(({ id }) => id), mustInclude: [], size: count, near: near.map(placeOf) };
  const chosen = new Set(preferredIds(request, free.map(placement), 'aligned'));
  return free.filter(({ id }) => chosen.has(id));
};
const lowest: Chooser = (free, count) => free.slice(0, count);
const random = seededRandom(20_261_126);
const anyone: Chooser = (free, count) =>
  free
    .map((one) => ({ one, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .slice(0, count)
    .map(({ one }) => one);

interface Result {
  containers: number;
  /** The farthest way from a GPU to its nearest network device is below one root port. */
  onRail: number;
  /** All GPUs of the container are on one NUMA node or directly linked. */
  together: number;
}

function fill(devices: readonly Device[], count: number, choose: Chooser, into: Result): void {
  let [gpus, nics] = [devices.filter(isGpu), devices.filter((one) => !isGpu(one))];
  while (gpus.length >= count && nics.length >= count) {
    const own = choose(gpus, count, []);
    const nic = choose(nics, count, own);
    gpus = gpus.filter((one) => !own.includes(one));
    nics = nics.filter((one) => !nic.includes(one));
    const worst = (ways: readonly (string | undefined)[]): string =>
      ways.includes(undefined) ? 'SYS' : ((ways as string[]).toSorted(comparePaths).at(-1) ?? 'PIX');
    const nearest = own.map((gpu) => nic.map((one) => pathBetween(gpu, one) ?? 'SYS').toSorted(comparePaths)[0]);
    into.containers += 1;
    into.onRail += ['PIX', 'PXB'].includes(worst(nearest)) ? 1 : 0;
    into.together += worst(own.flatMap((a, at) => own.slice(at + 1).map((b) => pathBetween(a, b)))) === 'SYS' ? 0 : 1;
  }
}

describe('the gain on published machines', () => {
  it('over the lowest ids, and over the kubelet without a preference, which takes any', () => {
    const rows = [
      ['DGX-1', 'Microway; bus'],
      ['DGX A100', 'issue 149'],
      ['8 H100, one rail each', 'issue 1453'],
      ['8 H100, 10 adapters', 'issue 1264'],
      ['8 H100, one node', 'sglang'],
    ].flatMap(([name, source = '']) =>
      [1, 2, 4].map((count) => {
        const shares = ([preferring, lowest, anyone] as const).map((choose) => {
          const result: Result = { containers: 0, onRail: 0, together: 0 };
          for (let round = 0; round < (choose === anyone ? 200 : 1); round += 1) fill(topology(source), count, choose, result);
          const percent = (part: number): string => `${Math.round((100 * part) / result.containers)}`;
          return `${percent(result.onRail)}/${percent(result.together)}`;
        });
        return [name, count, ...shares].join(' | ');
      }),
    );
    expect(PCIE_PATHS).toContain('PIX');
    expect(`\n${['machine | GPUs | preferred | lowest ids | any', ...rows].join('\n')}\n`).toMatchInlineSnapshot(`
      "
      machine | GPUs | preferred | lowest ids | any
      DGX-1 | 1 | 50/100 | 50/100 | 25/100
      DGX-1 | 2 | 100/100 | 100/100 | 17/57
      DGX-1 | 4 | 100/100 | 100/100 | 100/2
      DGX A100 | 1 | 100/100 | 100/100 | 19/100
      DGX A100 | 2 | 100/100 | 100/100 | 14/100
      DGX A100 | 4 | 100/100 | 100/100 | 20/100
      8 H100, one rail each | 1 | 100/100 | 13/100 | 11/100
      8 H100, one rail each | 2 | 100/100 | 0/100 | 3/100
      8 H100, one rail each | 4 | 100/100 | 0/100 | 1/100
      8 H100, 10 adapters | 1 | 100/100 | 38/100 | 11/100
      8 H100, 10 adapters | 2 | 100/100 | 25/100 | 2/100
      8 H100, 10 adapters | 4 | 100/100 | 0/100 | 1/100
      8 H100, one node | 1 | 88/100 | 38/100 | 9/100
      8 H100, one node | 2 | 75/100 | 25/100 | 2/100
      8 H100, one node | 4 | 50/100 | 0/100 | 0/100
      "
    `);
  });
});
