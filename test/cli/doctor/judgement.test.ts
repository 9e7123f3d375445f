import { afterAll, describe, expect, it } from 'vitest';
import { checkOffers } from '../../../src/cli/doctor/agent-checks.ts';
import type { CheckContext, CheckResult } from '../../../src/cli/doctor/check.ts';
import { formatReport, judgeExpected, oneForEachCause } from '../../../src/cli/doctor/doctor.ts';
import { judgeFamily } from '../../../src/cli/doctor/family-checks.ts';
import { judgeClaims, judgeIds, type MetadataState, SOCKET_ADVICE } from '../../../src/cli/doctor/kubelet-checks.ts';
import { checkClock, checkNode } from '../../../src/cli/doctor/process-checks.ts';
import { Tree } from '../../../src/host/fs/tree.ts';
import { BusFunctions } from '../../../src/host/pci/functions.ts';
import type { Collection } from '../../../src/model/collection.ts';
import { POD_RESOURCES_REASONS } from '../../../src/model/pod-resources.ts';
import { familyLoaders } from '../../../src/probes/families.ts';
import { buildMachine } from '../../support/machine.ts';

const family = { name: 'nvidia', problems: [{ code: 'driver-missing', meaning: 'The driver is not there.', remedy: 'Load it.' }] };

const collected = (...kinds: string[]): Collection => ({
  reports: kinds.map((kind, index) => ({
    device: { family: 'nvidia', id: `d${index}`, kind, aliases: [] },
    read: { readings: [], findings: [] },
  })),
  problems: [],
  listing: 'complete',
});

it('tells one cause once, however many checks meet it', () => {
  const found = (name: string, detail: string): CheckResult => ({ name, status: 'finding', detail, cause: 'c', remedy: 'r' });
  const results = oneForEachCause([[found('a', 'no log')], [found('b', 'no log'), found('c', 'other')], [found('a', 'no log')]]);
  expect(results.map(({ name, status, detail }) => [name, status, detail])).toEqual([
    ['a', 'finding', 'no log'],
    ['b', 'skipped', 'the same as a'],
    ['c', 'finding', 'other'],
    ['a', 'finding', 'no log'],
  ]);
});

describe('judgement of a family', () => {
  it('counts devices by kind', () => {
    expect(judgeFamily(family, collected('gpu', 'mig', 'gpu'), [], [])).toEqual([
      { name: 'probe.nvidia', status: 'ok', detail: '3 devices: 2 gpu, 1 mig' },
    ]);
  });

  it('is content with a machine that has no such hardware', () => {
    expect(judgeFamily(family, collected(), [], [])).toEqual([{ name: 'probe.nvidia', status: 'ok', detail: 'no such hardware' }]);
  });

  it('misses devices that are on the bus', () => {
    const onBus = [
      { address: '0000:3b:00.0', hardware: { what: 'NVIDIA GPU' } },
      { address: '0000:5e:00.0', hardware: { what: 'NVIDIA GPU' } },
    ];
    expect(judgeFamily(family, collected(), [], onBus)).toMatchObject([
      { status: 'finding', detail: 'NVIDIA GPU at 0000:3b:00.0 and 1 more on the PCI bus, but the probe finds no device' },
    ]);
  });

  it('gives each problem the cause and remedy that its family declares, a hang those of the supervisor', () => {
    const problems = [
      { code: 'driver-missing', message: 'nvidia-smi: not found' },
      { code: 'probe-hung', message: 'a read has not come back', device: 'd0' },
    ];
    expect(judgeFamily(family, undefined, problems, [])).toMatchObject([
      { status: 'finding', detail: 'nvidia-smi: not found [driver-missing]', cause: 'The driver is not there.', remedy: 'Load it.' },
      { status: 'finding', detail: 'd0: a read has not come back [probe-hung]', remedy: expect.stringContaining('kernel log') },
    ]);
  });
});

describe('judgement of the expected devices', () => {
  it('finds an agent that expects none where the configuration does', () => {
    expect(judgeExpected(undefined)).toMatchObject([{ status: 'finding', detail: 'the running agent expects no number of devices' }]);
    expect(judgeExpected([{ family: 'toy', expected: 2, present: 2 }])).toMatchObject([{ status: 'ok', detail: '2 toy' }]);
  });
});

describe('judgement of claims', () => {
  const claims = [
    { driver: 'gpu.nvidia.com', unresolved: 'no-device' },
    { driver: 'gpu.nvidia.com' },
    { driver: 'dra.net' },
    { driver: 'dra.net' },
  ];

  it('names the driver whose devices cannot be joined, with the remedy for its metadata', () => {
    const judged = (state: MetadataState): unknown => judgeClaims(claims, () => state);
    const detail = 'driver gpu.nvidia.com: 1 of 2 allocations have no device';
    const mounting = expect.stringContaining('Mount the directory /var/lib/kubelet/plugins');
    expect(judged('no-directory')).toMatchObject([{ status: 'finding', detail, remedy: mounting }]);
    expect(judged('not-written')).toMatchObject([{ status: 'finding', detail, remedy: expect.stringContaining('DeviceMetadata') }]);
    expect(judged('written')).toMatchObject([{ status: 'finding', detail, remedy: expect.stringContaining('probes') }]);
  });

  it('is content with claims that all have a device, and with none', () => {
    expect(judgeClaims(claims.slice(1), () => 'written')).toMatchObject([{ status: 'ok' }]);
    expect(judgeClaims([], () => 'written')).toMatchObject([{ status: 'skipped' }]);
  });
});

describe('judgement of ids of device plugins', () => {
  const ids = [
    { resource: 'example.com/slice', unresolved: 'no-device' },
    { resource: 'example.com/slice' },
    { resource: 'nvidia.com/gpu' },
  ];

  it('names the resource whose ids lead to no device, with the ways out', () => {
    const [found, ...others] = judgeIds(ids);
    expect(found).toMatchObject({ status: 'finding', detail: 'resource example.com/slice: 1 of 2 ids have no device' });
    for (const option of ['join.rules', 'usage.delegated-ids', 'podresources.without-hardware'])
      expect(found).toMatchObject({ remedy: expect.stringContaining(option) });
    expect(others).toEqual([]);
  });

  it('is content with ids that all have a device, and with none', () => {
    expect(judgeIds(ids.slice(1))).toMatchObject([{ status: 'ok' }]);
    expect(judgeIds([])).toMatchObject([{ status: 'skipped' }]);
  });
});

describe('hardware on the bus', () => {
  const facts = (address: string, vendor: string, code: string, device = '0x0001') => ({
    [`sys/bus/pci/devices/${address}/vendor`]: `${vendor}\n`,
    [`sys/bus/pci/devices/${address}/class`]: `${code}\n`,
    [`sys/bus/pci/devices/${address}/device`]: `${device}\n`,
  });
  const machine = buildMachine({
    about: 'one function of each sort, and look-alikes',
    files: {
      ...facts('0000:01:00.0', '0x10de', '0x030200'),
      ...facts('0000:01:00.1', '0x10de', '0x040300'),
      ...facts('0000:02:00.0', '0x15b3', '0x020700'),
      ...facts('0000:02:00.1', '0x15b3', '0x020000'),
      ...facts('0000:03:00.0', '0x10ee', '0x120000', '0x50b4'),
      ...facts('0000:03:00.1', '0x10ee', '0x120000'),
      ...facts('0000:04:00.0', '0x8086', '0x120000', '0x0b30'),
      ...facts('0000:04:00.1', '0x8086', '0x120000', '0x4940'),
    },
  });
  afterAll(() => machine.remove());

  it.each<[string, string[]]>([
    ['nvidia', ['0000:01:00.0']],
    ['infiniband', ['0000:02:00.0']],
    ['fpga', ['0000:03:00.0', '0000:04:00.0']],
  ])('of %s is told by vendor, class and, where needed, device', async (name, expected) => {
    const { bus = [] } = (await familyLoaders[name]?.()) ?? {};
    const always = bus.filter(({ isListedByFault }) => isListedByFault !== true);
    expect(new BusFunctions(new Tree(`${machine.root}/sys`), always).read(0).map(({ address }) => address)).toEqual(expected);
  });

  it('of a family without PCI hardware is not looked for', () => {
    expect(new BusFunctions(new Tree(`${machine.root}/sys`), []).read(0)).toEqual([]);
  });
});

describe('process', () => {
  it.each<[string, string]>([
    ['20.18.9', 'finding'],
    ['18.20.0', 'finding'],
    ['20.19.0', 'ok'],
    ['24.1.0', 'ok'],
  ])('on Node %s: %s', (version, status) => {
    expect(checkNode(version)[0]?.status).toBe(status);
  });

  it('doubts a clock from before its own time', () => {
    expect(checkClock(0)[0]?.status).toBe('finding');
    expect(checkClock(Date.UTC(2026, 5, 1))[0]?.status).toBe('ok');
  });
});

describe('report', () => {
  it('has advice for every reason that keeps the kubelet from answering', () => {
    expect(Object.keys(SOCKET_ADVICE).sort()).toEqual([...POD_RESOURCES_REASONS].sort());
  });

  it('shows cause and remedy below a finding', () => {
    const text = formatReport(
      [
        { name: 'a', status: 'ok', detail: 'fine' },
        { name: 'bcd', status: 'finding', detail: 'bad\u001b[2J', cause: 'because', remedy: 'do' },
      ],
      'text',
    );
    expect(text).toBe(
      [
        'OK       a    fine',
        'FINDING  bcd  bad\\u001b[2J',
        '              cause:  because',
        '              remedy: do',
        '',
        '1 finding.',
        '',
      ].join('\n'),
    );
  });
});

it.each<[string, unknown, Partial<CheckResult>]>([
  ['none are served', undefined, { status: 'skipped' }],
  ['it is not known', [{ resource: 'a.b/c', registered: true }], { status: 'skipped' }],
  [
    'they are those that it was told of',
    [{ resource: 'a.b/c', registered: true, differing: 0 }],
    { status: 'ok', detail: 'the kubelet offers what it was told of a.b/c' },
  ],
  [
    'three differ',
    [
      { resource: 'a.b/c', registered: true, differing: 0 },
      { resource: 'a.b/d', registered: true, differing: 3, differingSince: '2030-01-31T12:00:00.000Z' },
    ],
    { status: 'finding', detail: 'a.b/d: the kubelet offers 3 ids otherwise than it was told, since 2030-01-31T12:00:00.000Z' },
  ],
])('tells of the devices that the kubelet offers: %s', async (_name, resources, expected) => {
  const ask = async () => ({ answer: { status: 200, body: { resources } } });
  const [found, ...more] = await checkOffers({ ask } as unknown as CheckContext);
  expect(found).toMatchObject(expected);
  expect(more).toEqual([]);
});
