import { describe, expect, it } from 'vitest';
import type { DeviceView, HealthView } from '../../src/board/device-view.ts';
import { DEFAULT_VIEW, parseView, viewOf, viewQuery } from '../../src/board/view.ts';
import type { HealthState } from '../../src/model/health.ts';

const well = (state: HealthState): HealthView => ({ state, conditions: [] });
const row = (id: string, part: Partial<DeviceView> = {}): DeviceView => ({
  key: `toy/${id}`,
  family: 'toy',
  id,
  name: id,
  kind: 'toy',
  health: well('healthy'),
  readAt: '2026-03-01T12:00:00.000Z',
  stale: false,
  use: 'free',
  holders: [],
  shown: [],
  ...part,
});
const holder = (pod: string, namespace = 'ml') => ({ namespace, pod, container: 'main', resource: 'example.com/toy', deviceId: 'x' });
const rows = [
  row('a', { use: 'held', holders: [holder('train-0'), holder('train-1')], numaNode: 0, pciPath: 'pci0000:00/0000:00:01.0/0000:01:00.0' }),
  row('a-0', { parent: 'a', health: well('unhealthy'), numaNode: 0, pciPath: 'pci0000:00/0000:00:01.0/0000:01:00.1' }),
  row('b', {
    health: well('degraded'),
    use: 'held',
    holders: [holder('web', 'shop')],
    numaNode: 0,
    pciPath: 'pci0000:00/0000:00:01.0/0000:02:00.0',
  }),
  row('c', { use: 'unknown', numaNode: 1, pciPath: 'pci0000:80/0000:81:00.0' }),
];
const shown = (query: string) => {
  const { view, problem } = parseView(Object.fromEntries(new URLSearchParams(query)));
  expect(problem).toBeUndefined();
  return viewOf({ devices: rows }, view).map(({ title, rows: list }) => [
    title,
    ...list.map((one) => `${'>'.repeat(one.depth)}${one.row.id}`),
  ]);
};

describe('a view', () => {
  it('filters by each parameter, and by all words of a text', () => {
    expect(shown('')).toEqual([[undefined, 'a', '>a-0', 'b', 'c']]);
    expect(shown('state=unhealthy')).toEqual([[undefined, 'a-0']]);
    expect(shown('namespace=shop')).toEqual([[undefined, 'b']]);
    expect(shown('holder=TRAIN')).toEqual([[undefined, 'a']]);
    expect(shown('text=shop%20web')).toEqual([[undefined, 'b']]);
    expect(shown('text=shop%20train')).toEqual([[undefined]]);
    expect(shown('family=other')).toEqual([[undefined]]);
  });

  it('groups by pod: a shared device stands with each, the others under what is known of them', () => {
    expect(shown('group=pod')).toEqual([
      ['shop/web', 'b'],
      ['ml/train-0', 'a'],
      ['ml/train-1', 'a'],
      ['Free', 'a-0'],
      ['Unknown: the kubelet does not report who holds these devices', 'c'],
    ]);
  });

  it('groups by NUMA node, with the distance to the device above', () => {
    expect(shown('group=placement')).toEqual([
      ['NUMA node 0', 'a', '>a-0', 'b'],
      ['NUMA node 1', 'c'],
    ]);
    const [first] = viewOf({ devices: rows }, { ...DEFAULT_VIEW, group: 'placement' });
    expect(first?.rows.map(({ distance }) => distance)).toEqual(['', '', 'PIX to a, through one PCIe switch']);
  });

  it('is in the address, and comes back from it', () => {
    const view = { text: 'a & b', state: 'unhealthy', sort: 'name', group: 'pod' } as const;
    expect(viewQuery(DEFAULT_VIEW)).toBe('');
    expect(viewQuery(view)).toBe('?text=a+%26+b&state=unhealthy&sort=name&group=pod');
    expect(parseView(Object.fromEntries(new URLSearchParams(viewQuery(view)))).view).toEqual(view);
  });

  it('refuses what it does not know', () => {
    expect(parseView({ sort: 'size' }).problem).toBe('The parameter "sort" must be one of attention, name, family, state, use, busy.');
    expect(parseView({ text: ['a', 'b'] }).problem).toBe('The parameter "text" may be given once only.');
    expect(parseView({ text: 'x'.repeat(1_000) }).view.text).toHaveLength(200);
  });
});

it('sorts PCI addresses by their hexadecimal numbers, and other names by their numbers', () => {
  const names = ['gpu 10', '0000:3b:00.0', '0000:0a:00.0', 'gpu 9', '0000:04:00.0', '0000:0a:00.0-n10', '0000:19:00.0', '0000:0a:00.0-n9'];
  const sorted = viewOf({ devices: names.map((name) => row(name)) }, { ...DEFAULT_VIEW, sort: 'name' }).flatMap(({ rows: list }) => list);
  expect(sorted.map((one) => one.row.id)).toEqual([
    '0000:04:00.0',
    '0000:0a:00.0',
    '0000:0a:00.0-n9',
    '0000:0a:00.0-n10',
    '0000:19:00.0',
    '0000:3b:00.0',
    'gpu 9',
    'gpu 10',
  ]);
});
