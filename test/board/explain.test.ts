import { describe, expect, it } from 'vitest';
import { directAnswer, directReasons } from '../../src/board/direct.ts';
import { explainPod } from '../../src/board/explain.ts';
import type { Device, DirectAccess, VirtualMachine } from '../../src/model/device.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import { snapshot as sample, state } from '../metrics/sample.ts';
import { allocation, device, podResources } from '../support/snapshots.ts';

const BELOW = 'pci0000:10/0000:10:01.0/0000:11:00.0';
const [GPU_PORT, NIC_PORT] = ['0000:12:00.0', '0000:12:01.0'];
const PEER = { can: true, why: 'the module for peers is loaded', from: '/sys/module/peers' };
const whole = (redirects: boolean, port: string): NonNullable<DirectAccess['bridges']> => [{ address: port, redirects }];
const gpuWith = (direct: DirectAccess | undefined, more: Partial<Device> = {}): Device =>
  device({
    id: 'gpu-0',
    family: 'card',
    kind: 'gpu',
    numaNode: 0,
    pciPath: `${BELOW}/${GPU_PORT}/0000:13:00.0`,
    peerMemory: PEER,
    ...(direct && { direct }),
    ...more,
  });
const nicWith = (direct: DirectAccess | undefined, more: Partial<Device> = {}): Device =>
  device({
    id: 'port-0',
    family: 'wire',
    kind: 'pf',
    numaNode: 0,
    pciPath: `${BELOW}/${NIC_PORT}/0000:14:00.0`,
    driver: 'wire_core',
    ...(direct && { direct }),
    ...more,
  });

const METAL: VirtualMachine = { is: false, from: '/proc/cpuinfo' };
const GUEST: VirtualMachine = { is: true, name: 'QEMU Standard PC', from: '/sys/class/dmi/id' };

interface Case {
  readonly gpu: Device;
  readonly nic: Device;
  readonly virtual?: VirtualMachine | undefined;
  readonly hasVerbs?: boolean;
}

const both = (iommu: string | undefined, redirects: boolean | undefined, virtual: VirtualMachine | undefined): Case => {
  const access = (port: string): DirectAccess | undefined => ({
    ...(iommu === undefined ? {} : { iommu }),
    ...(redirects === undefined ? {} : { bridges: whole(redirects, port) }),
  });
  return { gpu: gpuWith(access(GPU_PORT)), nic: nicWith(access(NIC_PORT)), virtual };
};

describe('transfers between a GPU and a network device on one switch', () => {
  it.each<readonly [string, Case, string]>([
    ['bare metal, ACS readable and off, IOMMU passes through', both('identity', false, METAL), 'possible'],
    ['bare metal, ACS readable and on', both('identity', true, METAL), 'possible, but slowed'],
    ['bare metal, ACS not readable', both('identity', undefined, METAL), 'not known'],
    ['bare metal, ACS readable and off, no IOMMU group', both(undefined, false, METAL), 'possible'],
    ['bare metal, the IOMMU translates', both('DMA-FQ', false, METAL), 'possible, but slowed'],
    ['bare metal, the IOMMU translates, ACS not readable', both('DMA', undefined, METAL), 'not known, and slowed at best'],
    ['virtual machine, ACS readable and off', both('identity', false, GUEST), 'not known'],
    ['virtual machine, ACS not readable', both(undefined, undefined, GUEST), 'not known'],
    ['unknown whether virtual, ACS readable and on', both('identity', true, undefined), 'possible, but slowed'],
    ['no verbs', { ...both('identity', false, METAL), hasVerbs: false }, 'not possible'],
    [
      'the driver shares no memory',
      { ...both('identity', false, METAL), gpu: gpuWith(undefined, { peerMemory: { ...PEER, can: false } }) },
      'not possible',
    ],
    [
      'nothing known of the driver',
      { ...both('identity', false, METAL), gpu: device({ id: 'gpu-0', pciPath: `${BELOW}/${GPU_PORT}/0000:13:00.0` }) },
      'not known',
    ],
    [
      'other root complex',
      {
        ...both('identity', false, METAL),
        nic: nicWith({ bridges: whole(false, '0000:20:01.0') }, { pciPath: 'pci0000:20/0000:20:01.0/0000:21:00.0' }),
      },
      'not known, and slowed at best',
    ],
  ])('%s', (_, { gpu, nic, virtual, hasVerbs = true }, expected) => {
    expect(directAnswer(directReasons({ gpu, nic, virtual, hasVerbs }))).toBe(expected);
  });

  it('each name where they were read, and ACS is unknown where the file is cut', () => {
    const { gpu, nic, virtual } = both('identity', undefined, METAL);
    const reasons = directReasons({ gpu, nic, virtual, hasVerbs: true });
    expect(reasons.map(({ effect, text, from }) => `${effect}: ${text} [${from}]`)).toEqual([
      'helps: port-0 has verbs [its class of devices in sysfs]',
      'helps: the module for peers is loaded [/sys/module/peers]',
      'helps: the way between them is through one PCIe switch (PIX) [the PCI paths below /sys/devices]',
      'helps: the IOMMU passes gpu-0 through (identity) [/sys/bus/pci/devices/gpu-0/iommu_group/type]',
      'helps: the IOMMU passes port-0 through (identity) [/sys/bus/pci/devices/port-0/iommu_group/type]',
      'unknown: ACS at 0000:12:00.0, 0000:12:01.0: without CAP_SYS_ADMIN the file ends after 64 bytes [/sys/bus/pci/devices/0000:12:00.0/config]',
    ]);
  });

  it('reverse the advice on ACS in a virtual machine', () => {
    const advice = (virtual: VirtualMachine): string => {
      const { gpu, nic } = both('identity', true, virtual);
      return directReasons({ gpu, nic, virtual, hasVerbs: true }).at(-1)?.text ?? '';
    };
    expect(advice(METAL)).toBe('ACS sends transfers up to the root at 0000:12:00.0, 0000:12:01.0: turn it off there');
    expect(advice(GUEST)).toBe(
      'this is a virtual machine (QEMU Standard PC): the host must have ACS on at the bridges and ATS on at the network device, which a guest cannot see',
    );
  });
});

describe('the explanation of a pod', () => {
  const gpus = [0, 1].map((at) =>
    gpuWith(
      { iommu: 'identity', bridges: whole(false, GPU_PORT) },
      { id: `gpu-${at}`, peers: [{ device: `gpu-${1 - at}`, links: 18, path: 'NV18' }] },
    ),
  );
  const nic = nicWith({ iommu: 'identity' });
  const held: Snapshot = {
    ...sample,
    devices: [...gpus, nic].map((one) => state(one)),
    allocations: [...gpus, nic].map((one) => ({
      allocation: allocation({ deviceId: one.id }),
      devices: [`${one.family}/${one.id}`],
      held: false,
    })),
    localities: [
      {
        namespace: 'ml',
        pod: 'train-0',
        container: 'main',
        gpus: ['card/gpu-0', 'card/gpu-1'],
        nics: [{ device: 'wire/port-0', hasVerbs: true }],
        pairs: [
          { from: 'card/gpu-0', to: 'card/gpu-1', path: 'NV18' },
          { from: 'card/gpu-0', to: 'wire/port-0', path: 'PIX' },
          { from: 'card/gpu-1', to: 'wire/port-0', path: 'PIX' },
        ],
        gpuPath: 'NV18',
        nicPath: 'PIX',
        offNode: 1,
      },
    ],
    virtual: METAL,
    podResources: podResources([], { exclusive: [{ namespace: 'ml', pod: 'train-0', container: 'main', cpus: [4, 5], memory: [] }] }),
  };

  it('is about ten lines in words', () => {
    expect(explainPod('ml', 'train-0', held)).toEqual([
      'ml/train-0, container main, holds 2 GPUs, 1 network device: gpu-0, gpu-1, port-0.',
      'Its GPUs reach each other over direct links (NV18) at worst.',
      'The GPU that is farthest from a network device reaches the nearest one through one PCIe switch (PIX).',
      '1 device of it is on other NUMA nodes than its 2 own CPUs.',
      'Direct transfers between gpu-0 and port-0 (GPUDirect), and 1 GPU alike: not known.',
      '  good: port-0 has verbs [its class of devices in sysfs]',
      '  good: the module for peers is loaded [/sys/module/peers]',
      '  good: the way between them is through one PCIe switch (PIX) [the PCI paths below /sys/devices]',
      '  good: the IOMMU passes gpu-0 through (identity) [/sys/bus/pci/devices/gpu-0/iommu_group/type]',
      '  good: the IOMMU passes port-0 through (identity) [/sys/bus/pci/devices/port-0/iommu_group/type]',
      '  not known: ACS at 0000:12:01.0: without CAP_SYS_ADMIN the file ends after 64 bytes [/sys/bus/pci/devices/0000:12:01.0/config]',
    ]);
  });

  it('ends with whether the work of each container moves on', () => {
    const one = { namespace: 'ml', pod: 'train-0', container: 'main', devices: ['card/gpu-0'] } as const;
    const lastProgressMs = held.takenAtMs - 12 * 60_000;
    const waiting = [
      { ...one, state: 'stalled', sinceMs: lastProgressMs, lastProgressMs, stepSeconds: 30 } as const,
      { ...one, pod: 'other', state: 'waiting' } as const,
    ];
    expect(explainPod('ml', 'train-0', { ...held, waiting })?.slice(11)).toEqual([
      'Container main stalled: busy, but its steps have ended, last progress 12 min ago, steps of about 30 s.',
    ]);
  });

  it('names each device that was not found, and each that is not healthy, with or without a condition', () => {
    const { localities: _, ...alone } = held;
    const [first, second] = held.devices.map((one) => ({ ...one, verdict: { state: 'healthy', sinceMs: 1, conditions: [] } as const }));
    const unread = {
      ...second,
      stale: true,
      readAtMs: held.takenAtMs - 300_000,
      verdict: { state: 'unknown', sinceMs: 1, conditions: [] },
    };
    const lost = { allocation: allocation({ deviceId: 'gpu-9' }), devices: [], unresolved: 'no-device', held: false } as const;
    const devices = [first, unread] as Snapshot['devices'];
    expect(explainPod('ml', 'train-0', { ...alone, devices, allocations: [...held.allocations.slice(0, 2), lost], families: [] })).toEqual([
      'ml/train-0: 1 of 3 devices was not found, so how near its devices are is not known.',
      'Container main holds example.com/toy gpu-9: No probe found a device with this name. Enable its family, or configure which devices belong to the resource.',
      'gpu-1 is unknown, not read for 5 min.',
    ]);
  });

  it('says that there is nothing to compare, and knows only pods that hold something', () => {
    const { localities: _, ...alone } = held;
    expect(explainPod('ml', 'train-0', alone)).toEqual([
      'ml/train-0 holds 3 devices, and no container of it holds a GPU and another device: there is no way to compare.',
    ]);
    expect(explainPod('ml', 'other', held)).toBeUndefined();
  });
});
