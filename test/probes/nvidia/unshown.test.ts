// Project: programs. Histories in number.
import { afterEach, describe, expect, it, vi } from 'vitest';
import { seconds } from '../../../src/model/duration.ts';
import { listing } from '../../../src/probes/nvidia/index.ts';
import type { WatchedNode } from '../../false-alarms/watched-node.ts';
import {
  addressOf,
  type Board,
  boardWith,
  functionAt,
  information,
  informationAt,
  type Shown,
  type Source,
  uuidOf,
} from './unshown-node.ts';

afterEach(() => void vi.unstubAllEnvs());

const SOURCES: readonly Source[] = ['library', 'command'];
const HANDLE = 'Unable to determine the device handle for';
const upTo = (count: number, ...without: number[]): number[] =>
  Array.from({ length: count }, (_, index) => index).filter((index) => !without.includes(index));

/** State, and the conditions with their reason and remedy. */
const told = (node: WatchedNode, id: string): string => {
  const { verdict } = node.snapshot.devices.find(({ device }) => device.id === id) ?? {};
  return verdict === undefined
    ? 'not listed'
    : [verdict.state, ...verdict.conditions.map(({ type, reason, remedy }) => `${type} ${reason} ${remedy}`)].join(', ');
};
const countOf = (node: WatchedNode): number => node.snapshot.devices.length;
const others = (node: WatchedNode, ...without: string[]): readonly string[] => [
  ...new Set(node.snapshot.devices.flatMap(({ device, verdict }) => (without.includes(device.id) ? [] : [verdict.state]))),
];

/** How each branch of the driver tells that it cannot reach the GPU at index 3 of four, 0000:3e:00.0. */
const WORDINGS: readonly (readonly [driver: string, line: string, isAlone: boolean])[] = [
  ['470.256.02', `${HANDLE} GPU 0000:3E:00.0: GPU is lost.  Reboot the system to recover this GPU`, true],
  ['515.105.01', `${HANDLE} GPU0000:3E:00.0: Unknown Error`, false],
  ['525.85.12', `${HANDLE} GPU0000:3E:00.0: Unknown Error`, false],
  ['535.183.01', `${HANDLE} GPU0000:3E:00.0: Unknown Error`, false],
  ['550.54.14', `${HANDLE} GPU0000:3E:00.0: Unknown Error`, false],
  ['560.35.03', `${HANDLE} GPU0000:3E:00.0: Unknown Error`, false],
  ['570.172.08', `${HANDLE} GPU3: Unknown Error`, false],
  ['580.159.04', `${HANDLE} GPU3: Unknown Error`, false],
  ['590.44.01', `${HANDLE} GPU3: 0000:3E:00.0: Unknown Error`, false],
  ['610.20', `${HANDLE} GPU3: 0000:3E:00.0: Unknown Error`, false],
];

describe.each(WORDINGS)('driver %s, whose command says "%s"', (driver, line, isAlone) => {
  const board: Board = { count: 4, driver };
  const lost: Shown = isAlone ? { gpus: [], lines: [line], failsWith: 15 } : { gpus: upTo(4, 3), lines: [line], announced: 4, exit: 255 };

  it('the GPU is lost at the first read after the fault', async () => {
    const { node, show } = await boardWith('command', board, { gpus: upTo(4) });
    expect(others(node)).toEqual(['healthy']);
    show(lost);
    await node.pass(seconds(10));
    expect(told(node, uuidOf(3))).toBe('unhealthy, GpuLost GpuIsLost reboot');
    expect([others(node, uuidOf(3)), countOf(node)]).toEqual([['healthy'], 4]);
    expect(node.problems).toEqual(['gpu-unreadable']);
    await node.restart();
    expect(told(node, uuidOf(3))).toBe('unhealthy, GpuLost GpuIsLost reboot');
  });

  it('the GPU is listed as lost at a first look', async () => {
    const { node } = await boardWith('command', board, lost);
    expect(told(node, uuidOf(3))).toBe('unhealthy, GpuLost GpuIsLost reboot');
    expect([others(node, uuidOf(3)), countOf(node)]).toEqual([[isAlone ? 'unknown' : 'healthy'], 4]);
  });
});

describe.each([15, 16, 999])('the library of each driver, which gives no handle for a GPU (code %i)', (code) => {
  it.each(WORDINGS.map(([driver]) => driver))('%s lists it as lost at the first look', async (driver) => {
    const { node } = await boardWith('library', { count: 4, driver }, { gpus: upTo(4, 2), refused: { 2: code } });
    expect(told(node, uuidOf(2))).toBe('unhealthy, GpuLost GpuIsLost reboot');
    expect([others(node, uuidOf(2)), countOf(node)]).toEqual([['healthy'], 4]);
  });
});

/** The kernel log of a GPU whose firmware stayed locked over a warm reboot, at 0000:41:00.0. */
const LOCKED = [
  'NVRM: GPU6 _kgspBootGspRm: unexpected WPR2 already up, cannot proceed with booting GSP',
  'NVRM: GPU6 _kgspBootGspRm: (the GPU is likely in a bad state and may need to be reset)',
  'NVRM: GPU6 RmInitAdapter: Cannot initialize GSP firmware RM',
  'NVRM: GPU 0000:41:00.0: RmInitAdapter failed! (0x62:0x40:2168)',
  'NVRM: GPU 0000:41:00.0: rm_init_adapter failed, device minor number 6',
];

describe.each(SOURCES)('eight GPUs of which one never starts, by the %s', (source) => {
  const board: Board = { count: 8, neverStarted: [6] };
  const seven: Shown = { gpus: upTo(8, 6) };
  const [place, uuid] = [addressOf(6), uuidOf(6)];

  it('lists it by its address, over restarts and boots, until it tells its name', async () => {
    const { node, show } = await boardWith(source, board, seven, LOCKED);
    const unhealthy = 'unhealthy, NotInitialized NotShown power-cycle, InitializationFailed FirmwareLocked power-cycle';
    expect([told(node, place), others(node, place), countOf(node)]).toEqual([unhealthy, ['healthy'], 8]);
    await node.pass(seconds(60));
    await node.restart();
    expect([told(node, place), countOf(node)]).toEqual([unhealthy, 8]);
    await node.reboot(() => node.log(...LOCKED));
    expect([told(node, place), others(node, place), countOf(node)]).toEqual([unhealthy, ['healthy'], 8]);
    await node.reboot(() => {
      node.tree.write(informationAt(6), () => information(6, uuid));
      show({ gpus: upTo(8) });
    });
    expect([told(node, place), told(node, uuid), countOf(node)]).toEqual(['not listed', 'healthy', 8]);
  });

  it('says for each GPU how the kernel log explains it', async () => {
    const { node } = await boardWith(source, board, seven);
    expect(told(node, place)).toBe('unhealthy, NotInitialized NotShown reboot');
    const rest = LOCKED.slice(3);
    node.log(...rest);
    await node.pass(seconds(10));
    expect(told(node, place)).toBe('unhealthy, NotInitialized NotShown power-cycle, InitializationFailed AdapterFailed power-cycle');
  });

  it('gives a GPU that is started later its history, and lists it once', async () => {
    const { node, show } = await boardWith(source, board, seven, LOCKED);
    const since = node.snapshot.devices.find(({ device }) => device.id === place)?.verdict.transitions;
    expect(since).toEqual({ unhealthy: 1 });
    // The function was reset: the driver was bound to it again.
    node.tree.hide('removed', functionAt(6), { kind: 'absent' });
    node.tree.hide('removed', `proc/driver/nvidia/gpus/${place}`, { kind: 'absent' });
    await node.pass(seconds(10));
    node.tree.take('removed');
    node.tree.write(informationAt(6), () => information(6, uuid));
    show({ gpus: upTo(8) });
    await node.pass(seconds(60));
    expect([told(node, place), told(node, uuid), countOf(node)]).toEqual(['not listed', 'healthy', 8]);
    const after = node.snapshot.devices.find(({ device }) => device.id === uuid)?.verdict;
    expect(after?.transitions?.unhealthy).toBe(1);
  });

  it('finds a GPU that the driver starts after all, without any other change, in the next reads', async () => {
    const { node, show } = await boardWith(source, board, seven, LOCKED);
    node.tree.write(informationAt(6), () => information(6, uuid));
    show({ gpus: upTo(8) });
    await node.pass(seconds(10));
    await node.pass(seconds(10));
    expect([told(node, place), told(node, uuid), countOf(node)]).toEqual(['not listed', 'healthy', 8]);
  });

  it('keeps the name of a GPU that worked before the kernel driver forgot it', async () => {
    const { node, show } = await boardWith(source, { count: 8 }, { gpus: upTo(8) });
    node.tree.write(informationAt(6), () => information(6, 'GPU-????????-????-????-????-????????????'));
    show(seven);
    await node.restart();
    expect([told(node, uuid), told(node, place), countOf(node)]).toEqual(['unhealthy, NotInitialized NotShown reboot', 'not listed', 8]);
  });
});

describe.each(SOURCES)('two GPUs on the bus, and one that the driver has, by the %s', (source) => {
  it('lists the other one as not bound, whatever the log says', async () => {
    const { node } = await boardWith(source, { count: 2, drivers: { 1: '' } }, { gpus: [0] });
    await node.pass(seconds(130));
    expect([told(node, uuidOf(0)), told(node, addressOf(1))]).toEqual(['healthy', 'unhealthy, NotStarted NotBound reboot']);
    node.log('NVRM: The NVIDIA probe routine failed for 1 device(s).', `nvidia: probe of ${addressOf(1)} failed with error -1`);
    await node.pass(seconds(10));
    expect(told(node, addressOf(1))).toBe('unhealthy, NotStarted NotBound power-cycle, InitializationFailed ProbeFailed power-cycle');
    expect(node.problems).toEqual([]);
  });
});

describe('a driver that does not answer at the first look', () => {
  const board: Board = { count: 2 };
  it.each([
    [
      "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
      9,
      'unhealthy, DriverUnusable DriverNotLoaded reload-driver',
    ],
    ['Failed to initialize NVML: Driver/library version mismatch', 18, 'unhealthy, DriverUnusable LibraryMismatch reload-driver'],
    ['Failed to initialize NVML: Unknown Error', 255, 'unknown'],
    ['Failed to initialize NVML: GPU access blocked by the operating system', 17, 'unknown'],
    ['Failed to initialize NVML: Insufficient Permissions', 4, 'unknown'],
  ])('%s', async (line, status, verdict) => {
    const code = status === 255 ? 999 : status;
    for (const source of SOURCES) {
      const { node, show } = await boardWith(source, board, { gpus: [], lines: [line], failsWith: source === 'library' ? code : status });
      const first = node.snapshot.devices.map(({ device }) => told(node, device.id));
      expect(
        first.map((each) => each.replace(/, DeviceNotRead.*/, '')),
        source,
      ).toEqual([verdict, verdict]);
      expect(Object.values(node.offered ?? {}), source).not.toContain('Healthy');
      show({ gpus: upTo(2) });
      await node.pass(seconds(60));
      expect([told(node, uuidOf(0)), told(node, uuidOf(1)), countOf(node)], source).toEqual(['healthy', 'healthy', 2]);
    }
  });

  it('lists GPUs that no driver has by their addresses, and each keeps one entry when the driver is loaded', async () => {
    const line = "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.";
    const failsWith = 9;
    const { node, show } = await boardWith('command', { count: 2, drivers: { 0: '', 1: '' } }, { gpus: [], lines: [line], failsWith });
    expect([0, 1].map((index) => told(node, addressOf(index)))).toEqual(
      Array.from({ length: 2 }, () => 'unhealthy, DriverUnusable DriverNotLoaded reload-driver, DeviceNotRead NeverRead inspect'),
    );
    show({ gpus: upTo(2) });
    await node.pass(seconds(60));
    expect([told(node, uuidOf(0)), told(node, uuidOf(1)), countOf(node)]).toEqual(['healthy', 'healthy', 2]);
  });

  it('lists each GPU that the driver has and that "No devices were found" leaves out', async () => {
    const { node } = await boardWith('command', board, { gpus: [], lines: ['No devices were found'], failsWith: 6 });
    expect([0, 1].map((index) => told(node, uuidOf(index)))).toEqual(
      Array.from({ length: 2 }, () => 'unhealthy, NotInitialized NotShown reboot'),
    );
  });
});

const HANDED_OVER =
  'a GPU of a virtual machine (vfio-pci, nvgrace_gpu_vfio_pci), or for which an administrator chose another driver (driver_override)';

/** GPUs that the driver does not show, the last one of two. The names are those of the table in the documentation. */
const EXCEPTIONS: readonly (readonly [what: string, board: Partial<Board>, verdict: string])[] = [
  [HANDED_OVER, { drivers: { 1: 'vfio-pci' } }, 'healthy, HandedOver OtherDriver none'],
  [HANDED_OVER, { drivers: { 1: 'nvgrace_gpu_vfio_pci' } }, 'healthy, HandedOver OtherDriver none'],
  ['a GPU with a driver of another maker', { drivers: { 1: 'nouveau' } }, 'not listed'],
  [
    HANDED_OVER,
    { drivers: { 1: '' }, files: { [`${functionAt(1)}/driver_override`]: 'vfio-pci\n' } },
    'healthy, HandedOver OtherDriver none',
  ],
  ['a virtual function of a vGPU', { links: { [`${functionAt(1)}/physfn`]: `../${addressOf(0)}` } }, 'not listed'],
  [
    'a function of another class than VGA and 3D controller, such as the audio function of a board',
    { drivers: { 1: 'snd_hda_intel' }, files: { [`${functionAt(1)}/class`]: '0x040300\n' } },
    'not listed',
  ],
  ['a GPU that the driver was told to exclude', { files: { [informationAt(1)]: information(1, uuidOf(1), true) } }, 'not listed'],
  [
    'a GPU without a driver, of a model of which the driver has none',
    { drivers: { 1: '' }, files: { [`${functionAt(1)}/device`]: '0x128b\n' } },
    'healthy, NotInUse NoDriver none',
  ],
  [
    'a GPU without a driver, while the driver has another GPU of the same model',
    { drivers: { 1: '' } },
    'unhealthy, NotStarted NotBound reboot',
  ],
  ['a GPU to which the driver is bound', {}, 'unhealthy, NotInitialized NotShown reboot'],
];

describe.each(SOURCES)('by the %s,', (source) => {
  it('a folder of the driver whose name is no PCI address is no GPU', async () => {
    const names = ['passwd', '0000:3c:00.0x', '..0000:3c:00.0', '0000:3c:00', ' 0000:3c:00.0', '0000:3c:00.0\n'];
    const files = Object.fromEntries(names.map((name) => [`proc/driver/nvidia/gpus/${name}/information`, information(1, uuidOf(1))]));
    const { node } = await boardWith(source, { count: 1, files }, { gpus: [0] });
    expect([told(node, uuidOf(0)), countOf(node), node.problems]).toEqual(['healthy', 1, []]);
  });

  it.each(EXCEPTIONS)('%s', async (what, board, verdict) => {
    expect(listing.map((row) => row.what)).toContain(what);
    const { node } = await boardWith(source, { count: 2, ...board }, { gpus: [0] });
    if (verdict.includes('NotStarted')) await node.pass(seconds(130));
    const listed = node.snapshot.devices.find(({ device }) => device.pciAddress === addressOf(1));
    expect(told(node, listed?.device.id ?? '')).toBe(verdict);
    expect(told(node, uuidOf(0))).toBe('healthy');
    if (verdict === 'not listed') expect(node.problems).toEqual([]);
  });

  it('GPUs that the variable of the container leaves out are unknown', async () => {
    for (const [visible, verdict] of [
      [uuidOf(0), 'unknown'],
      ['0', 'unknown'],
      ['void', 'unknown'],
      ['all', 'unhealthy, NotInitialized NotShown reboot'],
      [[uuidOf(0), uuidOf(1)].join(), 'unhealthy, NotInitialized NotShown reboot'],
    ] as const) {
      vi.stubEnv('NVIDIA_VISIBLE_DEVICES', visible);
      const { node } = await boardWith(source, { count: 2 }, { gpus: [0] });
      expect(told(node, uuidOf(1)).replace(/, DeviceNotRead.*/, ''), visible).toBe(verdict);
      expect(told(node, uuidOf(0))).toBe('healthy');
      expect(node.problems, visible).toEqual(verdict === 'unknown' ? ['no-permission'] : []);
    }
  });

  it('a GPU whose node the container has is not left out, whatever the variable says', async () => {
    vi.stubEnv('NVIDIA_VISIBLE_DEVICES', 'void');
    const { node } = await boardWith(source, { count: 2, files: { 'dev/nvidia1': '' } }, { gpus: [0] });
    expect(told(node, uuidOf(1))).toBe('unhealthy, NotInitialized NotShown reboot');
  });

  it('a GPU that an administrator drains is unknown', async () => {
    const { node } = await boardWith(source, { count: 2 }, { gpus: [0], drained: [1] });
    expect(told(node, uuidOf(1)).replace(/, DeviceNotRead.*/, '')).toBe('unknown');
    expect(node.problems).toEqual(['gpu-drained']);
  });
});

describe('a node whose driver is not there yet', () => {
  it('has GPUs that are not in use, and a problem', async () => {
    const { node } = await boardWith('command', { count: 2, drivers: { 0: '', 1: '' } }, { gpus: [] });
    node.tree.hide('no command', 'bin/nvidia-smi', { kind: 'absent' });
    node.tree.hide('no driver', 'proc/driver/nvidia', { kind: 'absent' });
    await node.reboot();
    expect([0, 1].map((index) => told(node, addressOf(index)))).toEqual([
      'healthy, NotInUse NoDriver none',
      'healthy, NotInUse NoDriver none',
    ]);
    expect(node.problems).toEqual(['smi-not-found']);
  });
});

describe.each(SOURCES)('a driver that requires a reset without an Xid, by the %s,', (source) => {
  const REFUSED = [
    'NVRM: rpcRmApiAlloc_GSP: GspRmAlloc failed: hClient=0xc1d1a616; hParent=0x5c000054; hObject=0x5c00005b; hClass=0x0000c86f; paramsSize=0x00000170; paramsStatus=0x00000062; status=0x00000062 ',
    'NVRM: nvAssertOkFailedNoLog: Assertion failed: Reset required [NV_ERR_RESET_REQUIRED] (0x00000062) returned from status @ kernel_channel.c:2874 ',
  ];

  it('blames the GPU that asks for it, and its verdict ends with the question', async () => {
    const { node, show } = await boardWith(source, { count: 4 }, { gpus: upTo(4) });
    show({ gpus: upTo(4), asking: [1] });
    node.log(...REFUSED);
    await node.pass(seconds(60));
    expect(told(node, uuidOf(1))).toBe('unhealthy, RecoveryAction GpuReset reset, ResetRequired NewWorkRefused reset');
    expect([others(node, uuidOf(1)), node.problems]).toEqual([['healthy'], []]);
  });

  it('blames none when no GPU asks, and says so once', async () => {
    const { node } = await boardWith(source, { count: 4 }, { gpus: upTo(4) });
    for (let start = 0; start < 3; start += 1) {
      node.log(...REFUSED);
      await node.pass(seconds(30));
      expect([others(node), node.problems]).toEqual([['healthy'], ['reset-required']]);
    }
    node.log('NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  590.44.01  Release Build');
    await node.pass(seconds(30));
    expect(node.problems).toEqual([]);
  });
});
