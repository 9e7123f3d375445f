import { describe, expect, it } from 'vitest';
import { Assembler } from '../../src/agent/assemble.ts';
import { boardOf } from '../../src/board/board.ts';
import { boardText } from '../../src/cli/top/board-text.ts';
import { Page } from '../../src/metrics/page/page.ts';
import { Work } from '../../src/metrics/page/steps.ts';
import { addContainers, holderLabels } from '../../src/metrics/series/container-metrics.ts';
import type { Device } from '../../src/model/device.ts';
import type { ExclusiveResources } from '../../src/model/pod-resources.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { start } from '../server/start.ts';
import { allocation, device, familyState, listed, lookAt, podResources, report } from '../support/snapshots.ts';

/** Three GPUs on two NUMA nodes, of which the first two are linked, and a network adapter on the switch of the first. */
const gpu = (at: number, numaNode: number | undefined, pciPath: string, more: Partial<Device> = {}): Device => ({
  ...device({ id: `gpu-${at}`, family: 'card', kind: 'gpu', pciPath, ...more }),
  ...(numaNode === undefined ? {} : { numaNode }),
});
const BELOW = 'pci0000:10/0000:10:01.0/0000:11:00.0';
const linked = [{ device: 'gpu-1', links: 4, path: 'NV4' }];
const gpus = [
  gpu(0, 0, `${BELOW}/0000:12:00.0/0000:13:00.0`, { peers: linked }),
  gpu(1, 0, 'pci0000:20/0000:20:01.0/0000:21:00.0'),
  gpu(2, 1, 'pci0000:80/0000:80:01.0/0000:81:00.0'),
];
const nic = device({ id: 'port-0', family: 'wire', kind: 'pf', numaNode: 0, pciPath: `${BELOW}/0000:12:01.0/0000:14:00.0` });

const CPUS = new Map(Array.from({ length: 8 }, (_, cpu) => [cpu, cpu >> 2]));
const exclusive = (cpus: readonly number[]): ExclusiveResources => ({
  namespace: 'ml',
  pod: 'train-0',
  container: 'main',
  cpus,
  memory: [],
});

function snapshotOf(held: readonly Device[], known: readonly Device[] = held, cpus: readonly number[] = []): Snapshot {
  const assembler = new Assembler(
    {
      rules: { pools: [], families: new Map() },
      specs: new Map(),
      staleAfterMs: 60_000,
      missingRetentionMs: 600_000,
      roles: new Map([
        ['card', 'gpu'],
        ['wire', 'nic'],
      ]),
      cpuNodes: CPUS,
    },
    (devices) => new Map(devices.map(({ key }) => [key, { state: 'healthy', sinceMs: 0, conditions: [] }])),
  );
  const families = ['card', 'wire', 'disk'].map((family) => ({
    state: familyState(family),
    latest: lookAt(listed(known.filter((one) => one.family === family).map((one) => report({ device: one }))), 0),
  }));
  const allocations = held.map(({ id }) => allocation({ deviceId: id }));
  const input = {
    families,
    podResources: podResources(allocations, cpus.length === 0 ? {} : { exclusive: [exclusive(cpus)] }),
    checkpoint: [],
  };
  return assembler.assemble(input, { nowMs: 0, monotonicMs: 0 });
}

function seriesOf(snapshot: Snapshot): readonly string[] {
  const page = new Page();
  addContainers(page, snapshot, holderLabels(''));
  const lines = new Work(new Work(page.finish()).result.bytes('text')).result.toString().split('\n');
  return lines
    .filter((line) => /^container_device_(?:path|locality|off_node)\{/.test(line))
    .map((line) => line.replace('namespace="ml",pod="train-0",container="main"', '').replace('{,', '{'));
}

describe('the locality of a container', () => {
  it('is the way of each pair, the farthest ways, and the devices off the nodes of its CPUs', () => {
    const snapshot = snapshotOf([...gpus, nic], undefined, [0, 1]);
    expect(snapshot.localities).toEqual([
      {
        namespace: 'ml',
        pod: 'train-0',
        container: 'main',
        gpus: ['card/gpu-0', 'card/gpu-1', 'card/gpu-2'],
        nics: [{ device: 'wire/port-0', hasVerbs: true }],
        pairs: [
          { from: 'card/gpu-0', to: 'card/gpu-1', path: 'NV4' },
          { from: 'card/gpu-0', to: 'card/gpu-2', path: 'SYS' },
          { from: 'card/gpu-0', to: 'wire/port-0', path: 'PIX' },
          { from: 'card/gpu-1', to: 'card/gpu-2', path: 'SYS' },
          { from: 'card/gpu-1', to: 'wire/port-0', path: 'NODE' },
          { from: 'card/gpu-2', to: 'wire/port-0', path: 'SYS' },
        ],
        gpuPath: 'SYS',
        nicPath: 'SYS',
        offNode: 1,
      },
    ]);
    expect(seriesOf(snapshot)).toEqual([
      'container_device_locality{between="gpu-nic",path="SYS"} 1',
      'container_device_locality{between="gpus",path="SYS"} 1',
      'container_device_off_node{} 1',
      'container_device_path{from="gpu-0",to="gpu-1",path="NV4"} 1',
      'container_device_path{from="gpu-0",to="gpu-2",path="SYS"} 1',
      'container_device_path{from="gpu-0",to="port-0",path="PIX"} 1',
      'container_device_path{from="gpu-1",to="gpu-2",path="SYS"} 1',
      'container_device_path{from="gpu-1",to="port-0",path="NODE"} 1',
      'container_device_path{from="gpu-2",to="port-0",path="SYS"} 1',
    ]);
  });

  it('is on the row of each device, in the wide list, in JSON and on the page of the pod', async () => {
    const snapshot = snapshotOf([...gpus, nic], undefined, [0, 1]);
    const board = boardOf(snapshot, { nowMs: 0 });
    expect(board.devices.map(({ id, farthest }) => `${id}: ${farthest}`)).toEqual([
      'gpu-0: SYS to gpu-2',
      'gpu-1: SYS to gpu-2',
      'gpu-2: SYS to gpu-0',
      'port-0: SYS to gpu-2',
    ]);
    for (const group of ['tree', 'pod'] as const)
      expect(boardText(board, { isWide: true, group })).toMatch(/FARTHEST[\s\S]*gpu-0 .* SYS to gpu-2/);
    expect(boardText(board, { isWide: false, group: 'tree' })).not.toContain('FARTHEST');
    const { url, server } = await start({ snapshot: () => snapshot });
    const [page, answer] = await Promise.all(['/pods/ml/train-0', '/api/v1/allocations'].map((path) => fetch(url + path)));
    const text = (await page?.text()) ?? '';
    expect(text).toContain('Its GPUs reach each other through the link between NUMA nodes, the slowest way (SYS) at worst.');
    expect(text).toContain('reaches the nearest one through the link between NUMA nodes, the slowest way (SYS).');
    expect(text).toContain('1 device of it is on other NUMA nodes than its 2 own CPUs.');
    expect(text).toContain('<tr><th scope="row">gpu-0</th><td></td><td>NV4</td><td>SYS</td><td>PIX</td></tr>');
    expect(await answer?.json()).toMatchObject({ localities: snapshot.localities });
    server.close();
  });

  it('is absent without a GPU, and for a GPU alone', () => {
    expect(snapshotOf([nic, device({ id: 'disk-0', family: 'disk' })])).not.toHaveProperty('localities');
    expect(snapshotOf([gpus[0] as Device])).not.toHaveProperty('localities');
  });

  it('is never better for what is unknown', () => {
    const [locality] = snapshotOf([gpus[0] as Device, gpu(3, undefined, 'pci0000:80/0000:80:02.0'), nic], undefined, [0]).localities ?? [];
    expect(locality?.pairs).toEqual([
      { from: 'card/gpu-0', to: 'card/gpu-3' },
      { from: 'card/gpu-0', to: 'wire/port-0', path: 'PIX' },
      { from: 'card/gpu-3', to: 'wire/port-0' },
    ]);
    expect(Object.keys(locality ?? {})).toEqual(['namespace', 'pod', 'container', 'gpus', 'nics', 'pairs']);
    // A CPU whose node is unknown says nothing about the devices.
    expect(snapshotOf([...gpus], undefined, [0, 99]).localities?.[0]).not.toHaveProperty('offNode');
  });

  it('keeps the farthest pair of each device where a container holds very many', () => {
    const many = Array.from({ length: 24 }, (_, at) => gpu(at, at === 23 ? 1 : 0, `pci0000:${at + 10}/0000:${at + 10}:01.0`));
    const pairs = snapshotOf(many).localities?.[0]?.pairs ?? [];
    expect(pairs).toHaveLength(23);
    expect(new Set(pairs.flatMap(({ from, to }) => [from, to])).size).toBe(24);
    expect(pairs.every(({ path }) => path === 'SYS')).toBe(true);
    expect(snapshotOf(many.slice(0, 23)).localities?.[0]?.pairs).toHaveLength(253);
  });
});
