import { describe, expect, it } from 'vitest';
import { createHost } from '../../../src/host/host.ts';
import type { Collection, DeviceProcess, DeviceReport } from '../../../src/model/collection.ts';
import type { Device } from '../../../src/model/device.ts';
import type { Fault } from '../../../src/model/fault.ts';
import { KernelLogProbe } from '../../../src/probes/nvidia/kernel-log.ts';
import type { XidLine } from '../../../src/probes/nvidia/xid-line.ts';
import { LogNode } from '../../oracle/log-node.ts';

const ADDRESS = '0000:00:06.0';
const gpu = (index = 0, more: Partial<Device> = {}): Device => ({
  family: 'nvidia',
  id: `GPU-${index}`,
  kind: 'gpu',
  aliases: [],
  pciAddress: index === 0 ? ADDRESS : `0000:0${index}:00.0`,
  ...more,
});
const instance = (gpuInstance: number, computeInstance: number): Device =>
  gpu(0, { id: `MIG-${gpuInstance}/${computeInstance}`, kind: 'mig', parent: 'GPU-0', gpuInstance, computeInstance });

interface Seen {
  readonly faults: readonly (Fault & { readonly device: string })[];
  readonly holding: readonly string[];
  /** The device that is the source of a finding, by device and instance. */
  readonly sources: Readonly<Record<string, string>>;
}

/** A node whose log has these records, as `/dev/kmsg` gives them, and whose GPUs are read `afterMs` after they were written. */
async function seen(
  records: string,
  devices: readonly Device[] = [gpu()],
  parts: { processes?: readonly DeviceProcess[]; events?: readonly XidLine[]; afterMs?: number } = {},
): Promise<Seen> {
  const node = new LogNode();
  const { processes = [], events, afterMs = 2_000 } = parts;
  const reports: readonly DeviceReport[] = devices.map((device) => ({ device, read: { readings: [], findings: [], processes } }));
  const probe = new KernelLogProbe(
    {
      collect: () => ({ reports, problems: [], listing: 'complete' }),
      ...(events === undefined ? {} : { takeXids: () => events }),
    },
    createHost(node.roots, node.clock),
    events === undefined ? node.log : `${node.log}-absent`,
  );
  await probe.collect();
  node.append(records);
  await probe.collect();
  await node.pass(afterMs);
  const { reports: found } = await probe.collect();
  await probe.close();
  node.remove();
  return {
    sources: Object.fromEntries(
      found.flatMap(({ device: { id }, outOfBand }) =>
        (outOfBand?.findings ?? []).flatMap(({ instance: part, causedBy }) =>
          causedBy === undefined ? [] : [[`${id} ${part}`, causedBy]],
        ),
      ),
    ),
    faults: found.flatMap(({ device: { id }, faults = [] }) => faults.map((fault) => ({ ...fault, device: id }))),
    holding: found.flatMap(({ device: { id }, outOfBand }) =>
      (outOfBand?.findings ?? [])
        .filter(({ status }) => status === true)
        .map(({ type, instance: part, severity, remedy, message }) => `${id} ${type}/${part} ${severity} ${remedy}: ${message}`),
    ),
  };
}

const told = ({ faults }: Seen): readonly unknown[] =>
  faults.map(({ code, count, process, lines }) => [code, count, process?.pid, lines[0]]);

/** What a real H100 wrote for three programs: a misaligned address, a stack overflow, and shared memory out of range. */
const GRAPHICS = `4,361,37204143,c;NVRM: Xid (PCI:0000:00:06): 13, Graphics SM Warp Exception on (GPC 1, TPC 4, SM 0): Misaligned Address
4,362,37205667,c;NVRM: Xid (PCI:0000:00:06): 13, Graphics Exception: ESR 0x519730=0x500000f 0x519734=0x0 0x519728=0x1f81fb60 0x51972c=0x1174
4,363,37207227,c;NVRM: Xid (PCI:0000:00:06): 13, pid=637, name=faults, Graphics Exception: channel 0x0000000a, Class 0000cbc0, Offset 00000510, Data 0017e2ac
4,367,53393255,c;NVRM: Xid (PCI:0000:00:06): 13, Graphics SM Warp Exception on (GPC 1, TPC 4, SM 0): Out Of Range Address
4,368,53394773,c;NVRM: Xid (PCI:0000:00:06): 13, Graphics SM Global Exception on (GPC 1, TPC 4, SM 0): Multiple Warp Errors
4,369,53396379,c;NVRM: Xid (PCI:0000:00:06): 13, Graphics Exception: ESR 0x519730=0x300000e 0x519734=0x24 0x519728=0x1f81fb60 0x51972c=0x1174
4,370,53398556,c;NVRM: Xid (PCI:0000:00:06): 43, pid=693, name=faults, channel 0x0000000a
4,371,56698925,c;NVRM: Xid (PCI:0000:00:06): 13, Graphics SM Warp Exception on (GPC 1, TPC 4, SM 0): Illegal Instruction Parameter
4,372,56700477,c;NVRM: Xid (PCI:0000:00:06): 13, Graphics Exception: ESR 0x519730=0xb 0x519734=0x0 0x519728=0x1f81fb60 0x51972c=0x1174
4,373,56702026,c;NVRM: Xid (PCI:0000:00:06): 13, pid=705, name=faults, Graphics Exception: channel 0x0000000a, Class 0000cbc0, Offset 00000510, Data 0017e2ac
`;

/** One illegal address and six device asserts of seven processes. */
const SEVEN = `4,360,187475809,c;NVRM: Xid (PCI:0000:00:06): 31, pid=809, name=faults, channel 0x0000000a, intr 00000000. MMU Fault: ENGINE GRAPHICS GPC1 GPCCLIENT_T1_8 faulted @ 0x837b_9c000000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE
4,361,192669325,c;NVRM: Xid (PCI:0000:00:06): 43, pid=819, name=faults, channel 0x0000000a
4,362,195428895,c;NVRM: Xid (PCI:0000:00:06): 43, pid=825, name=faults, channel 0x0000000a
4,363,198213204,c;NVRM: Xid (PCI:0000:00:06): 43, pid=835, name=faults, channel 0x0000000a
4,364,200942238,c;NVRM: Xid (PCI:0000:00:06): 43, pid=841, name=faults, channel 0x0000000a
4,365,203740983,c;NVRM: Xid (PCI:0000:00:06): 43, pid=847, name=faults, channel 0x0000000a
4,366,212555435,c;NVRM: Xid (PCI:0000:00:06): 43, pid=857, name=faults, channel 0x0000000a
`;

describe('faults of programs in the lines of a real GPU', () => {
  it('count once each, also when their texts differ only in the process', async () => {
    const { faults } = await seen(SEVEN);
    expect(faults.map(({ code, count, process }) => [code, count, process?.pid])).toEqual([
      ['31', 1, 809],
      ...[819, 825, 835, 841, 847, 857].map((pid) => ['43', 1, pid]),
    ]);
  });

  it('are one fault for the lines of one, with the cause first and the process of the line that names it', async () => {
    expect(told(await seen(GRAPHICS))).toEqual([
      ['13', 1, 637, 'Graphics SM Warp Exception on (GPC 1, TPC 4, SM 0): Misaligned Address'],
      ['13', 1, 693, 'Graphics SM Warp Exception on (GPC 1, TPC 4, SM 0): Out Of Range Address'],
      ['43', 1, 693, 'channel 0x0000000a'],
      ['13', 1, 705, 'Graphics SM Warp Exception on (GPC 1, TPC 4, SM 0): Illegal Instruction Parameter'],
    ]);
  });

  it('show their cause in the condition too', async () => {
    const { holding } = await seen(GRAPHICS);
    expect(holding.find((line) => line.includes('XidPassing/13'))).toBe(
      'GPU-0 XidPassing/13 info restart-workload: Xid 13: graphics engine exception; process 705 (faults); Graphics SM Warp Exception on (GPC 1, TPC 4, SM 0): Illegal Instruction Parameter; 3 times',
    );
  });

  it('name no single client while an MPS server runs on the GPU', async () => {
    const server: DeviceProcess = { pid: 77, name: 'nvidia-cuda-mps' };
    const { faults, holding } = await seen(`${SEVEN.split('\n').slice(0, 1).join('\n')}\n`, [gpu()], { processes: [server] });
    expect(faults[0]).toMatchObject({ isAnyProcess: true, process: { pid: 809 } });
    expect(holding[0]).toContain("one of an MPS server's clients, told as process 809 (faults)");
  });
});

describe('a removal of channels that names its cause', () => {
  /** Eight GPUs; the lines of 149 and 145 themselves are gone. */
  const removal = (address: string, at: number, pid: number, cause: number): string =>
    `3,${at},${at * 250_000},-;NVRM: Xid (PCI:0000:${address}:00): 45, pid=${pid}, name=python3, Ch 0000000${at % 9} caused by previous Xid ${cause}\n`;
  const buses = ['dc', 'ed', 'ba', '97', '3a'];
  const devices = buses.map((bus, at) => gpu(at + 1, { id: bus, pciAddress: `0000:${bus}:00.0` }));
  const lines = (order: readonly [string, number][]): string =>
    order.map(([bus, cause], at) => removal(bus, 100 + at, 18_000 + buses.indexOf(bus), cause)).join('');
  const outOfService = ({ holding }: Seen): readonly string[] =>
    holding.filter((line) => line.includes(' fatal ')).map((line) => line.slice(0, 2));

  it.each<[string, readonly [string, number][]]>([
    [
      'first',
      [
        ['dc', 149],
        ['ed', 145],
        ['ba', 145],
        ['97', 145],
        ['dc', 149],
        ['ba', 145],
      ],
    ],
    [
      'last',
      [
        ['ed', 145],
        ['ba', 145],
        ['97', 145],
        ['dc', 149],
      ],
    ],
  ])('is the only evidence of it when its own line is gone, and the GPUs at the other ends are victims: source %s', async (_, order) => {
    const found = await seen(lines(order), devices);
    expect(outOfService(found)).toEqual(['dc']);
    expect(found.holding.filter((line) => line.includes('145')).map((line) => line.split(':', 1)[0])).toEqual(
      expect.arrayContaining(['ed', 'ba', '97'].map((bus) => `${bus} XidPassing/145 info restart-workload`)),
    );
    expect(found.sources).toEqual(Object.fromEntries(['ed', 'ba', '97'].map((bus) => [`${bus} 145`, 'dc'])));
    // What failed together has a source, so it is no fault of the fabric.
    expect(found.holding.join('\n')).not.toContain('FabricFault');
    // One fault for the channels of one process, and none for the line that nobody saw.
    expect(found.faults.map(({ device, code, count, process }) => `${device} ${code} ${count} ${process?.pid}`).sort()).toEqual(
      ['dc', 'ed', 'ba', '97'].map((bus) => `${bus} 45 1 ${18_000 + buses.indexOf(bus)}`).sort(),
    );
  });

  it('counts as the fault of its own GPU when no other one tells an error of its link', async () => {
    expect(outOfService(await seen(lines([['ed', 145]]), devices))).toEqual([]);
    const own = '3,1,1000000,-;NVRM: Xid (PCI:0000:ed:00): 145, RLW_CTRL Fatal XC0 i0 Link 08 (0x00000001)\n';
    expect(outOfService(await seen(own, devices))).toEqual(['ed']);
  });
});

describe('NVLink errors of several GPUs', () => {
  const buses = ['66', '76', 'a1', 'b1'];
  const devices = buses.map((bus) => gpu(1, { id: bus, pciAddress: `0000:${bus}:00.0` }));
  const line = (bus: string, seq: number, text: string): string => `3,${seq},${seq * 100_000},-;NVRM: Xid (PCI:0000:${bus}:00): ${text}\n`;
  const link = (bus: string, seq: number, severity: string, xid = 145): string =>
    line(bus, seq, `${xid}, ${xid === 149 ? 'NETIR_LINK_EVT' : 'RLW_RXPIPE'} ${severity} XC0 i0 Link 11 (0x00000001 0x00000000)`);
  const shown = ({ holding }: Seen): readonly string[] => holding.map((each) => each.split(':', 1)[0] as string);

  it('that no line calls fatal are a fault of the fabric, for information on the GPUs without an error', async () => {
    const found = await seen(link('66', 1, 'Nonfatal') + link('76', 2, 'Nonfatal'), devices);
    expect(shown(found)).toEqual([
      '66 XidPassing/145 degraded inspect',
      '66 FabricFault/undefined undefined undefined',
      '76 XidPassing/145 degraded inspect',
      '76 FabricFault/undefined undefined undefined',
      'a1 FabricFault/undefined info undefined',
      'b1 FabricFault/undefined info undefined',
    ]);
    // Programs hang on any pair until the node is rebooted, although nothing more is written.
    const later = await seen(link('66', 1, 'Nonfatal') + link('76', 2, 'Nonfatal'), devices, { afterMs: 86_400_000 });
    expect(shown(later).filter((text) => text.includes('FabricFault'))).toEqual(
      shown(found).filter((text) => text.includes('FabricFault')),
    );
  });

  it('after the crash of a program, on one GPU, or at other times are not', async () => {
    const crash = line('a1', 1, '31, pid=7, name=python, Ch 00000008, intr 00000000');
    const isOf = (found: Seen): boolean => found.holding.join().includes('FabricFault');
    expect(isOf(await seen(crash + link('66', 2, 'Nonfatal') + link('76', 3, 'Nonfatal'), devices))).toBe(false);
    expect(isOf(await seen(link('66', 1, 'Nonfatal') + link('66', 2, 'Nonfatal'), devices))).toBe(false);
    const loaded = '6,9,150000,-;NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  595.71.05  Release Build\n';
    expect(isOf(await seen(link('66', 1, 'Nonfatal') + link('76', 2, 'Nonfatal') + loaded.replace('150000', '950000'), devices))).toBe(
      false,
    );
    expect(isOf(await seen(link('66', 1, 'Nonfatal') + loaded + link('76', 10, 'Nonfatal'), devices))).toBe(false);
    expect(isOf(await seen(crash + loaded + link('66', 10, 'Nonfatal') + link('76', 11, 'Nonfatal'), devices))).toBe(true);
  });

  it('have the fatal one as their source, and the event of a link before the report of the other end', async () => {
    const fatal = await seen(link('76', 1, 'Nonfatal') + link('a1', 2, 'Nonfatal', 146) + link('66', 3, 'Fatal', 144), devices);
    expect(shown(fatal)).toEqual([
      '66 Xid/144 fatal reset',
      '76 XidPassing/145 info restart-workload',
      'a1 XidPassing/146 info restart-workload',
    ]);
    expect(fatal.sources).toEqual({ '76 145': '66', 'a1 146': '66' });
    const own = await seen(link('76', 1, 'Fatal') + link('66', 2, 'Fatal', 149) + link('a1', 3, 'Fatal', 149), devices);
    expect(own.sources).toEqual({ '76 145': '66' });
    expect(shown(own)).toEqual(['66 Xid/149 fatal reset', '76 XidPassing/145 info restart-workload', 'a1 Xid/149 fatal reset']);
    expect(own.faults.map(({ device, code, severity, remedy }) => [device, code, severity, remedy])).toEqual([
      ['66', '149', 'fatal', 'reset'],
      ['76', '145', 'info', 'restart-workload'],
      ['a1', '149', 'fatal', 'reset'],
    ]);
  });

  it('that are fatal do not follow from one that is not', async () => {
    const found = await seen(link('76', 1, 'Fatal') + link('66', 2, 'Nonfatal', 149), devices);
    expect(shown(found)).toContain('76 Xid/145 fatal reset');
    expect(found.sources).toEqual({});
  });
});

describe('the part of a GPU that a fault names', () => {
  const event = (gpuInstance: number, computeInstance: number): XidLine => ({
    kind: 'xid',
    pciAddress: ADDRESS,
    xid: 31,
    gpuInstance,
    computeInstance,
    text: "reported by the driver's library",
    isEvent: true,
  });

  it('is no instance where the GPU is not split', async () => {
    const { holding, faults } = await seen('', [gpu()], { events: [event(0, 0)] });
    expect(holding.join()).not.toContain('instance');
    expect(faults[0]?.device).toBe('GPU-0');
  });

  it('counts once where a GPU instance has two compute instances', async () => {
    const devices = [gpu(), instance(1, 0), instance(1, 1), instance(2, 0)];
    const record = (part: string): string => `4,1,1000000,-;NVRM: Xid (PCI:0000:00:06 ${part}): 31, pid=1, name=a, x\n`;
    const both = await seen(record('GPU-I:01'), devices);
    expect(both.faults.map(({ device, parts }) => [device, parts])).toEqual([['GPU-0', ['MIG-1/0', 'MIG-1/1']]]);
    const one = await seen(record('GPU-I:01 GPU-CI:01'), devices);
    expect(one.faults.map(({ device, parts }) => [device, parts])).toEqual([['MIG-1/1', undefined]]);
  });
});

it('a line about a GPU that this read did not reach is a report of the log alone, and no read', async () => {
  const node = new LogNode();
  const read = { readings: [], findings: [] };
  const collections: Collection[] = [
    {
      reports: [
        { device: gpu(), read },
        { device: gpu(1), read },
      ],
      problems: [],
      listing: 'complete',
    },
    { reports: [{ device: gpu(1), read }], problems: [], listing: 'partial' },
  ];
  const probe = new KernelLogProbe({ collect: () => collections.shift() as Collection }, createHost(node.roots, node.clock), node.log);
  await probe.collect();
  node.append('3,1,1000000,-;NVRM: Xid (PCI:0000:00:06): 79, pid=1, name=a, GPU has fallen off the bus.\n');
  const { reports } = await probe.collect();
  await probe.close();
  node.remove();
  const [unread, other] = [reports.find(({ device }) => device.id === 'GPU-0'), reports.find(({ device }) => device.id === 'GPU-1')];
  expect(unread?.outOfBand?.findings).toContainEqual(expect.objectContaining({ type: 'Xid', instance: '79', status: true }));
  expect([unread?.read, other?.read]).toEqual([undefined, read]);
});

it('a context switch timeout is fatal until a reset', async () => {
  const { holding } = await seen(
    '4,1,1990000,-;NVRM: Xid (PCI:0000:00:06): 109, pid=4711, name=python3, Ch 00000008, errorString CTX SWITCH TIMEOUT, Info 0x58005\n',
  );
  expect(holding[0]).toMatch(/^GPU-0 Xid\/109 fatal reset: /);
});

it('a flood of one Xid is one report with the exact number, whatever its lines tell', async () => {
  const flood = Array.from(
    { length: 20_000 },
    (_, at) => `4,${at + 1},${at * 100},c;NVRM: Xid (PCI:0000:00:06): 31, pid=${at % 3_000}, name=a, MMU Fault @ 0x${at.toString(16)}\n`,
  ).join('');
  const { faults } = await seen(flood);
  expect(faults.reduce((sum, { count }) => sum + count, 0)).toBe(20_000);
  expect(faults.length).toBeLessThan(300);
  expect(faults.every(({ lines }) => lines.length <= 8)).toBe(true);
});

describe('a log that lost records', () => {
  const line = (seq: number, address: string, xid: number): string =>
    `4,${seq},${seq * 1_000},c;NVRM: Xid (PCI:${address}): ${xid}, pid=${seq}, name=a, channel 0x0000000a\n`;
  const event = (index: number, xid: number, cameAtMs: number): XidLine => ({
    kind: 'xid',
    pciAddress: index === 0 ? ADDRESS : `0000:0${index}:00.0`,
    xid,
    text: 'by the library',
    isEvent: true,
    cameAtMs,
  });

  /** Two GPUs. `play` writes the log; the events that it gives come with the next read. */
  async function withGap(play: (node: LogNode, read: () => Promise<void>) => Promise<void>, events: XidLine[], found = '') {
    const node = new LogNode();
    node.append(found);
    const reports: readonly DeviceReport[] = [gpu(), gpu(1)].map((device) => ({ device, read: { readings: [], findings: [] } }));
    const probe = new KernelLogProbe(
      { collect: () => ({ reports, problems: [], listing: 'complete' }), takeXids: () => events.splice(0) },
      createHost(node.roots, node.clock),
      node.log,
    );
    let latest = await probe.collect();
    await play(node, async () => {
      latest = await probe.collect();
    });
    await probe.close();
    node.remove();
    const { reports: seenLast, problems } = latest;
    const faults = seenLast.flatMap(({ device: { id }, faults: own = [] }) =>
      own.map(({ witness, code, count, isLost }) => `${id} ${code} ${count} ${witness}${isLost === true ? ' lost' : ''}`),
    );
    return { faults, problems: problems.map(({ code, message }) => `${code}: ${message.replace(node.log, 'LOG')}`) };
  }

  it('says so, and events tell the faults of which it has no line', async () => {
    const events: XidLine[] = [];
    const { faults, problems } = await withGap(async (node, read) => {
      node.append(line(1, '0000:01:00', 31));
      await node.pass(10_000);
      await read();
      node.append(line(900, '0000:00:06', 31));
      const atMs = node.clock.monotonic();
      events.push(event(0, 31, atMs), event(0, 43, atMs), event(0, 43, atMs), event(1, 31, atMs));
      await node.pass(1_000);
      await read();
    }, events);
    expect(faults).toEqual([
      'GPU-0 31 1 log',
      'GPU-0 43 1 events lost',
      'GPU-0 43 1 events lost',
      'GPU-1 31 1 log',
      'GPU-1 31 1 events lost',
    ]);
    expect(problems).toEqual(['kmsg-lost: LOG lost records before they were read']);
  });

  it('counts no event of another time, and says it for an hour', async () => {
    const events: XidLine[] = [];
    const { faults, problems } = await withGap(async (node, read) => {
      node.append(line(1, '0000:01:00', 31));
      await node.pass(10_000);
      events.push(event(0, 43, node.clock.monotonic()));
      await read();
      node.append(line(900, '0000:00:06', 31));
      await node.pass(20_000);
      events.push(event(0, 43, node.clock.monotonic()));
      await read();
      await node.pass(3_600_000);
      await read();
    }, events);
    expect([faults, problems]).toEqual([[], []]);
  });

  it('is none that was found with gaps: somebody may have selected its records', async () => {
    const found = line(1, '0000:01:00', 31) + line(900, '0000:00:06', 31);
    expect((await withGap(async () => {}, [], found)).problems).toEqual([]);
  });
});
