import type { Device } from '../../src/model/device.ts';

/** A matrix of `nvidia-smi topo -m` that its owner published, and a PCIe tree with the devices of that machine. */
export interface PublishedTopology {
  readonly machine: string;
  readonly source: string;
  /**
   * `bus ids`: the bus numbers of the devices and their nesting were published for this machine or this model. `layout`: the source has no bus
   * numbers, so the tree is the published layout of the platform (which devices share a switch) with numbers of ours.
   */
  readonly tree: 'bus ids' | 'layout';
  readonly devices: readonly Device[];
  /** Cells as printed, `X` on the diagonal; rows that the source cuts are left out. */
  readonly matrix: string;
  /** Pairs of which our word is another one, and why. */
  readonly differs?: { readonly reason: string; readonly of: (printed: string, ours: string | undefined, a: Device, b: Device) => boolean };
}

type Where = readonly [name: string, node: number | undefined, path: string];

/** `path` is short for a path of sysfs: `00/00:02.0/03:00.0` in domain 0. */
function devicesOf(places: readonly Where[], links: readonly (readonly [string, string, number])[] = []): readonly Device[] {
  const family = (name: string): string => (name.startsWith('GPU') ? 'nvidia' : 'infiniband');
  return places.map(([name, numaNode, path]) => {
    const [root, ...functions] = path.split('/');
    const peers = links.flatMap(([a, b, count]) => {
      const other = a === name ? b : b === name ? a : undefined;
      return other === undefined ? [] : [{ device: other, links: count, path: `NV${count}` }];
    });
    return {
      family: family(name),
      id: name,
      kind: name.startsWith('GPU') ? 'gpu' : 'pf',
      aliases: [],
      ...(numaNode === undefined ? {} : { numaNode }),
      pciPath: [`pci0000:${root}`, ...functions.map((one) => `0000:${one}`)].join('/'),
      ...(peers.length === 0 ? {} : { peers }),
    };
  });
}

/** Every GPU reaches every other one over switches of NVLink. */
const switched = (gpus: number, count: number) =>
  Array.from({ length: gpus }, (_, a) =>
    Array.from({ length: gpus - a - 1 }, (__, b) => [`GPU${a}`, `GPU${a + b + 1}`, count] as const),
  ).flat();

/** Links of eight V100 in the hybrid cube mesh. The first two rows were published as counts of links too (NVIDIA/nccl, issue 671). */
const CUBE_MESH = (
  [
    [0, 1, 1],
    [0, 2, 1],
    [0, 3, 2],
    [0, 4, 2],
    [1, 2, 2],
    [1, 3, 1],
    [1, 5, 2],
    [2, 3, 2],
    [2, 6, 1],
    [3, 7, 1],
    [4, 5, 1],
    [4, 6, 1],
    [4, 7, 2],
    [5, 6, 2],
    [5, 7, 1],
    [6, 7, 2],
  ] as const
).map(([a, b, count]) => [`GPU${a}`, `GPU${b}`, count] as const);

/** A GPU and an adapter below one switch that has a root complex of its own. */
const pairBelowSwitch = (at: number, node: number, gpu: string, nic: string | undefined): readonly Where[] => {
  const root = (0x10 + at * 0x10).toString(16);
  const bus = (more: number): string => (0x10 + at * 0x10 + more).toString(16);
  const below = `${root}/${root}:01.0/${bus(1)}:00.0`;
  return [
    [gpu, node, `${below}/${bus(2)}:00.0/${bus(3)}:00.0`],
    ...(nic === undefined ? [] : [[nic, node, `${below}/${bus(2)}:01.0/${bus(4)}:00.0`] as const]),
  ];
};

const NO_NODE_IN_SYSFS = {
  reason:
    'The platform gives the device no NUMA node (N/A, or an adapter that is SYS to both sockets). nvidia-smi prints SYS for what it does not know; ours is unknown.',
  of: (printed: string, ours: string | undefined): boolean => printed === 'SYS' && ours === undefined,
};

const SYS_WITHIN_A_NODE = {
  reason:
    'The columns of the same dump say that both devices are on one NUMA node, and its legend calls that NODE. Other machines with the same processors print NODE. Why these drivers print SYS is not known.',
  of: (printed: string, ours: string | undefined, a: Device, b: Device): boolean =>
    printed === 'SYS' && ours === 'NODE' && a.numaNode !== undefined && a.numaNode === b.numaNode,
};

export const TOPOLOGIES: readonly PublishedTopology[] = [
  {
    machine: 'DGX-1 with 8 V100 and 4 adapters',
    source: 'guide to nvidia-smi by Microway; bus ids of the GPUs and switches from NVIDIA/nccl, issue 671',
    tree: 'bus ids',
    devices: devicesOf(
      [
        ['GPU0', 0, '00/00:02.0/03:00.0/04:08.0/06:00.0'],
        ['GPU1', 0, '00/00:02.0/03:00.0/04:0c.0/07:00.0'],
        ['GPU2', 0, '00/00:03.0/08:00.0/09:08.0/0a:00.0'],
        ['GPU3', 0, '00/00:03.0/08:00.0/09:0c.0/0b:00.0'],
        ['GPU4', 1, '80/80:02.0/82:00.0/83:08.0/85:00.0'],
        ['GPU5', 1, '80/80:02.0/82:00.0/83:0c.0/86:00.0'],
        ['GPU6', 1, '80/80:03.0/87:00.0/88:08.0/89:00.0'],
        ['GPU7', 1, '80/80:03.0/87:00.0/88:0c.0/8a:00.0'],
        ['mlx5_0', 0, '00/00:02.0/03:00.0/04:04.0/05:00.0'],
        ['mlx5_2', 1, '80/80:02.0/82:00.0/83:04.0/84:00.0'],
        ['mlx5_1', 0, '00/00:03.0/08:00.0/09:10.0/0c:00.0'],
        ['mlx5_3', 1, '80/80:03.0/87:00.0/88:10.0/8b:00.0'],
      ],
      CUBE_MESH,
    ),
    matrix: `
      GPU0   X   NV1 NV1 NV2 NV2 SYS SYS SYS PIX SYS PHB SYS
      GPU1   NV1 X   NV2 NV1 SYS NV2 SYS SYS PIX SYS PHB SYS
      GPU2   NV1 NV2 X   NV2 SYS SYS NV1 SYS PHB SYS PIX SYS
      GPU3   NV2 NV1 NV2 X   SYS SYS SYS NV1 PHB SYS PIX SYS
      GPU4   NV2 SYS SYS SYS X   NV1 NV1 NV2 SYS PIX SYS PHB
      GPU5   SYS NV2 SYS SYS NV1 X   NV2 NV1 SYS PIX SYS PHB
      GPU6   SYS SYS NV1 SYS NV1 NV2 X   NV2 SYS PHB SYS PIX
      GPU7   SYS SYS SYS NV1 NV2 NV1 NV2 X   SYS PHB SYS PIX
      mlx5_0 PIX PIX PHB PHB SYS SYS SYS SYS X   SYS PHB SYS
      mlx5_2 SYS SYS SYS SYS PIX PIX PHB PHB SYS X   SYS PHB
      mlx5_1 PHB PHB PIX PIX SYS SYS SYS SYS PHB SYS X   SYS
      mlx5_3 SYS SYS SYS SYS PHB PHB PIX PIX SYS PHB SYS X`,
  },
  {
    machine: 'DGX A100 with 8 GPUs and 10 adapters, 8 NUMA nodes',
    source: 'NVIDIA/DCGM, issue 149; nesting and bus ids of GPU0 and mlx5_0 from NVIDIA/nccl, issue 1505',
    tree: 'bus ids',
    devices: devicesOf(
      [
        ['GPU0', 3, '00/00:01.1/01:00.0/02:00.0/03:00.0/04:00.0/07:00.0'],
        ['GPU1', 3, '00/00:01.1/01:00.0/02:04.0/0d:00.0/0e:00.0/0f:00.0'],
        ['GPU2', 1, '40/40:01.1/41:00.0/42:00.0/43:00.0/44:00.0/47:00.0'],
        ['GPU3', 1, '40/40:01.1/41:00.0/42:04.0/4c:00.0/4d:00.0/4e:00.0'],
        ['GPU4', 7, '80/80:01.1/81:00.0/82:00.0/83:00.0/84:00.0/87:00.0'],
        ['GPU5', 7, '80/80:01.1/81:00.0/82:04.0/8e:00.0/8f:00.0/90:00.0'],
        ['GPU6', 5, 'b0/b0:01.1/b1:00.0/b2:00.0/b3:00.0/b4:00.0/b7:00.0'],
        ['GPU7', 5, 'b0/b0:01.1/b1:00.0/b2:04.0/bb:00.0/bc:00.0/bd:00.0'],
        ['NIC0', 3, '00/00:01.1/01:00.0/02:08.0/0a:00.0/0b:00.0/0c:00.0'],
        ['NIC1', 3, '00/00:01.1/01:00.0/02:0c.0/10:00.0/11:00.0/12:00.0'],
        ['NIC2', 1, '40/40:01.1/41:00.0/42:08.0/49:00.0/4a:00.0/4b:00.0'],
        ['NIC3', 1, '40/40:01.1/41:00.0/42:0c.0/52:00.0/53:00.0/54:00.0'],
        ['NIC4', 7, '80/80:01.1/81:00.0/82:08.0/8b:00.0/8c:00.0/8d:00.0'],
        ['NIC5', 7, '80/80:01.1/81:00.0/82:0c.0/92:00.0/93:00.0/94:00.0'],
        ['NIC6', 5, 'b0/b0:01.1/b1:00.0/b2:08.0/b8:00.0/b9:00.0/ba:00.0'],
        ['NIC7', 5, 'b0/b0:01.1/b1:00.0/b2:0c.0/ca:00.0/cb:00.0/cc:00.0'],
        ['NIC8', 6, 'e0/e0:01.1/e1:00.0'],
        ['NIC9', 6, 'e0/e0:01.1/e1:00.1'],
      ],
      switched(8, 12),
    ),
    matrix: `
      GPU0 X    NV12 NV12 NV12 NV12 NV12 NV12 NV12 PXB PXB SYS SYS SYS SYS SYS SYS SYS SYS
      GPU1 NV12 X    NV12 NV12 NV12 NV12 NV12 NV12 PXB PXB SYS SYS SYS SYS SYS SYS SYS SYS
      GPU2 NV12 NV12 X    NV12 NV12 NV12 NV12 NV12 SYS SYS PXB PXB SYS SYS SYS SYS SYS SYS
      GPU3 NV12 NV12 NV12 X    NV12 NV12 NV12 NV12 SYS SYS PXB PXB SYS SYS SYS SYS SYS SYS
      GPU4 NV12 NV12 NV12 NV12 X    NV12 NV12 NV12 SYS SYS SYS SYS PXB PXB SYS SYS SYS SYS
      GPU5 NV12 NV12 NV12 NV12 NV12 X    NV12 NV12 SYS SYS SYS SYS PXB PXB SYS SYS SYS SYS`,
  },
  {
    machine: 'virtual machine p3.16xlarge with 8 V100, all on one flat bus and without NUMA nodes',
    source: 'notes on GPU servers that print the matrix of this instance type; bus ids as this instance type shows them',
    tree: 'bus ids',
    devices: devicesOf(
      Array.from({ length: 8 }, (_, at) => [`GPU${at}`, undefined, `00/00:${(0x17 + at).toString(16)}.0`] as const),
      CUBE_MESH,
    ),
    matrix: `
      GPU0 X   NV1 NV1 NV2 NV2 PHB PHB PHB
      GPU1 NV1 X   NV2 NV1 PHB NV2 PHB PHB
      GPU2 NV1 NV2 X   NV2 PHB PHB NV1 PHB
      GPU3 NV2 NV1 NV2 X   PHB PHB PHB NV1
      GPU4 NV2 PHB PHB PHB X   NV1 NV1 NV2
      GPU5 PHB NV2 PHB PHB NV1 X   NV2 NV1
      GPU6 PHB PHB NV1 PHB NV1 NV2 X   NV2
      GPU7 PHB PHB PHB NV1 NV2 NV1 NV2 X`,
  },
  {
    machine: 'workstation with 2 RTX 5090 on two root ports of one of four host bridges',
    source: 'noonghunna/club-3090, issue 1229, with the tree of lspci',
    tree: 'bus ids',
    devices: devicesOf([
      ['GPU0', 0, '00/00:01.1/01:00.0'],
      ['GPU1', 0, '00/00:03.1/02:00.0'],
    ]),
    matrix: `
      GPU0 X   PHB
      GPU1 PHB X`,
  },
  {
    machine: 'DGX-2 with 16 V100 and 10 adapters',
    source: 'NVIDIA/nccl-tests, issue 78; nesting of two levels of switches and bus ids of two GPUs from NVIDIA/nccl, issue 507',
    tree: 'bus ids',
    devices: devicesOf(
      [
        ['GPU0', 0, '2b/2b:00.0/2c:00.0/2d:08.0/37:00.0/38:00.0/39:00.0'],
        ['GPU1', 0, '2b/2b:00.0/2c:00.0/2d:08.0/37:00.0/38:04.0/3b:00.0'],
        ['GPU2', 0, '2b/2b:00.0/2c:00.0/2d:04.0/32:00.0/33:00.0/34:00.0'],
        ['GPU3', 0, '2b/2b:00.0/2c:00.0/2d:04.0/32:00.0/33:04.0/36:00.0'],
        ['GPU4', 0, '50/50:00.0/51:00.0/52:04.0/55:00.0/56:00.0/57:00.0'],
        ['mlx5_0', 0, '2b/2b:00.0/2c:00.0/2d:08.0/37:00.0/38:08.0/3d:00.0'],
        ['mlx5_1', 0, '2b/2b:00.0/2c:00.0/2d:04.0/32:00.0/33:08.0/35:00.0'],
        ['mlx5_2', 0, '50/50:00.0/51:00.0/52:04.0/55:00.0/56:08.0/58:00.0'],
        ['mlx5_3', 0, '50/50:00.0/51:00.0/52:08.0/5a:00.0/5b:08.0/5c:00.0'],
        ['mlx5_4', 1, 'b2/b2:00.0/b3:00.0/b4:04.0/b8:00.0'],
        ['mlx5_5', 1, 'b2/b2:00.0/b3:00.0/b4:08.0/bc:00.0'],
      ],
      switched(5, 6),
    ),
    matrix: `
      GPU0 X   NV6 NV6 NV6 NV6 PIX  PXB  NODE NODE SYS SYS
      GPU1 NV6 X   NV6 NV6 NV6 PIX  PXB  NODE NODE SYS SYS
      GPU2 NV6 NV6 X   NV6 NV6 PXB  PIX  NODE NODE SYS SYS
      GPU3 NV6 NV6 NV6 X   NV6 PXB  PIX  NODE NODE SYS SYS
      GPU4 NV6 NV6 NV6 NV6 X   NODE NODE PIX  PXB  SYS SYS`,
  },
  {
    machine: 'server with two K80 boards and one adapter on one processor',
    source: 'guide to nvidia-smi by Microway',
    tree: 'layout',
    devices: devicesOf([
      ['GPU0', 0, '00/00:02.0/03:00.0/04:08.0/05:00.0'],
      ['GPU1', 0, '00/00:02.0/03:00.0/04:10.0/06:00.0'],
      ['GPU2', 0, '00/00:03.0/83:00.0/84:08.0/85:00.0'],
      ['GPU3', 0, '00/00:03.0/83:00.0/84:10.0/86:00.0'],
      ['mlx4_0', 0, '00/00:01.0/02:00.0'],
    ]),
    matrix: `
      GPU0   X   PIX PHB PHB PHB
      GPU1   PIX X   PHB PHB PHB
      GPU2   PHB PHB X   PIX PHB
      GPU3   PHB PHB PIX X   PHB
      mlx4_0 PHB PHB PHB PHB X`,
  },
  {
    machine: 'server with four boards of two GPUs and one adapter on two processors',
    source: 'kubernetes/kubernetes, issue 53497',
    tree: 'layout',
    devices: devicesOf([
      ['GPU0', 0, '00/00:02.0/05:00.0/06:08.0/07:00.0'],
      ['GPU1', 0, '00/00:02.0/05:00.0/06:10.0/08:00.0'],
      ['GPU2', 0, '00/00:03.0/0c:00.0/0d:08.0/0e:00.0'],
      ['GPU3', 0, '00/00:03.0/0c:00.0/0d:10.0/0f:00.0'],
      ['GPU4', 1, '80/80:02.0/85:00.0/86:08.0/87:00.0'],
      ['GPU5', 1, '80/80:02.0/85:00.0/86:10.0/88:00.0'],
      ['GPU6', 1, '80/80:03.0/8c:00.0/8d:08.0/8e:00.0'],
      ['GPU7', 1, '80/80:03.0/8c:00.0/8d:10.0/8f:00.0'],
      ['mlx4_0', 0, '00/00:01.0/02:00.0'],
    ]),
    matrix: `
      GPU0 X   PIX PHB PHB SYS SYS SYS SYS PHB
      GPU1 PIX X   PHB PHB SYS SYS SYS SYS PHB
      GPU2 PHB PHB X   PIX SYS SYS SYS SYS PHB
      GPU3 PHB PHB PIX X   SYS SYS SYS SYS PHB
      GPU4 SYS SYS SYS SYS X   PIX PHB PHB SYS`,
  },
  {
    machine: 'server with 8 GPUs below two levels of switches and one adapter on the second processor',
    source: 'lattice/quda, issue 669',
    tree: 'layout',
    devices: devicesOf([
      ...Array.from({ length: 8 }, (_, at): Where => {
        const [node, pair, one] = [at >> 2, (at >> 1) & 1, at & 1];
        const root = node === 0 ? '00' : '80';
        const bus = (more: number): string => (node * 0x80 + 2 + more).toString(16).padStart(2, '0');
        return [
          `GPU${at}`,
          node,
          `${root}/${root}:03.0/${bus(0)}:00.0/${bus(1)}:0${pair}.0/${bus(2 + pair * 8)}:00.0/${bus(3 + pair * 8)}:0${one}.0/${bus(4 + pair * 8 + one)}:00.0`,
        ];
      }),
      ['mlx5_0', 1, '80/80:02.0/81:00.0'],
    ]),
    matrix: `
      GPU0   X   PIX PXB PXB SYS SYS SYS SYS SYS
      GPU1   PIX X   PXB PXB SYS SYS SYS SYS SYS
      GPU2   PXB PXB X   PIX SYS SYS SYS SYS SYS
      GPU3   PXB PXB PIX X   SYS SYS SYS SYS SYS
      GPU4   SYS SYS SYS SYS X   PIX PXB PXB PHB
      GPU5   SYS SYS SYS SYS PIX X   PXB PXB PHB
      GPU6   SYS SYS SYS SYS PXB PXB X   PIX PHB
      GPU7   SYS SYS SYS SYS PXB PXB PIX X   PHB
      mlx5_0 SYS SYS SYS SYS PHB PHB PHB PHB X`,
  },
  {
    machine: 'server with 8 H100, 9 adapters and 2 NUMA nodes',
    source: 'NVIDIA/nccl, issue 1453',
    tree: 'layout',
    devices: devicesOf(
      [
        ...[8, 7, 6, 5, 4, 3, 2, 1].flatMap((nic, gpu) => pairBelowSwitch(gpu, gpu >> 2, `GPU${gpu}`, `NIC${nic}`)),
        ['NIC0', undefined, 'f0/f0:01.0/f1:00.0'],
      ],
      switched(8, 18),
    ).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    matrix: `
      GPU0 X    NV18 NV18 NV18 NV18 NV18 NV18 NV18 SYS SYS  SYS  SYS  SYS  NODE NODE NODE PIX
      GPU1 NV18 X    NV18 NV18 NV18 NV18 NV18 NV18 SYS SYS  SYS  SYS  SYS  NODE NODE PIX  NODE
      GPU2 NV18 NV18 X    NV18 NV18 NV18 NV18 NV18 SYS SYS  SYS  SYS  SYS  NODE PIX  NODE NODE
      GPU3 NV18 NV18 NV18 X    NV18 NV18 NV18 NV18 SYS SYS  SYS  SYS  SYS  PIX  NODE NODE NODE
      GPU4 NV18 NV18 NV18 NV18 X    NV18 NV18 NV18 SYS NODE NODE NODE PIX  SYS  SYS  SYS  SYS
      GPU5 NV18 NV18 NV18 NV18 NV18 X    NV18 NV18 SYS NODE NODE PIX  NODE SYS  SYS  SYS  SYS
      GPU6 NV18 NV18 NV18 NV18 NV18 NV18 X    NV18 SYS NODE PIX  NODE NODE SYS  SYS  SYS  SYS
      GPU7 NV18 NV18 NV18 NV18 NV18 NV18 NV18 X    SYS PIX  NODE NODE NODE SYS  SYS  SYS  SYS
      NIC0 SYS  SYS  SYS  SYS  SYS  SYS  SYS  SYS  X   SYS  SYS  SYS  SYS  SYS  SYS  SYS  SYS
      NIC1 SYS  SYS  SYS  SYS  NODE NODE NODE PIX  SYS X    NODE NODE NODE SYS  SYS  SYS  SYS
      NIC2 SYS  SYS  SYS  SYS  NODE NODE PIX  NODE SYS NODE X    NODE NODE SYS  SYS  SYS  SYS
      NIC3 SYS  SYS  SYS  SYS  NODE PIX  NODE NODE SYS NODE NODE X    NODE SYS  SYS  SYS  SYS
      NIC4 SYS  SYS  SYS  SYS  PIX  NODE NODE NODE SYS NODE NODE NODE X    SYS  SYS  SYS  SYS
      NIC5 NODE NODE NODE PIX  SYS  SYS  SYS  SYS  SYS SYS  SYS  SYS  SYS  X    NODE NODE NODE`,
    differs: NO_NODE_IN_SYSFS,
  },
  {
    machine: 'HGX H100 with 10 adapters, of which two are below no switch of a GPU',
    source: 'NVIDIA/nccl, issue 1264',
    tree: 'layout',
    devices: devicesOf(
      [
        ...[0, 1, 2, 5, 6, 7, 8, 9].flatMap((nic, gpu) => pairBelowSwitch(gpu, gpu >> 2, `GPU${gpu}`, `NIC${nic}`)),
        ['NIC3', 0, '05/05:01.0/06:00.0'],
        ['NIC4', 0, '05/05:01.0/06:00.1'],
      ],
      switched(8, 18),
    ).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    matrix: `
      GPU0 X    NV18 NV18 NV18 NV18 NV18 NV18 NV18 PIX SYS SYS SYS SYS SYS SYS SYS SYS SYS
      GPU1 NV18 X    NV18 NV18 NV18 NV18 NV18 NV18 SYS PIX SYS SYS SYS SYS SYS SYS SYS SYS
      GPU2 NV18 NV18 X    NV18 NV18 NV18 NV18 NV18 SYS SYS PIX SYS SYS SYS SYS SYS SYS SYS
      GPU3 NV18 NV18 NV18 X    NV18 NV18 NV18 NV18 SYS SYS SYS SYS SYS PIX SYS SYS SYS SYS
      GPU4 NV18 NV18 NV18 NV18 X    NV18 NV18 NV18 SYS SYS SYS SYS SYS SYS PIX SYS SYS SYS
      GPU5 NV18 NV18 NV18 NV18 NV18 X    NV18 NV18 SYS SYS SYS SYS SYS SYS SYS PIX SYS SYS
      GPU6 NV18 NV18 NV18 NV18 NV18 NV18 X    NV18 SYS SYS SYS SYS SYS SYS SYS SYS PIX SYS
      GPU7 NV18 NV18 NV18 NV18 NV18 NV18 NV18 X    SYS SYS SYS SYS SYS SYS SYS SYS SYS PIX`,
    differs: SYS_WITHIN_A_NODE,
  },
  {
    machine: 'server with 8 H20 whose matrix shows no NVLink',
    source: 'deepseek-ai/DeepEP, issue 128',
    tree: 'layout',
    devices: devicesOf(Array.from({ length: 6 }, (_, at) => pairBelowSwitch(at, at >> 2, `GPU${at}`, `NIC${at}`)).flat()).toSorted(
      (a, b) => (a.id < b.id ? -1 : 1),
    ),
    matrix: `
      GPU0 X   SYS SYS SYS SYS SYS PIX SYS SYS SYS SYS SYS
      GPU1 SYS X   SYS SYS SYS SYS SYS PIX SYS SYS SYS SYS
      GPU4 SYS SYS SYS SYS X   SYS SYS SYS SYS SYS PIX SYS`,
    differs: SYS_WITHIN_A_NODE,
  },
  {
    machine: 'server with 8 H100, 8 adapters with two ports each on the switches of the GPUs, and 4 more adapters',
    source: 'a published report on bandwidths of NCCL',
    tree: 'layout',
    devices: devicesOf(
      [
        ...Array.from({ length: 4 }, (_, at): Where => {
          const root = at < 2 ? '15' : '37';
          const bus = (more: number): string => (Number.parseInt(root, 16) + more).toString(16);
          return [
            `GPU${at}`,
            0,
            `${root}/${root}:01.0/${bus(1)}:00.0/${bus(2)}:0${at & 1}.0/${bus(4 + 4 * (at & 1))}:00.0/${bus(5 + 4 * (at & 1))}:00.0/${bus(6 + 4 * (at & 1))}:00.0`,
          ];
        }),
        ['NIC0', 0, '15/15:01.0/16:00.0/17:04.0/1e:00.0'],
        ['NIC1', 0, '15/15:01.0/16:00.0/17:04.0/1e:00.1'],
        ['NIC2', 0, '37/37:01.0/38:00.0/39:04.0/40:00.0'],
        ['NIC3', 0, '37/37:01.0/38:00.0/39:04.0/40:00.1'],
        ['NIC4', 1, 'b7/b7:01.0/b8:00.0/b9:04.0/c0:00.0'],
        ['NIC8', 0, '00/00:0c.0/03:00.0'],
        ['NIC9', 0, '00/00:0c.0/03:00.1'],
      ],
      switched(4, 18),
    ),
    matrix: `
      GPU0 X    NV18 NV18 NV18 PXB  PXB  NODE NODE SYS NODE NODE
      GPU1 NV18 X    NV18 NV18 PXB  PXB  NODE NODE SYS NODE NODE
      GPU2 NV18 NV18 X    NV18 NODE NODE PXB  PXB  SYS NODE NODE
      GPU3 NV18 NV18 NV18 X    NODE NODE PXB  PXB  SYS NODE NODE`,
  },
  {
    machine: 'HGX A100 with one adapter for each processor',
    source: 'a published matrix in the documentation of a GPU scheduler',
    tree: 'layout',
    devices: devicesOf(
      [
        ...Array.from({ length: 8 }, (_, at): Where => {
          const root = (0x10 + (at >> 1) * 0x30).toString(16);
          const bus = (more: number): string => (Number.parseInt(root, 16) + more).toString(16);
          return [
            `GPU${at}`,
            at >> 2,
            `${root}/${root}:01.0/${bus(1)}:00.0/${bus(2)}:0${at & 1}.0/${bus(3 + 4 * (at & 1))}:00.0/${bus(4 + 4 * (at & 1))}:00.0/${bus(5 + 4 * (at & 1))}:00.0`,
          ];
        }),
        ['mlx5_0', 0, '10/10:01.0/11:00.0/12:04.0/1f:00.0'],
        ['mlx5_1', 1, '70/70:01.0/71:00.0/72:04.0/7f:00.0'],
      ],
      switched(8, 12),
    ),
    matrix: `
      GPU3   NV12 NV12 NV12 X    NV12 NV12 NV12 NV12 NODE SYS
      GPU4   NV12 NV12 NV12 NV12 X    NV12 NV12 NV12 SYS  PXB
      GPU5   NV12 NV12 NV12 NV12 NV12 X    NV12 NV12 SYS  PXB
      GPU6   NV12 NV12 NV12 NV12 NV12 NV12 X    NV12 SYS  NODE
      GPU7   NV12 NV12 NV12 NV12 NV12 NV12 NV12 X    SYS  NODE
      mlx5_0 PXB  PXB  NODE NODE SYS  SYS  SYS  SYS  X    SYS
      mlx5_1 SYS  SYS  SYS  SYS  PXB  PXB  NODE NODE SYS  X`,
  },
  {
    machine: 'virtual machine with 8 A100 and 8 functions of adapters, each behind a root port of one host bridge',
    source: 'a published report on a cloud instance with 4 NUMA nodes of which the devices name none',
    tree: 'layout',
    devices: devicesOf(
      Array.from({ length: 16 }, (_, at): Where => {
        const bus = (at + 5).toString(16).padStart(2, '0');
        return [at < 8 ? `GPU${at}` : `NIC${at - 8}`, undefined, `00/00:0${1 + (at >> 3)}.${at & 7}/${bus}:00.0`];
      }),
      switched(8, 12),
    ),
    matrix: `
      GPU0 X    NV12 NV12 NV12 NV12 NV12 NV12 NV12 PHB PHB PHB PHB PHB PHB PHB PHB
      GPU7 NV12 NV12 NV12 NV12 NV12 NV12 NV12 X    PHB PHB PHB PHB PHB PHB PHB PHB
      NIC0 PHB  PHB  PHB  PHB  PHB  PHB  PHB  PHB  X   PHB PHB PHB PHB PHB PHB PHB
      NIC1 PHB  PHB  PHB  PHB  PHB  PHB  PHB  PHB  PHB X   PHB PHB PHB PHB PHB PHB`,
  },
  {
    machine: 'server with 8 H100 and 12 adapters on one NUMA node',
    source: 'a published report on a deployment of sglang',
    tree: 'layout',
    devices: devicesOf(
      [
        ...[0, 1, 2, 5, 6, 7, 8].flatMap((nic, gpu) => pairBelowSwitch(gpu, 0, `GPU${gpu}`, `NIC${nic}`)),
        ...pairBelowSwitch(7, 0, 'GPU7', undefined),
        ['NIC3', 0, '05/05:01.0/06:00.0'],
        ['NIC4', 0, '07/07:01.0/08:00.0'],
        ['NIC9', 0, '09/09:01.0/0a:00.0'],
      ],
      switched(8, 18),
    ).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    matrix: `
      GPU0 X    NV18 NV18 NV18 NV18 NV18 NV18 NV18 PIX  NODE NODE NODE NODE NODE NODE NODE NODE NODE
      GPU1 NV18 X    NV18 NV18 NV18 NV18 NV18 NV18 NODE PIX  NODE NODE NODE NODE NODE NODE NODE NODE
      GPU2 NV18 NV18 X    NV18 NV18 NV18 NV18 NV18 NODE NODE PIX  NODE NODE NODE NODE NODE NODE NODE
      GPU3 NV18 NV18 NV18 X    NV18 NV18 NV18 NV18 NODE NODE NODE NODE NODE PIX  NODE NODE NODE NODE
      GPU6 NV18 NV18 NV18 NV18 NV18 NV18 X    NV18 NODE NODE NODE NODE NODE NODE NODE NODE PIX  NODE`,
  },
  {
    machine: 'server with 8 GPUs below switches whose firmware names no NUMA node',
    source: 'vllm-project/vllm, issue 11122',
    tree: 'layout',
    devices: devicesOf(
      Array.from({ length: 8 }, (_, at): Where => {
        const root = at < 4 ? '00' : '80';
        const bus = (more: number): string => ((at < 4 ? 1 : 0x81) + more).toString(16).padStart(2, '0');
        const own = at & 3;
        // The first two are below one switch, the others below one each.
        const second = own < 2 ? 0 : own - 1;
        return [
          `GPU${at}`,
          undefined,
          `${root}/${root}:01.0/${bus(0)}:00.0/${bus(1)}:0${second}.0/${bus(2 + second * 8)}:00.0/${bus(3 + second * 8)}:0${own & 1}.0/${bus(4 + second * 8 + (own & 1))}:00.0`,
        ];
      }),
    ),
    matrix: `
      GPU0 X   PIX PXB PXB SYS SYS SYS SYS
      GPU1 PIX X   PXB PXB SYS SYS SYS SYS
      GPU2 PXB PXB X   PXB SYS SYS SYS SYS
      GPU3 PXB PXB PXB X   SYS SYS SYS SYS
      GPU4 SYS SYS SYS SYS X   PIX PXB PXB
      GPU5 SYS SYS SYS SYS PIX X   PXB PXB`,
    differs: NO_NODE_IN_SYSFS,
  },
];
