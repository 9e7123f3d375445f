import { describe, expect, it } from 'vitest';
import type { Device } from '../../src/model/device.ts';
import { comparePaths, pathBetween } from '../../src/model/locality.ts';
import { type PublishedTopology, TOPOLOGIES } from './topologies.ts';

interface Cell {
  readonly a: Device;
  readonly b: Device;
  readonly printed: string;
  readonly ours: string | undefined;
}

function cellsOf({ devices, matrix }: PublishedTopology): readonly Cell[] {
  const rows = matrix.trim().split('\n');
  return rows.flatMap((row) => {
    const [name, ...cells] = row.trim().split(/\s+/);
    const a = devices.find(({ id }) => id === name) as Device;
    expect(cells, `${name} has a cell for each device`).toHaveLength(devices.length);
    return cells.flatMap((printed, at) => {
      const b = devices[at] as Device;
      expect(printed === 'X').toBe(a === b);
      return a === b ? [] : [{ a, b, printed, ours: pathBetween(a, b) }];
    });
  });
}

describe('the word of each pair of a published matrix', () => {
  it.each(TOPOLOGIES)('$machine', (topology) => {
    const wrong = cellsOf(topology).filter(
      ({ a, b, printed, ours }) => printed !== ours && topology.differs?.of(printed, ours, a, b) !== true,
    );
    expect(wrong.map(({ a, b, printed, ours }) => `${a.id} ${b.id}: ${printed} ${ours}`)).toEqual([]);
  });

  it('is equal but for the explained ones', () => {
    const all = TOPOLOGIES.map((topology) => ({ topology, cells: cellsOf(topology) }));
    const equal = all.flatMap(({ cells }) => cells.filter(({ printed, ours }) => printed === ours)).length;
    const explained = Object.fromEntries(
      all.flatMap(({ topology, cells }) => {
        const others = cells.filter(({ printed, ours }) => printed !== ours);
        return others.length === 0 ? [] : [[topology.source, others.length]];
      }),
    );
    expect({ matrices: TOPOLOGIES.length, equal, explained }).toMatchInlineSnapshot(`
      {
        "equal": 1058,
        "explained": {
          "NVIDIA/nccl, issue 1264": 32,
          "NVIDIA/nccl, issue 1453": 29,
          "deepseek-ai/DeepEP, issue 128": 14,
          "vllm-project/vllm, issue 11122": 24,
        },
        "matrices": 16,
      }
    `);
  });
});

describe('ways', () => {
  const at = (pciPath: string | undefined, numaNode?: number, more: Partial<Device> = {}): Device => ({
    family: 'toy',
    id: pciPath ?? 'none',
    kind: 'gpu',
    aliases: [],
    ...(pciPath === undefined ? {} : { pciPath }),
    ...(numaNode === undefined ? {} : { numaNode }),
    ...more,
  });

  it('are unknown where the place of one device, or a NUMA node, is unknown', () => {
    expect(pathBetween(at(undefined, 0), at('pci0000:00/0000:00:01.0', 0))).toBeUndefined();
    expect(pathBetween(at('pci0000:00/0000:00:01.0'), at('pci0000:80/0000:80:01.0', 0))).toBeUndefined();
  });

  it('are the shortest for functions of one slot and parts of one device', () => {
    expect(pathBetween(at('pci0000:00/0000:00:01.0/0000:01:00.0'), at('pci0000:00/0000:00:01.0/0000:01:00.1'))).toBe('PIX');
    expect(pathBetween(at(undefined, 0, { id: 'a-0', parent: 'a' }), at(undefined, 0, { id: 'a-1', parent: 'a' }))).toBe('PIX');
  });

  it('have an order from many links down to the other NUMA node', () => {
    const shuffled = ['SYS', 'NV1', 'PHB', 'PIX', 'NV18', 'NODE', 'XGMI', 'PXB'];
    expect(shuffled.toSorted(comparePaths)).toEqual(['NV18', 'NV1', 'XGMI', 'PIX', 'PXB', 'PHB', 'NODE', 'SYS']);
  });
});
